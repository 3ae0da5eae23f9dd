// SPDX-License-Identifier: Apache-2.0
/*
 * image_capture - what programs hand to libcuda's loaders is captured byte for
 * byte: linked and opened libraries, static programs, forks, threads, two
 * containers, every form of an image in files, memfds and heap, each
 * overwritten as soon as the call is back. Bursts lose nothing within the
 * budget, and every loss beyond it is counted.
 */
#include <kselftest_harness.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../vm/guest/loads.h"
#include "lib/image.h"

#define LIB "/usr/local/bin/libcuda.so.1"
#define LOG "/tmp/loads.log"

/* One record about an image, with the bytes fetched. */
struct seen {
	char comm[16];
	struct gpuwatch_rec_image rec;
	uint8_t head[256];
	uint8_t *bytes;
	size_t n;
	bool used;
};

FIXTURE(image_capture) {
	struct gw_reader r;
	struct gw_stream s;
	size_t next;			/* record to look at */
	struct seen *seen;
	size_t nr_seen, nr_expected;
	bool copies;			/* attach to libraries of processes that open a node */
};

FIXTURE_SETUP(image_capture)
{
	struct gw_options o = { .ring_bytes = 8 << 20 };

	lab_fresh(false, "");
	image_params_default();
	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	image_add_all(self->r.fd, LIB);
	unlink(LOG);
	self->seen = calloc(20000, sizeof(*self->seen));
	ASSERT_NE(NULL, self->seen);
}

FIXTURE_TEARDOWN(image_capture)
{
	gw_reader_stop(&self->r);
	gw_stream_free(&self->s);
}

/* The libcuda that @pid has mapped, attached through its mapping. */
static void attach_copy(int fd, unsigned int pid)
{
	char path[64], line[512], link[128];
	unsigned long long from, to;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "libcuda") || !strstr(line, "r-xp") ||
		    sscanf(line, "%llx-%llx", &from, &to) != 2)
			continue;
		snprintf(link, sizeof(link), "/proc/%u/map_files/%llx-%llx", pid, from, to);
		image_add_all(fd, link);
		break;
	}
	if (maps)
		fclose(maps);
}

static void take(FIXTURE_DATA(image_capture) *self, bool fetch)
{
	gw_reader_drain(&self->r, &self->s);
	for (; self->next < self->s.nr; self->next++) {
		const struct gpuwatch_rec *rec = gw_rec(&self->s, self->next);
		const struct gpuwatch_rec_image *image = image_rec(rec);
		struct seen *seen = &self->seen[self->nr_seen];
		int err;

		if (self->copies && rec->type == GPUWATCH_REC_OPEN)
			attach_copy(self->r.fd, rec->tgid);
		if (!image || self->nr_seen == 20000)
			continue;
		self->nr_seen++;
		memcpy(seen->comm, rec->comm, sizeof(seen->comm));
		seen->rec = *image;
		memcpy(seen->head, image + 1, image->head_len < 256 ? image->head_len : 256);
		if (fetch && image->id)
			seen->bytes = image_get(self->r.fd, image->id, true, &seen->n, &err);
	}
}

static int run(FIXTURE_DATA(image_capture) *self, const char *const *argv, bool fetch)
{
	struct lab_run run;
	int status;

	lab_start(&run, argv);
	while (!lab_done(&run, &status)) {
		take(self, fetch);
		usleep(2000);
	}
	gw_reader_finish(&self->r, &self->s);
	take(self, fetch);
	if (status)
		printf("# %s ended with %d: %s\n", argv[0], status, run.text);
	return status;
}

static uint8_t *file_bytes(const char *path, size_t *n)
{
	static char last[64];
	static uint8_t buf[1 << 16];
	static size_t last_n;

	if (strcmp(last, path)) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		last_n = fd < 0 ? 0 : read(fd, buf, sizeof(buf));
		close(fd);
		snprintf(last, sizeof(last), "%s", path);
	}
	*n = last_n;
	return buf;
}

/* What is wrong with @seen, or NULL. */
static const char *judge(const struct loads_entry *e, const struct seen *s)
{
	static uint8_t made[1 << 16];
	const uint8_t *want = made;
	size_t n = e->made_bytes, pad, i;

	if (strcmp(e->symbol, s->rec.symbol))
		return "another function";
	if (e->kind != s->rec.kind)
		return "another kind";
	if (e->address != s->rec.address)
		return "another address";
	if (s->rec.flags & ~(GPUWATCH_IMAGEF_WRAPPED | GPUWATCH_IMAGEF_SIZED))
		return "flags";
	if (e->kind == GPUWATCH_IMAGE_CALL)
		return s->rec.id || s->rec.head_len ? "something in a mere call" : NULL;
	if (e->kind == GPUWATCH_IMAGE_PATH)
		return s->rec.id || s->rec.head_len != strlen(e->file) || s->rec.bytes != strlen(e->file) ||
		       memcmp(s->head, e->file, s->rec.head_len) ? "path" : NULL;
	if (e->made_bytes)
		loads_make(made, n, e->seed);
	else
		want = file_bytes(e->file, &n);
	pad = (n + 7) / 8 * 8;
	if (e->parts != s->rec.nr_parts || s->rec.bytes != pad * (e->parts - 1) + n)
		return "size";
	if (s->rec.copied_bytes != s->rec.bytes || s->n != s->rec.bytes || !s->bytes)
		return "not all stored";
	for (i = 0; i < e->parts; i++)
		if (memcmp(s->bytes + i * pad, want, n))
			return "bytes";
	return memcmp(s->head, want, s->rec.head_len) ? "head" : NULL;
}

