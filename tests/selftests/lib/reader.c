// SPDX-License-Identifier: Apache-2.0
/*
 * reader.c - see reader.h. Trouble that no test provokes, such as a lack of
 * memory, ends the program: a test that cannot run must not pass.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "reader.h"

static void give_up(const char *what)
{
	printf("# reader: %s: %s\n", what, strerror(errno));
	fflush(stdout);
	abort();
}

uint64_t gw_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

int gw_open(void)
{
	/* Writable, since the consumer page is mapped shared. */
	int fd = open("/dev/gpuwatch", O_RDWR | O_CLOEXEC | O_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

int gw_setup(int fd, const struct gw_options *o)
{
	uint64_t bytes = o->ring_bytes ? o->ring_bytes : 4 << 20;
	struct gpuwatch_setup setup = {
		.abi_major = GPUWATCH_ABI_MAJOR,
		.flags = o->hold_images ? GPUWATCH_SETUP_HOLD_IMAGES : 0,
		.mode = o->mode,
		.ring_bytes = bytes,
		.watermark_bytes = o->watermark ? o->watermark : bytes / 4,
	};

	return ioctl(fd, GPUWATCH_IOC_SETUP, &setup) ? -errno : 0;
}

int gw_reader_map(struct gw_reader *r, int fd)
{
	long page = sysconf(_SC_PAGESIZE);
	unsigned int i;

	r->fd = fd;
	r->meta = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	if (r->meta == MAP_FAILED)
		return -errno;
	r->info = *r->meta;
	r->rings = calloc(r->info.nr_cpus, sizeof(*r->rings));
	if (!r->rings)
		give_up("calloc");
	for (i = 0; i < r->info.nr_cpus; i++) {
		uint64_t at = GPUWATCH_MMAP_CPU(&r->info, i);
		uint8_t *p;

		r->rings[i].cons = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
		if (r->rings[i].cons == MAP_FAILED)
			return -errno;
		p = mmap(NULL, page + 2 * r->info.ring_bytes, PROT_READ, MAP_SHARED, fd, at + page);
		if (p == MAP_FAILED)
			return -errno;
		r->rings[i].prod = (const void *)p;
		r->rings[i].data = p + page;
	}
	return 0;
}

int gw_reader_start(struct gw_reader *r, const struct gw_options *o)
{
	int fd = gw_open(), err;

	memset(r, 0, sizeof(*r));
	r->fd = -1;
	if (fd < 0)
		return fd;
	err = gw_setup(fd, o);
	if (!err && o->filter && ioctl(fd, GPUWATCH_IOC_SET_FILTER, o->filter))
		err = -errno;
	if (!err)
		err = gw_reader_map(r, fd);
	if (!err && !o->disabled && ioctl(fd, GPUWATCH_IOC_ENABLE))
		err = -errno;
	if (err)
		close(fd);
	return err;
}

void gw_reader_stop(struct gw_reader *r)
{
	long page = sysconf(_SC_PAGESIZE);
	unsigned int i;

	if (r->fd < 0 || !r->meta)
		return;
	for (i = 0; i < r->info.nr_cpus; i++) {
		munmap(r->rings[i].cons, page);
		munmap((void *)r->rings[i].prod, page + 2 * r->info.ring_bytes);
	}
	munmap((void *)r->meta, page);
	free(r->rings);
	close(r->fd);
	memset(r, 0, sizeof(*r));
	r->fd = -1;
}

static void *grown(void *old, size_t bytes)
{
	void *p = realloc(old, bytes);

	if (!p)
		give_up("realloc");
	return p;
}

/* Adds one record; the caller vouches for its length. */
static void add_one(struct gw_stream *to, const void *record, size_t len)
{
	if (to->used + len > to->room) {
		to->room = 2 * to->room + len + (1 << 20);
		to->bytes = grown(to->bytes, to->room);
	}
	if (to->nr == to->at_room) {
		to->at_room = 2 * to->at_room + 4096;
		to->at = grown(to->at, to->at_room * sizeof(*to->at));
	}
	memcpy(to->bytes + to->used, record, len);
	to->at[to->nr++] = to->used;
	to->used += len;
}

/* A length that cannot be: the rest is not taken for records. */
static bool sane(const struct gpuwatch_rec *rec, size_t left)
{
	if (rec->len >= sizeof(*rec) && rec->len % 8 == 0 && rec->len <= left)
		return true;
	printf("# reader: record with length %u where %zu bytes are left\n", rec->len, left);
	fflush(stdout);
	return false;
}

void gw_stream_add(struct gw_stream *to, const void *records, size_t bytes)
{
	const uint8_t *p = records;
	size_t done = 0;

	while (done < bytes) {
		const struct gpuwatch_rec *rec = (const void *)(p + done);

		if (bytes - done < sizeof(*rec) || !sane(rec, bytes - done))
			give_up("broken records");
		add_one(to, rec, rec->len);
		done += rec->len;
	}
}

void gw_stream_reserve(struct gw_stream *s, size_t bytes)
{
	s->bytes = grown(s->bytes, bytes);
	s->room = bytes;
	memset(s->bytes + s->used, 0, bytes - s->used);
}

void gw_stream_clear(struct gw_stream *s)
{
	s->used = 0;
	s->nr = 0;
}

void gw_stream_free(struct gw_stream *s)
{
	free(s->bytes);
	free(s->at);
	memset(s, 0, sizeof(*s));
}

bool gw_reader_drain(struct gw_reader *r, struct gw_stream *to)
{
	uint64_t until = gw_now_ns(), mask = r->info.ring_bytes - 1;
	bool all = true;
	unsigned int i;

	for (i = 0; i < r->info.nr_cpus; i++)
		r->rings[i].head = __atomic_load_n(&r->rings[i].prod->head, __ATOMIC_ACQUIRE);
	for (;;) {
		const struct gpuwatch_rec *best = NULL;
		struct gw_map *from = NULL;

		for (i = 0; i < r->info.nr_cpus; i++) {
			struct gw_map *m = &r->rings[i];
			const struct gpuwatch_rec *rec = (const void *)(m->data + (m->pos & mask));

			if (m->pos == m->head)
				continue;
			if (!sane(rec, m->head - m->pos))
				give_up("broken ring");
			if (!best || rec->time_ns < best->time_ns) {
				best = rec;
				from = m;
			}
		}
		if (!best)
			break;
		if (best->time_ns > until) {
			all = false;
			break;
		}
		add_one(to, best, best->len);
		from->pos += best->len;
	}
	for (i = 0; i < r->info.nr_cpus; i++)
		__atomic_store_n(&r->rings[i].cons->tail, r->rings[i].pos, __ATOMIC_RELEASE);
	return all;
}

void gw_reader_finish(struct gw_reader *r, struct gw_stream *to)
{
	/* The second pass has a later T: nothing of before the call is left then. */
	while (!gw_reader_drain(r, to))
		;
	gw_reader_drain(r, to);
}

void gw_reader_snapshot(struct gw_reader *r, unsigned int cpu, struct gw_stream *to)
{
	const struct gw_map *m = &r->rings[cpu];
	uint64_t head = __atomic_load_n(&m->prod->head, __ATOMIC_ACQUIRE);
	uint64_t oldest = __atomic_load_n(&m->prod->oldest, __ATOMIC_ACQUIRE), now;
	uint8_t *copy = malloc(head - oldest + 1);

	if (!copy)
		give_up("malloc");
	memcpy(copy, m->data + (oldest & (r->info.ring_bytes - 1)), head - oldest);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	now = __atomic_load_n(&m->prod->oldest, __ATOMIC_RELAXED);
	if (now < head)
		gw_stream_add(to, copy + (now - oldest), head - now);
	free(copy);
}

const struct gpuwatch_capture *gw_capture(const struct gpuwatch_rec *rec, unsigned int what)
{
	const struct gpuwatch_rec_ioctl *io = gw_payload(rec);
	const uint8_t *p = (const uint8_t *)(io + 1), *end = (const uint8_t *)rec + rec->len;
	unsigned int i;

	for (i = 0; i < io->nr_captures; i++) {
		const struct gpuwatch_capture *c = (const void *)p;

		if (p + sizeof(*c) > end || c->len > (size_t)(end - p) - sizeof(*c))
			return NULL;
		if (c->what == what)
			return c;
		p += sizeof(*c) + (c->len + 7) / 8 * 8;
	}
	return NULL;
}

struct gpuwatch_stats gw_stats(int fd)
{
	struct gpuwatch_stats stats;

	if (ioctl(fd, GPUWATCH_IOC_GET_STATS, &stats))
		give_up("GET_STATS");
	return stats;
}

struct gpuwatch_info gw_info(int fd)
{
	struct gpuwatch_info info;

	if (ioctl(fd, GPUWATCH_IOC_GET_INFO, &info))
		give_up("GET_INFO");
	return info;
}
