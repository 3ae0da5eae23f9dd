// SPDX-License-Identifier: Apache-2.0
/*
 * image_ioctl - the ioctls about module images, one wrong thing at a time, and
 * what may be done with the descriptor of an image. The probed function is one
 * of this program itself.
 */
#include <kselftest_harness.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/image.h"

__attribute__((noinline)) int probed(int junk, const void *image)
{
	__asm__ volatile("" : : "r"(junk), "r"(image) : "memory");
	return junk + 1;
}

static const char text[] = ".version 7.0\n.target sm_80\n";

FIXTURE(image_ioctl) {
	struct gw_reader r;
	struct gw_stream s;
	int fd, exe;
	struct gpuwatch_probe probe;
};

FIXTURE_SETUP(image_ioctl)
{
	struct gw_options o = { .ring_bytes = 1 << 20 };

	lab_fresh(false, "");
	image_params_default();
	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	self->fd = self->r.fd;
	self->exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, self->exe);
	self->probe = image_probe_of(self->exe, image_symbol("/proc/self/exe", "probed"), "probed",
				     GPUWATCH_PROBE_IMAGE, 1);
	ASSERT_LT(0, (long long)self->probe.offset);
}

FIXTURE_TEARDOWN(image_ioctl)
{
	gw_reader_stop(&self->r);
	gw_stream_free(&self->s);
	close(self->exe);
}

#define ADD() image_add(self->fd, &self->probe)

/* Id of the image of one call, which has to give a record. */
static uint64_t load(struct gw_reader *r, struct gw_stream *s)
{
	size_t i;

	probed(0, text);
	gw_stream_clear(s);
	gw_reader_finish(r, s);
	for (i = 0; i < s->nr; i++)
		if (image_rec(gw_rec(s, i)))
			return image_rec(gw_rec(s, i))->id;
	return 0;
}

TEST_F(image_ioctl, good)
{
	const struct gpuwatch_rec_image *rec;
	struct gpuwatch_probe_ref ref = {};
	struct stat st;
	uint64_t id;
	size_t i, bytes;
	uint8_t *got;
	int err;

	ASSERT_EQ(0, ADD());
	EXPECT_NE(0, self->probe.id);
	id = load(&self->r, &self->s);
	ASSERT_NE(0, id);
	for (i = 0; !image_rec(gw_rec(&self->s, i)); i++)
		EXPECT_NE(GPUWATCH_REC_IOCTL, gw_rec(&self->s, i)->type);
	rec = image_rec(gw_rec(&self->s, i));
	fstat(self->exe, &st);
	EXPECT_EQ((uintptr_t)text, rec->address);
	EXPECT_EQ((uintptr_t)text, rec->image_address);
	EXPECT_EQ(sizeof(text) - 1, rec->bytes);
	EXPECT_EQ(sizeof(text) - 1, rec->copied_bytes);
	EXPECT_EQ(GPUWATCH_IMAGE_TEXT, rec->kind);
	EXPECT_EQ(0, rec->flags);
	EXPECT_EQ(1, rec->nr_parts);
	EXPECT_EQ(self->probe.id, rec->probe);
	EXPECT_EQ(st.st_ino, rec->library_ino);
	EXPECT_STREQ("probed", rec->symbol);
	EXPECT_LT(0, rec->duration_ns);
	EXPECT_EQ(sizeof(*gw_rec(&self->s, i)) + sizeof(*rec) + (rec->head_len + 7) / 8 * 8,
		  gw_rec(&self->s, i)->len);
	EXPECT_EQ(0, memcmp(rec + 1, text, sizeof(text) - 1));
	EXPECT_EQ(getpid(), gw_rec(&self->s, i)->tgid);
	got = image_get(self->fd, id, true, &bytes, &err);
	ASSERT_EQ(0, err);
	EXPECT_EQ(sizeof(text) - 1, bytes);
	EXPECT_EQ(0, memcmp(got, text, bytes));
	free(got);
	EXPECT_TRUE(image_idle(self->fd));
	ref.id = self->probe.id;
	EXPECT_EQ(0, ioctl(self->fd, GPUWATCH_IOC_REMOVE_PROBE, &ref));
	EXPECT_EQ(1, ref.hits);
	EXPECT_EQ(0, load(&self->r, &self->s));
	EXPECT_EQ(0, image_status(self->fd).nr_probes);
}