/* Every load of the log has a record, in the order of its thread, and nothing else has. */
static unsigned int compare(FIXTURE_DATA(image_capture) *self)
{
	struct loads_entry e;
	int fd = open(LOG, O_RDONLY | O_CLOEXEC);
	unsigned int wrong = 0;
	size_t i, first = 0;

	self->nr_expected = 0;
	while (read(fd, &e, sizeof(e)) == sizeof(e)) {
		const char *why = "no record";

		self->nr_expected++;
		while (first < self->nr_seen && self->seen[first].used)
			first++;
		for (i = first; i < self->nr_seen; i++)
			if (!self->seen[i].used && !strncmp(self->seen[i].comm, e.comm, 16))
				break;
		if (i < self->nr_seen) {
			self->seen[i].used = true;
			why = judge(&e, &self->seen[i]);
		}
		if (why && wrong++ < 5)
			printf("# %.16s %s %s: %s (record: %s kind %u, %llu of %llu bytes, flags %x, head %u)\n",
			       e.comm, e.symbol, e.file, why, i < self->nr_seen ? self->seen[i].rec.symbol : "-",
			       self->seen[i].rec.kind, (unsigned long long)self->seen[i].rec.copied_bytes,
			       (unsigned long long)self->seen[i].rec.bytes, self->seen[i].rec.flags,
			       self->seen[i].rec.head_len);
	}
	close(fd);
	for (i = 0; i < self->nr_seen; i++) {
		free(self->seen[i].bytes);
		self->seen[i].bytes = NULL;
		wrong += !self->seen[i].used;
	}
	return wrong;
}

#define EACH 94	/* loads of one thread: 5 loaders x 6 images x 3 places, 3 paths, 1 call */

static unsigned int stored_exactly(FIXTURE_DATA(image_capture) *self, const char *const *argv,
				   unsigned int loads)
{
	unsigned int wrong;

	if (run(self, argv, true))
		return ~0U;
	wrong = compare(self);
	if (self->nr_expected != loads || self->nr_seen != loads)
		printf("# %zu loads and %zu records where %u were expected\n", self->nr_expected,
		       self->nr_seen, loads);
	return wrong + (self->nr_expected != loads) + (self->nr_seen != loads) +
	       !image_idle(self->r.fd);
}

#define EXACT(name, loads, ...) \
	TEST_F_TIMEOUT(image_capture, name, 180) { \
		static const char *const argv[] = { __VA_ARGS__, NULL }; \
		EXPECT_EQ(0, stored_exactly(self, argv, loads)); \
	}

EXACT(linked, EACH, "gw-loads", "--name", "linked", "--log", LOG)
EXACT(opened_by_static, EACH, "gw-loads-static", "--name", "static", "--log", LOG, "--lib", LIB)
EXACT(forked, 4 * EACH, "gw-loads", "--name", "forked", "--log", LOG, "--forks", "3")
EXACT(threaded, 4 * EACH, "gw-loads", "--name", "threaded", "--log", LOG, "--threads", "4")

/* One container with the host's library, one with a copy of its own, which is
 * attached when its process opens a node. */
