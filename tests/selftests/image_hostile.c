// SPDX-License-Identifier: Apache-2.0
/*
 * image_hostile - arguments that lie, memory that goes away or never comes,
 * callers that are killed, modules unloaded meanwhile: the caller goes on as
 * if nothing had been, the record says what is missing, and the budget comes
 * back to 0. The probed function is one of this program itself.
 */
#include <kselftest_harness.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/userfaultfd.h>

#include "../vm/guest/loads.h"
#include "lib/image.h"

#define LIB "/usr/local/bin/libcuda.so.1"
#define BAD_FLAGS (GPUWATCH_IMAGEF_FAULT | GPUWATCH_IMAGEF_MALFORMED | GPUWATCH_IMAGEF_TOO_BIG | \
		   GPUWATCH_IMAGEF_OVER_BUDGET | GPUWATCH_IMAGEF_NO_MEMORY | GPUWATCH_IMAGEF_DEADLINE)

__attribute__((noinline)) int probed(int junk, const void *image, size_t bytes)
{
	__asm__ volatile("" : : "r"(junk), "r"(image), "r"(bytes) : "memory");
	return junk + 1;
}

__attribute__((noinline)) int probed_sized(int junk, const void *image, size_t bytes)
{
	__asm__ volatile("nop" : : "r"(junk), "r"(image), "r"(bytes) : "memory");
	return junk + 2;
}

__attribute__((noinline)) int probed_path(int junk, const void *path)
{
	__asm__ volatile("nop; nop" : : "r"(junk), "r"(path) : "memory");
	return junk + 3;
}

FIXTURE(image_hostile) {
	struct gw_reader r;
	struct gw_stream s;
	uint32_t id;		/* of the first probe */
};

static int add(int fd, const char *symbol, unsigned int kind, uint32_t *id)
{
	int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), err;
	struct gpuwatch_probe p = image_probe_of(exe, image_symbol("/proc/self/exe", symbol), symbol,
						 kind, 1);

	p.size_argument = kind == GPUWATCH_PROBE_SIZED ? 2 : 0;
	err = image_add(fd, &p);
	*id = p.id;
	close(exe);
	return err;
}

FIXTURE_SETUP(image_hostile)
{
	struct gw_options o = { .ring_bytes = 4 << 20 };
	uint32_t id;

	lab_fresh(false, "");
	image_params_default();
	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	ASSERT_EQ(0, add(self->r.fd, "probed", GPUWATCH_PROBE_IMAGE, &self->id));
	ASSERT_EQ(0, add(self->r.fd, "probed_sized", GPUWATCH_PROBE_SIZED, &id));
	ASSERT_EQ(0, add(self->r.fd, "probed_path", GPUWATCH_PROBE_PATH, &id));
}

FIXTURE_TEARDOWN(image_hostile)
{
	gw_reader_stop(&self->r);
	gw_stream_free(&self->s);
	image_params_default();
}

/* The next image record, or NULL. */
static const struct gpuwatch_rec_image *next(struct gw_reader *r, struct gw_stream *s)
{
	size_t i;

	gw_stream_clear(s);
	gw_reader_finish(r, s);
	for (i = 0; i < s->nr; i++)
		if (image_rec(gw_rec(s, i)))
			return image_rec(gw_rec(s, i));
	return NULL;
}

static uint8_t *area(size_t bytes)
{
	uint8_t *at = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		abort();
	mprotect(at + bytes, 4096, PROT_NONE);
	return at;
}

/* Writes at the end of a page, before memory that can't be read. */
static const void *at_end(const void *bytes, size_t n)
{
	uint8_t *at = area(8192);

	memset(at, 0xee, 8192);
	memcpy(at + 8192 - n, bytes, n);
	return at + 8192 - n;
}

static const void *container(uint16_t header, uint64_t body, size_t there)
{
	uint8_t bytes[64] = { 0x50, 0xed, 0x55, 0xba, 1, 0, header & 0xff, header >> 8 };

	memcpy(bytes + 8, &body, 8);
	return at_end(bytes, there);
}

static const void *wrapper(uint32_t version, uint64_t to, uint64_t list)
{
	struct { uint32_t magic, version; uint64_t to, list; } w = { 0x466243b1, version, to, list };

	return at_end(&w, sizeof(w));
}

static const void *elf(uint64_t shoff, uint16_t shnum, uint16_t shentsize, uint64_t phoff, uint16_t phnum)
{
	static Elf64_Ehdr h;

	memset(&h, 0, sizeof(h));
	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_shoff = shoff;
	h.e_shnum = shnum;
	h.e_shentsize = shentsize;
	h.e_phoff = phoff;
	h.e_phnum = phnum;
	h.e_phentsize = sizeof(Elf64_Phdr);
	return at_end(&h, sizeof(h));
}