TEST_F(image_ioctl, bad_file)
{
	self->probe.fd = -1;
	EXPECT_EQ(-EBADF, ADD());
	self->probe.fd = 987;
	EXPECT_EQ(-EBADF, ADD());
	self->probe.fd = open("/tmp/write-only", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	EXPECT_EQ(-EBADF, ADD());
	self->probe.fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	EXPECT_EQ(-EINVAL, ADD());
	self->probe.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	EXPECT_EQ(-EINVAL, ADD());
	self->probe.fd = self->fd;
	EXPECT_EQ(-EINVAL, ADD());
	self->probe.fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	EXPECT_EQ(-EBADF, ADD());
	EXPECT_EQ(0, image_status(self->fd).nr_probes);
}

#define REFUSED(change) TEST_F(image_ioctl, change) \
	{ refuse_##change(&self->probe); EXPECT_EQ(-EINVAL, ADD()); \
	  EXPECT_EQ(0, image_status(self->fd).nr_probes); }
#define WRONG(name, ...) \
	static void refuse_##name(struct gpuwatch_probe *p) { __VA_ARGS__; } \
	REFUSED(name)

WRONG(offset_past_end, p->offset = 1ULL << 40)
WRONG(offset_negative, p->offset = ~0ULL)
WRONG(kind_zero, p->kind = 0)
WRONG(kind_unknown, p->kind = GPUWATCH_PROBE_CALL + 1)
WRONG(argument_seven, p->argument = GPUWATCH_PROBE_ARGS)
WRONG(size_argument_seven, p->kind = GPUWATCH_PROBE_SIZED; p->size_argument = GPUWATCH_PROBE_ARGS)
WRONG(size_argument_unused, p->size_argument = 1)
WRONG(id_given, p->id = 1)
WRONG(pad_set, p->pad = 1)
WRONG(symbol_empty, memset(p->symbol, 0, sizeof(p->symbol)))
WRONG(symbol_endless, memset(p->symbol, 'x', sizeof(p->symbol)))
WRONG(symbol_newline, p->symbol[2] = '\n')
WRONG(symbol_high, p->symbol[2] = '\xe9')
WRONG(symbol_rest, p->symbol[31] = 'x')

TEST_F(image_ioctl, faults)
{
	struct gpuwatch_probe *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT_EQ(-EFAULT, ioctl(self->fd, GPUWATCH_IOC_ADD_PROBE, NULL) ? -errno : 0);
	EXPECT_EQ(-EFAULT, ioctl(self->fd, GPUWATCH_IOC_REMOVE_PROBE, NULL) ? -errno : 0);
	EXPECT_EQ(-EFAULT, ioctl(self->fd, GPUWATCH_IOC_GET_IMAGE, NULL) ? -errno : 0);
	EXPECT_EQ(-EFAULT, ioctl(self->fd, GPUWATCH_IOC_DROP_IMAGE, NULL) ? -errno : 0);
	EXPECT_EQ(-EFAULT, ioctl(self->fd, GPUWATCH_IOC_GET_IMAGE_STATUS, NULL) ? -errno : 0);
	/* The answer can't be written: there is no probe then. */
	ASSERT_NE(MAP_FAILED, page);
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
	*page = self->probe;
	mprotect(page, 4096, PROT_READ);
	EXPECT_EQ(-EFAULT, image_add(self->fd, page));
	EXPECT_EQ(0, image_status(self->fd).nr_probes);
}

TEST_F(image_ioctl, twice)
{
	struct gpuwatch_probe first;

	ASSERT_EQ(0, ADD());
	first = self->probe;
	self->probe.id = 0;
	EXPECT_EQ(-EEXIST, ADD());
	EXPECT_EQ(1, image_status(self->fd).nr_probes);
	EXPECT_EQ(0, image_remove(self->fd, first.id));
	EXPECT_EQ(-ENOENT, image_remove(self->fd, first.id));
	EXPECT_EQ(0, ADD());
	EXPECT_NE(first.id, self->probe.id);
	EXPECT_EQ(-ENOENT, image_remove(self->fd, 0));
	EXPECT_EQ(-ENOENT, image_remove(self->fd, ~0U));
}

/* Two consumers at one place: one breakpoint, a record and a hold for each. */
TEST_F(image_ioctl, shared)
{
	struct gpuwatch_probe other = self->probe;
	struct gw_options o = { .ring_bytes = 1 << 20 };
	struct gw_reader second;
	struct gw_stream s = {};
	uint64_t id;
	size_t bytes;
	uint8_t *got;
	int err;

	ASSERT_EQ(0, gw_reader_start(&second, &o));
	ASSERT_EQ(0, ADD());
	other.argument = 0;
	EXPECT_EQ(-EBUSY, image_add(second.fd, &other));
	other.argument = self->probe.argument;
	EXPECT_EQ(-ENOENT, image_remove(second.fd, self->probe.id));
	ASSERT_EQ(0, image_add(second.fd, &other));
	EXPECT_EQ(self->probe.id, other.id);
	EXPECT_EQ(1, image_status(self->fd).nr_probes);
	id = load(&self->r, &self->s);
	ASSERT_NE(0, id);
	gw_reader_finish(&second, &s);
	EXPECT_EQ(0, image_drop(self->fd, id));
	EXPECT_EQ(-ENOENT, image_drop(self->fd, id));
	got = image_get(second.fd, id, true, &bytes, &err);
	EXPECT_EQ(0, err);
	free(got);
	EXPECT_EQ(-ENOENT, image_drop(second.fd, id));
	EXPECT_TRUE(image_idle(self->fd));
	/* One that goes leaves the other its probe, and takes its holds along. */
	id = load(&self->r, &self->s);
	gw_reader_stop(&self->r);
	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	got = image_get(second.fd, id, true, &bytes, &err);
	EXPECT_EQ(0, err);
	free(got);
	EXPECT_TRUE(image_idle(second.fd));
	gw_reader_stop(&second);
	EXPECT_EQ(0, image_status(self->r.fd).nr_probes);
	gw_stream_free(&s);
}

/* Who has no probe gets records, but holds nothing; who has no class gets none. */
TEST_F(image_ioctl, bystander)
{
	struct gpuwatch_filter filter = { .cgroup_fd = -1, .node_mask = 1 << GPUWATCH_NODE_UVM };
	struct gw_options o = { .ring_bytes = 1 << 20, .filter = &filter };
	struct gw_reader second;
	struct gw_stream s = {};
	uint64_t id;
	size_t i, seen = 0;

	ASSERT_EQ(0, gw_reader_start(&second, &o));
	ASSERT_EQ(0, ADD());
	id = load(&self->r, &self->s);
	ASSERT_NE(0, id);
	EXPECT_EQ(-ENOENT, image_drop(second.fd, id));
	gw_reader_finish(&second, &s);
	for (i = 0; i < s.nr; i++)
		seen += image_rec(gw_rec(&s, i)) && image_rec(gw_rec(&s, i))->id == id;
	EXPECT_EQ(1, seen);
	EXPECT_EQ(0, image_drop(self->fd, id));
	EXPECT_TRUE(image_idle(self->fd));
	/* Nobody wants images of this process: none is copied. */
	filter.class_mask = GPUWATCH_CLASS(GPUWATCH_REC_OPEN);
	ASSERT_EQ(0, ioctl(second.fd, GPUWATCH_IOC_SET_FILTER, &filter));
	filter.class_mask = 0;
	filter.nr_pids = 1;
	filter.pids[0] = 1;
	ASSERT_EQ(0, ioctl(self->fd, GPUWATCH_IOC_SET_FILTER, &filter));
	i = image_status(self->fd).stored;
	EXPECT_EQ(0, load(&self->r, &self->s));
	EXPECT_EQ(i, image_status(self->fd).stored);
	filter.pids[0] = getpid();
	ASSERT_EQ(0, ioctl(self->fd, GPUWATCH_IOC_SET_FILTER, &filter));
	EXPECT_NE(0, load(&self->r, &self->s));
	gw_reader_stop(&second);
	gw_stream_free(&s);
}

/* Who came later than another's probe misses nothing of what that captures. */
TEST_F(image_ioctl, holds_by_others_probe)
{
	struct gw_options o = { .ring_bytes = 1 << 20, .hold_images = true };
	struct gpuwatch_filter filter = { .cgroup_fd = -1 };
	struct gpuwatch_probe other = self->probe;
	struct gw_reader second;
	struct gw_stream s = {};
	uint64_t id;
	size_t bytes;
	uint8_t *got;
	int err;

	ASSERT_EQ(0, ADD());
	ASSERT_EQ(0, gw_reader_start(&second, &o));
	id = load(&self->r, &self->s);
	ASSERT_NE(0, id);
	EXPECT_EQ(0, image_drop(self->fd, id));
	got = image_get(second.fd, id, true, &bytes, &err);
	EXPECT_EQ(0, err);
	free(got);
	EXPECT_EQ(-ENOENT, image_drop(second.fd, id));
	EXPECT_TRUE(image_idle(self->fd));
	/* By nobody else, where the owner of the probe wants none. */
	filter.class_mask = GPUWATCH_CLASS(GPUWATCH_REC_OPEN);
	ASSERT_EQ(0, ioctl(self->fd, GPUWATCH_IOC_SET_FILTER, &filter));
	EXPECT_EQ(0, load(&self->r, &self->s));
	EXPECT_EQ(1, image_status(self->fd).nr_stored);
	filter.class_mask = 0;
	ASSERT_EQ(0, ioctl(self->fd, GPUWATCH_IOC_SET_FILTER, &filter));
	gw_reader_stop(&second);
	EXPECT_TRUE(image_idle(self->fd));
	ASSERT_EQ(0, gw_reader_start(&second, &o));
	/* Held once by who does both. */
	ASSERT_EQ(0, image_add(second.fd, &other));
	id = load(&self->r, &self->s);
	EXPECT_EQ(0, image_drop(second.fd, id));
	EXPECT_EQ(-ENOENT, image_drop(second.fd, id));
	EXPECT_EQ(0, image_drop(self->fd, id));
	EXPECT_TRUE(image_idle(self->fd));
	gw_reader_finish(&second, &s);
	gw_reader_stop(&second);
	gw_stream_free(&s);
}

TEST_F(image_ioctl, get)
{
	struct gpuwatch_image image = {};
	uint8_t buf[8];
	void *map;

	ASSERT_EQ(0, ADD());
	image.id = load(&self->r, &self->s);
	ASSERT_NE(0, image.id);
#define GET() (ioctl(self->fd, GPUWATCH_IOC_GET_IMAGE, &image) ? -errno : 0)
	image.flags = 2;
	EXPECT_EQ(-EINVAL, GET());
	image.flags = 0;
	image.bytes = 1;
	EXPECT_EQ(-EINVAL, GET());
	image.bytes = 0;
	image.fd = -1;
	EXPECT_EQ(-EINVAL, GET());
	image.fd = 0;
	image.id++;
	EXPECT_EQ(-ENOENT, GET());
	image.id--;
	ASSERT_EQ(0, GET());
	EXPECT_EQ(sizeof(text) - 1, image.bytes);
	EXPECT_EQ(FD_CLOEXEC, fcntl(image.fd, F_GETFD));
	EXPECT_EQ(O_RDONLY, fcntl(image.fd, F_GETFL) & O_ACCMODE);
	EXPECT_EQ(-1, write(image.fd, buf, 1));
	EXPECT_EQ(8, pread(image.fd, buf, 8, 1));
	EXPECT_EQ(0, memcmp(buf, text + 1, 8));
	EXPECT_EQ(2, pread(image.fd, buf, 8, image.bytes - 2));
	EXPECT_EQ(0, pread(image.fd, buf, 8, image.bytes));
	EXPECT_EQ(image.bytes, lseek(image.fd, 0, SEEK_END));
	map = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT_EQ(-1, pread(image.fd, map, 8, 0));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, image.fd, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, image.fd, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, image.fd, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 8192, PROT_READ, MAP_SHARED, image.fd, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED, image.fd, 4096));
	map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, image.fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_EQ(-1, mprotect(map, 4096, PROT_READ | PROT_WRITE));
	EXPECT_EQ(0, memcmp(map, text, sizeof(text) - 1));
	/* What lies behind it in the page is nobody's. */
	EXPECT_EQ(0, ((char *)map)[sizeof(text) - 1] | ((char *)map)[4095]);
	/* Given up: gone for others, there for those who have it open or mapped. */
	EXPECT_EQ(0, image_drop(self->fd, image.id));
	close(image.fd);
	image.fd = 0;
	image.bytes = 0;
	EXPECT_EQ(-ENOENT, GET());
	EXPECT_LT(0, image_status(self->fd).used_bytes);
	EXPECT_EQ(0, memcmp(map, text, sizeof(text) - 1));
	munmap(map, 4096);
	EXPECT_TRUE(image_idle(self->fd));
}