TEST_F_TIMEOUT(image_capture, two_containers, 180)
{
	static const char *const argv[] = { "sh", "-c",
		"mkdir -p /tmp/own && cp " LIB " /tmp/own/libcuda.so.1 || exit 9\n"
		"gw-container one --cgroup /lab/one -- gw-loads --name one --log " LOG " --threads 2 & a=$!\n"
		"gw-container two --cgroup /lab/two --uid 1000 -- gw-loads-static --name two --log " LOG
		" --lib /tmp/own/libcuda.so.1 --open /dev/nvidiactl --wait-for-probe & b=$!\n"
		"wait $a && wait $b", NULL };
	uint64_t cgroups[2] = {}, libraries[2] = {};
	size_t i;

	close(open(LOG, O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
	chmod(LOG, 0666);
	self->copies = true;
	EXPECT_EQ(0, stored_exactly(self, argv, 3 * EACH));
	for (i = 0; i < self->s.nr; i++) {
		const struct gpuwatch_rec *rec = gw_rec(&self->s, i);
		unsigned int two = !strncmp(rec->comm, "two", 3);

		if (!image_rec(rec))
			continue;
		EXPECT_EQ(two ? 1000 : 0, rec->uid);
		cgroups[two] = rec->cgroup_id;
		libraries[two] = image_rec(rec)->library_ino;
	}
	EXPECT_NE(cgroups[0], cgroups[1]);
	EXPECT_NE(libraries[0], libraries[1]);
}

/* All of a burst is there although nobody fetches before its end. */
TEST_F_TIMEOUT(image_capture, burst, 240)
{
	unsigned int loads = lab_scaled(10000) / 4 * 4, wrong, bad = 0;
	struct gpuwatch_image_status before = image_status(self->r.fd), after;
	char count[16];
	const char *const argv[] = { "gw-loads", "--name", "burst", "--log", LOG, "--forks", "4",
				     "--threads", "0", "--made", "4096", "--count", count, NULL };
	size_t i;

	snprintf(count, sizeof(count), "%u", loads / 4);
	ASSERT_EQ(0, run(self, argv, false));
	after = image_status(self->r.fd);
	EXPECT_EQ(loads, self->nr_seen);
	EXPECT_EQ(loads, after.stored - before.stored);
	EXPECT_EQ(loads, after.nr_stored);
	EXPECT_EQ(loads * 4096ULL, after.stored_bytes - before.stored_bytes);
	EXPECT_EQ(0, memcmp(before.lost, after.lost, sizeof(after.lost)));
	for (i = 0; i < self->nr_seen; i++) {
		struct seen *s = &self->seen[i];
		int err;

		s->bytes = image_get(self->r.fd, s->rec.id, true, &s->n, &err);
		bad += !!err;
	}
	EXPECT_EQ(0, bad);
	wrong = compare(self);
	EXPECT_EQ(0, wrong);
	EXPECT_EQ(loads, self->nr_expected);
	EXPECT_TRUE(image_idle(self->r.fd));
	printf("# %u loads, %llu bytes of memory for each image of 4096\n", loads,
	       (unsigned long long)after.used_bytes / loads);
}

/* The same with room for a few: every image is either stored or counted, and told. */
TEST_F_TIMEOUT(image_capture, burst_beyond_budget, 240)
{
	unsigned int loads = lab_scaled(4000) / 4 * 4, over = 0, with_id = 0;
	struct gpuwatch_image_status before = image_status(self->r.fd), after;
	char count[16];
	const char *const argv[] = { "gw-loads", "--name", "burst", "--log", LOG, "--forks", "4",
				     "--threads", "0", "--made", "4096", "--count", count, NULL };
	size_t i;

	image_param("image_total_bytes", loads / 10 * 4096);
	snprintf(count, sizeof(count), "%u", loads / 4);
	ASSERT_EQ(0, run(self, argv, false));
	after = image_status(self->r.fd);
	for (i = 0; i < self->nr_seen; i++) {
		const struct gpuwatch_rec_image *rec = &self->seen[i].rec;
		bool lost = rec->flags & GPUWATCH_IMAGEF_OVER_BUDGET;

		over += lost;
		with_id += rec->id != 0;
		EXPECT_EQ(lost, !rec->id);
		EXPECT_EQ(4096, rec->bytes);
		EXPECT_EQ(lost ? 0 : 4096, rec->copied_bytes);
		EXPECT_EQ(GPUWATCH_IMAGE_HEAD, rec->head_len);
	}
	EXPECT_EQ(loads, self->nr_seen);
	EXPECT_EQ(with_id, after.stored - before.stored);
	EXPECT_EQ(over, after.lost[GPUWATCH_IMAGE_LOSS_OVER_BUDGET] -
			before.lost[GPUWATCH_IMAGE_LOSS_OVER_BUDGET]);
	EXPECT_LT(loads / 12, with_id);
	EXPECT_GE(loads / 10, with_id);
	EXPECT_GE(loads / 10 * 4096ULL, after.used_bytes);
	printf("# %u loads, %u stored, %u over the budget\n", loads, with_id, over);
	/* Given up with the file. */
	gw_reader_stop(&self->r);
	ASSERT_EQ(0, gw_reader_start(&self->r, &(struct gw_options) {}));
	EXPECT_TRUE(image_idle(self->r.fd));
	image_params_default();
}

/* Too large for one: told with its first bytes and size, and counted. */
TEST_F(image_capture, too_big)
{
	static const char *const argv[] = { "gw-loads", "--name", "big", "--log", LOG, "--made", "65536",
					    "--count", "3", NULL };
	struct gpuwatch_image_status before = image_status(self->r.fd);
	size_t i;

	image_param("image_max_bytes", 65535);
	ASSERT_EQ(0, run(self, argv, true));
	EXPECT_EQ(3, self->nr_seen);
	for (i = 0; i < self->nr_seen; i++) {
		EXPECT_EQ(GPUWATCH_IMAGEF_TOO_BIG, self->seen[i].rec.flags);
		EXPECT_EQ(65536, self->seen[i].rec.bytes);
		EXPECT_EQ(0, self->seen[i].rec.id);
		EXPECT_EQ(0, memcmp(self->seen[i].head, "\x50\xed\x55\xba", 4));
	}
	EXPECT_EQ(before.lost[GPUWATCH_IMAGE_LOSS_TOO_BIG] + 3,
		  image_status(self->r.fd).lost[GPUWATCH_IMAGE_LOSS_TOO_BIG]);
	EXPECT_TRUE(image_idle(self->r.fd));
	image_params_default();
}

TEST_HARNESS_MAIN