/* Its tables would lie 2 MiB on, where sections of 2^64 bytes can be read. */
static const void *elf_before_noise(void)
{
	uint8_t *at = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	memset(at + (2 << 20), 0xff, 6 << 20);
	memcpy(at, elf(2 << 20, 0xffff, 64, 0, 0), sizeof(Elf64_Ehdr));
	return at;
}

static const void *elf32(void)
{
	static const uint8_t head[64] = { 0x7f, 'E', 'L', 'F', 1 };

	return at_end(head, sizeof(head));
}

static const void *endless_text(void)
{
	uint8_t *at = area(1 << 19);

	memset(at, 'x', 1 << 19);
	return at;
}

#define KERNEL 0xffffffff81000000ULL
#define FAULT GPUWATCH_IMAGEF_FAULT
#define MALFORMED GPUWATCH_IMAGEF_MALFORMED
#define TOO_BIG GPUWATCH_IMAGEF_TOO_BIG
#define WRAPPED GPUWATCH_IMAGEF_WRAPPED

TEST_F_TIMEOUT(image_hostile, lies, 120)
{
	const struct {
		const char *name;
		const void *image;
		unsigned int kind, flags;
		uint64_t copied;
	} cases[] = {
		{ "null", NULL, GPUWATCH_IMAGE_UNKNOWN, FAULT, 0 },
		{ "one", (void *)1, GPUWATCH_IMAGE_UNKNOWN, FAULT, 0 },
		{ "kernel", (void *)KERNEL, GPUWATCH_IMAGE_UNKNOWN, FAULT, 0 },
		{ "last", (void *)~0ULL, GPUWATCH_IMAGE_UNKNOWN, FAULT, 0 },
		{ "not canonical", (void *)0x8000000000000000ULL, GPUWATCH_IMAGE_UNKNOWN, FAULT, 0 },
		{ "end of user memory", (void *)0x7ffffffff000ULL, GPUWATCH_IMAGE_UNKNOWN, FAULT, 0 },
		{ "unreadable", area(4096) + 4096, GPUWATCH_IMAGE_UNKNOWN, FAULT, 0 },
		{ "one byte", at_end("\x50", 1), GPUWATCH_IMAGE_TEXT, FAULT, 1 },
		{ "binary", at_end("\1\2\3\4\5\6\7\10", 8), GPUWATCH_IMAGE_UNKNOWN, MALFORMED, 0 },
		{ "container cut in its head", container(16, 0, 12), GPUWATCH_IMAGE_FATBIN, FAULT, 0 },
		{ "container without a body", container(16, 0, 16), GPUWATCH_IMAGE_FATBIN, 0, 16 },
		{ "container head too small", container(8, 0, 16), GPUWATCH_IMAGE_FATBIN, MALFORMED, 0 },
		{ "container past memory", container(16, 64, 64), GPUWATCH_IMAGE_FATBIN, FAULT, 64 },
		{ "container of 2^64", container(16, ~0ULL, 64), GPUWATCH_IMAGE_FATBIN, MALFORMED, 0 },
		{ "container of 2^63", container(16, 1ULL << 63, 64), GPUWATCH_IMAGE_FATBIN, MALFORMED, 0 },
		{ "container over the budget", container(16, 2 << 20, 64), GPUWATCH_IMAGE_FATBIN, TOO_BIG, 0 },
		{ "wrapper to null", wrapper(1, 0, 0), GPUWATCH_IMAGE_FATBIN, WRAPPED | FAULT, 0 },
		{ "wrapper to kernel", wrapper(1, KERNEL, 0), GPUWATCH_IMAGE_FATBIN, WRAPPED | FAULT, 0 },
		{ "wrapper to text", wrapper(1, (uintptr_t)"a text of no meaning", 0),
		  GPUWATCH_IMAGE_FATBIN, WRAPPED | MALFORMED, 0 },
		{ "list in kernel", wrapper(2, (uintptr_t)container(16, 0, 16), KERNEL),
		  GPUWATCH_IMAGE_FATBIN, WRAPPED, 16 },
		{ "list of nonsense", wrapper(2, (uintptr_t)container(16, 0, 16), (uintptr_t)endless_text()),
		  GPUWATCH_IMAGE_FATBIN, WRAPPED, 16 },
		{ "elf without tables", elf(0, 0, 64, 0, 0), GPUWATCH_IMAGE_ELF, 0, 64 },
		{ "elf tables past memory", elf(64, 10, 64, 0, 0), GPUWATCH_IMAGE_ELF, FAULT, 64 },
		{ "elf tables at 2^64", elf(~0ULL - 63, 1, 64, 0, 0), GPUWATCH_IMAGE_ELF, MALFORMED, 0 },
		{ "elf over the budget", elf(2 << 20, 0xffff, 64, 0, 0), GPUWATCH_IMAGE_ELF, TOO_BIG, 0 },
		{ "elf tables over the budget, with another's memory there", elf_before_noise(),
		  GPUWATCH_IMAGE_ELF, TOO_BIG, 0 },
		{ "elf odd entries", elf(64, 1, 65, 0, 0), GPUWATCH_IMAGE_ELF, MALFORMED, 0 },
		{ "elf segments at 2^64", elf(0, 0, 64, ~0ULL, 1), GPUWATCH_IMAGE_ELF, MALFORMED, 0 },
		{ "elf of 32 bits", elf32(), GPUWATCH_IMAGE_UNKNOWN, MALFORMED, 0 },
		{ "text without end", endless_text(), GPUWATCH_IMAGE_TEXT, FAULT, 1 << 19 },
	};
	struct gpuwatch_image_status before, after;
	unsigned int i, reason, lost;

	image_param("image_max_bytes", 1 << 20);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct gpuwatch_rec_image *rec;

		before = image_status(self->r.fd);
		ASSERT_EQ(43, probed(42, cases[i].image, 0));
		rec = next(&self->r, &self->s);
		ASSERT_NE(NULL, rec)
			TH_LOG("%s", cases[i].name);
		EXPECT_EQ(cases[i].kind, rec->kind)
			TH_LOG("%s: kind", cases[i].name);
		EXPECT_EQ(cases[i].flags, rec->flags)
			TH_LOG("%s: flags", cases[i].name);
		EXPECT_EQ(cases[i].copied, rec->copied_bytes)
			TH_LOG("%s: bytes", cases[i].name);
		EXPECT_EQ((uintptr_t)cases[i].image, rec->address);
		EXPECT_EQ(!cases[i].copied, !rec->id);
		if (rec->id)
			EXPECT_EQ(0, image_drop(self->r.fd, rec->id));
		after = image_status(self->r.fd);
		for (lost = reason = 0; reason < GPUWATCH_IMAGE_LOSS_MAX; reason++)
			lost += after.lost[reason] - before.lost[reason];
		EXPECT_EQ(!!(rec->flags & BAD_FLAGS), lost)
			TH_LOG("%s: %u losses", cases[i].name, lost);
	}
	EXPECT_TRUE(image_idle(self->r.fd));
}