/* A descriptor of an image keeps the module. */
TEST_F(image_ioctl, pins)
{
	struct gpuwatch_image image = {};
	char buf[16];

	ASSERT_EQ(0, ADD());
	image.id = load(&self->r, &self->s);
	ASSERT_EQ(0, GET());
	gw_reader_stop(&self->r);
	lab_wait_detached();
	EXPECT_EQ(-EAGAIN, lab_unload("gpuwatch"));
	EXPECT_EQ(16, read(image.fd, buf, 16));
	EXPECT_EQ(0, memcmp(buf, text, 16));
	close(image.fd);
	lab_gpuwatch_unload();
	EXPECT_FALSE(lab_loaded("gpuwatch"));
	lab_gpuwatch(false);
	ASSERT_EQ(0, gw_reader_start(&self->r, &(struct gw_options) {}));
}

TEST_F(image_ioctl, before_setup)
{
	struct gpuwatch_image image = { .id = 1 };
	int fd = gw_open();

	EXPECT_EQ(-ENXIO, image_add(fd, &self->probe));
	EXPECT_EQ(-ENXIO, image_remove(fd, 1));
	EXPECT_EQ(-ENXIO, image_drop(fd, 1));
	EXPECT_EQ(-ENXIO, ioctl(fd, GPUWATCH_IOC_GET_IMAGE, &image) ? -errno : 0);
	EXPECT_EQ(0, image_status(fd).nr_probes);
	EXPECT_NE(0, gw_info(fd).features & GPUWATCH_FEAT_IMAGES);
	close(fd);
}

/* An open descriptor is not enough: it reads memory of other processes. */
TEST_F(image_ioctl, unprivileged)
{
	int status;

	if (fork() == 0) {
		struct gpuwatch_image image = { .id = 1 };
		int bad = 0;

		if (setgroups(0, NULL) || setresgid(1000, 1000, 1000) || setresuid(1000, 1000, 1000))
			_exit(100);
		bad |= image_add(self->fd, &self->probe) != -EPERM;
		bad |= (image_remove(self->fd, 1) != -EPERM) << 1;
		bad |= (image_drop(self->fd, 1) != -EPERM) << 2;
		bad |= (!ioctl(self->fd, GPUWATCH_IOC_GET_IMAGE, &image) || errno != EPERM) << 3;
		_exit(bad);
	}
	ASSERT_LT(0, wait(&status));
	EXPECT_EQ(0, status);
}

/* Nobody comes for it: it goes by age, and that is counted. */
TEST_F(image_ioctl, age)
{
	struct gpuwatch_image_status before = image_status(self->fd);

	image_param("image_age_ms", 50);
	ASSERT_EQ(0, ADD());
	ASSERT_NE(0, load(&self->r, &self->s));
	EXPECT_TRUE(image_idle(self->fd));
	EXPECT_EQ(before.lost[GPUWATCH_IMAGE_LOSS_EXPIRED] + 1,
		  image_status(self->fd).lost[GPUWATCH_IMAGE_LOSS_EXPIRED]);
}

TEST_F_TIMEOUT(image_ioctl, many_probes, 120)
{
	char nops[64];
	int file = open("/tmp/nops", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	unsigned int i, n = 0;
	int err = 0;

	memset(nops, 0x90, sizeof(nops));
	for (i = 0; i < GPUWATCH_PROBES_MAX / sizeof(nops) + 1; i++)
		ASSERT_EQ(sizeof(nops), write(file, nops, sizeof(nops)));
	for (i = 0; !err; i++) {
		struct gpuwatch_probe p = image_probe_of(file, i, "nop", GPUWATCH_PROBE_CALL, 0);

		err = image_add(self->fd, &p);
		n += !err;
	}
	EXPECT_EQ(-ENOSPC, err);
	EXPECT_EQ(GPUWATCH_PROBES_MAX, n);
	gw_reader_stop(&self->r);
	ASSERT_EQ(0, gw_reader_start(&self->r, &(struct gw_options) {}));
	EXPECT_EQ(0, image_status(self->r.fd).nr_probes);
}

TEST_HARNESS_MAIN