TEST_F_TIMEOUT(image_hostile, sizes, 60)
{
	static const char text[] = "bytes by number";
	const struct {
		const void *image;
		size_t bytes;
		unsigned int flags;
		uint64_t copied;
	} cases[] = {
		{ text, sizeof(text), 0, sizeof(text) },
		{ text, 1, 0, 1 },
		{ text, 0, 0, 0 },
		{ NULL, 0, 0, 0 },
		{ NULL, 8, FAULT, 0 },
		{ text, ~0ULL, MALFORMED, 0 },
		{ text, 1 << 20, TOO_BIG, 0 },
		{ at_end(text, 8), 9, FAULT, 8 },
	};
	char *path = malloc(8192);
	unsigned int i;

	image_param("image_max_bytes", (1 << 20) - 1);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct gpuwatch_rec_image *rec;

		ASSERT_EQ(44, probed_sized(42, cases[i].image, cases[i].bytes));
		rec = next(&self->r, &self->s);
		ASSERT_NE(NULL, rec);
		EXPECT_EQ(cases[i].flags | GPUWATCH_IMAGEF_SIZED, rec->flags)
			TH_LOG("case %u", i);
		EXPECT_EQ(cases[i].copied, rec->copied_bytes)
			TH_LOG("case %u", i);
		if (rec->id)
			EXPECT_EQ(0, image_drop(self->r.fd, rec->id));
	}
	/* Paths: the longest, longer ones, and none. */
	for (i = 4094; i <= 4097; i++) {
		const struct gpuwatch_rec_image *rec;

		memset(path, '/', i);
		path[i] = '\0';
		ASSERT_EQ(45, probed_path(42, path));
		rec = next(&self->r, &self->s);
		ASSERT_NE(NULL, rec);
		EXPECT_EQ(i > 4095 ? TOO_BIG : 0, rec->flags);
		EXPECT_EQ(i > 4095 ? 4096 : i, rec->head_len);
		EXPECT_EQ(0, memcmp(rec + 1, path, rec->head_len));
	}
	probed_path(42, NULL);
	EXPECT_EQ(FAULT, next(&self->r, &self->s)->flags);
	probed_path(42, at_end("/tmp", 4));
	EXPECT_EQ(FAULT, next(&self->r, &self->s)->flags);
	EXPECT_EQ(4, ((const struct gpuwatch_rec_image *)image_rec(gw_rec(&self->s, self->s.nr - 1)))->head_len);
	EXPECT_TRUE(image_idle(self->r.fd));
}

struct shaker {
	uint8_t *at;
	size_t bytes;
	volatile bool stop;
};

/* Takes the middle of the image away, and puts it back. */
static void *shake(void *arg)
{
	struct shaker *s = arg;

	while (!s->stop) {
		munmap(s->at + s->bytes / 2, s->bytes / 4);
		sched_yield();
		mmap(s->at + s->bytes / 2, s->bytes / 4, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		sched_yield();
	}
	return NULL;
}

TEST_F_TIMEOUT(image_hostile, unmapped_meanwhile, 120)
{
	struct shaker s = { .bytes = 1 << 20 };
	unsigned int i, n = lab_scaled(60), whole = 0, cut = 0, wrong = 0;
	pthread_t thread;

	s.at = area(s.bytes);
	loads_make(s.at, s.bytes, 7);
	ASSERT_EQ(0, pthread_create(&thread, NULL, shake, &s));
	for (i = 0; i < n; i++) {
		const struct gpuwatch_rec_image *rec;

		ASSERT_EQ(43, probed(42, s.at, 0));
		rec = next(&self->r, &self->s);
		ASSERT_NE(NULL, rec);
		wrong += rec->copied_bytes > rec->bytes || rec->bytes != s.bytes;
		if (rec->copied_bytes == s.bytes) {
			whole++;
			wrong += rec->flags != 0;
		} else {
			cut++;
			wrong += !(rec->flags & FAULT) || rec->copied_bytes < s.bytes / 2;
		}
		wrong += image_drop(self->r.fd, rec->id) != 0;
	}
	s.stop = true;
	pthread_join(thread, NULL);
	EXPECT_EQ(0, wrong);
	EXPECT_TRUE(image_idle(self->r.fd));
	printf("# %u whole, %u cut\n", whole, cut);
}

TEST_F(image_hostile, deadline)
{
	uint8_t *at = area(16 << 20);
	const struct gpuwatch_rec_image *rec;

	loads_make(at, 16 << 20, 3);
	image_param("image_deadline_ms", 1);
	ASSERT_EQ(43, probed(42, at, 0));
	rec = next(&self->r, &self->s);
	ASSERT_NE(NULL, rec);
	EXPECT_EQ(GPUWATCH_IMAGEF_DEADLINE, rec->flags);
	EXPECT_GT(16 << 20, rec->copied_bytes);
	EXPECT_EQ(16 << 20, rec->bytes);
	if (rec->id)
		image_drop(self->r.fd, rec->id);
	EXPECT_TRUE(image_idle(self->r.fd));
}

/* Killed at every stage of a copy: nothing of it stays. */
TEST_F_TIMEOUT(image_hostile, killed, 180)
{
	struct gpuwatch_image_status before = image_status(self->r.fd), after;
	unsigned int i, n = lab_debug_kernel() ? 3 : 8;
	size_t bytes = 16 << 20, j;

	for (i = 0; i < n; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			uint8_t *at = area(bytes);

			loads_make(at, 4096, 1);
			((uint64_t *)at)[1] = bytes - LOADS_HEAD;
			for (;;)
				probed(1, at, 0);
		}
		while (image_status(self->r.fd).used_bytes == 0)
			usleep(500);
		usleep(i * 3000);
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
		/* Those that were stored before are given up; no other is left. */
		gw_stream_clear(&self->s);
		gw_reader_finish(&self->r, &self->s);
		for (j = 0; j < self->s.nr; j++)
			if (image_rec(gw_rec(&self->s, j)) && image_rec(gw_rec(&self->s, j))->id)
				EXPECT_EQ(0, image_drop(self->r.fd, image_rec(gw_rec(&self->s, j))->id));
		ASSERT_TRUE(image_idle(self->r.fd))
			TH_LOG("round %u", i);
	}
	after = image_status(self->r.fd);
	printf("# %llu of %u were killed inside a copy\n",
	       (unsigned long long)(after.lost[GPUWATCH_IMAGE_LOSS_KILLED] -
				    before.lost[GPUWATCH_IMAGE_LOSS_KILLED]), n);
}

/* Memory whose faults nobody answers: its owner waits, nobody else does. */
TEST_F_TIMEOUT(image_hostile, never_comes, 120)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {};
	uint8_t *at = area(1 << 20);
	unsigned long long begin;
	struct gw_options o = {};
	int uffd, status, fd;
	char go;
	int ends[2];
	uint32_t id;
	pid_t pid;

	uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (uffd < 0 && errno == ENOSYS)
		SKIP(return, "this kernel is built without userfaultfd");
	ASSERT_LE(0, uffd);
	ASSERT_EQ(0, pipe(ends));
	pid = fork();
	if (pid == 0) {
		close(uffd);
		uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
		range.range.start = (uintptr_t)at + 4096;
		range.range.len = (1 << 20) - 4096;
		range.mode = UFFDIO_REGISTER_MODE_MISSING;
		if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &range))
			_exit(1);
		loads_make(at, 4096, 1);
		((uint64_t *)at)[1] = (1 << 20) - LOADS_HEAD;
		if (write(ends[1], "x", 1) != 1)
			_exit(2);
		probed(1, at, 0);
		_exit(3);
	}
	ASSERT_EQ(1, read(ends[0], &go, 1));
	while (!image_status(self->r.fd).pending)
		usleep(1000);
	usleep(50000);
	EXPECT_EQ(1, image_status(self->r.fd).pending);
	/* Others load, and the same probe goes and comes. */
	ASSERT_EQ(43, probed(42, "text", 0));
	EXPECT_NE(NULL, next(&self->r, &self->s));
	begin = gw_now_ns();
	EXPECT_EQ(0, image_remove(self->r.fd, self->id));
	EXPECT_EQ(0, add(self->r.fd, "probed", GPUWATCH_PROBE_IMAGE, &id));
	EXPECT_GT(5e9, gw_now_ns() - begin);
	/* The consumer goes, and the module says at once that it can't. */
	begin = gw_now_ns();
	gw_reader_stop(&self->r);
	EXPECT_GT(5e9, gw_now_ns() - begin);
	lab_wait_detached();
	begin = gw_now_ns();
	EXPECT_EQ(-EAGAIN, lab_unload("gpuwatch"));
	EXPECT_GT(1e9, gw_now_ns() - begin);
	fd = gw_open();
	EXPECT_EQ(1, image_status(fd).pending);
	EXPECT_EQ(0, waitpid(pid, &status, WNOHANG));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_TRUE(image_idle(fd));
	close(fd);
	close(uffd);
	lab_gpuwatch_unload();
	EXPECT_FALSE(lab_loaded("gpuwatch"));
	lab_gpuwatch(false);
	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
}

/* Loaded, probed and unloaded while four processes load images without end. */
TEST_F_TIMEOUT(image_hostile, unloads, 300)
{
	static const char *const argv[] = { "gw-loads", "--name", "busy", "--forks", "4", "--threads", "0",
					    "--made", "32768", "--count", "1000000", "--pause", "500", NULL };
	unsigned int i, n = lab_scaled(10), seen = 0;
	struct lab_run run;
	int status;

	lab_start(&run, argv);
	for (i = 0; i < n; i++) {
		struct gw_options o = { .ring_bytes = 1 << 20 };
		unsigned long long hits;

		gw_reader_stop(&self->r);
		lab_gpuwatch_unload();
		ASSERT_FALSE(lab_loaded("gpuwatch"));
		ASSERT_EQ(0, lab_load("gpuwatch.ko", ""));
		image_param("image_total_bytes", 1 << 20);
		ASSERT_EQ(0, gw_reader_start(&self->r, &o));
		image_add_all(self->r.fd, LIB);
		do {
			usleep(2000);
			hits = image_status(self->r.fd).hits;
		} while (hits < 20);
		gw_stream_clear(&self->s);
		gw_reader_finish(&self->r, &self->s);
		seen += self->s.nr > 0;
		ASSERT_FALSE(lab_done(&run, &status));
	}
	kill(run.pid, SIGKILL);	/* its children go with it */
	lab_finish(&run);
	gw_reader_stop(&self->r);
	lab_wait_detached();
	lab_gpuwatch_unload();
	EXPECT_FALSE(lab_loaded("gpuwatch"));
	lab_gpuwatch(false);
	ASSERT_EQ(0, gw_reader_start(&self->r, &(struct gw_options) {}));
	EXPECT_EQ(n, seen);
}

TEST_HARNESS_MAIN
