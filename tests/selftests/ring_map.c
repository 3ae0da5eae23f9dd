// SPDX-License-Identifier: Apache-2.0
/*
 * ring_map - what may be mapped and how, what the meta page says, and that a
 * reader's own page can hurt nobody but the reader.
 */
#include <kselftest_harness.h>
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "lib/verify.h"

#define RING 65536

FIXTURE(ring_map) {
	int fd;
	long page;
	uint64_t at, end;	/* ring of CPU 0, end of all */
	struct gpuwatch_meta meta;
};

FIXTURE_SETUP(ring_map)
{
	struct gw_options o = { .ring_bytes = RING };
	void *p;

	lab_fresh(false, "");
	self->page = sysconf(_SC_PAGESIZE);
	self->fd = gw_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, gw_setup(self->fd, &o));
	p = mmap(NULL, self->page, PROT_READ, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	memcpy(&self->meta, p, sizeof(self->meta));
	munmap(p, self->page);
	self->at = GPUWATCH_MMAP_CPU(&self->meta, 0);
	self->end = GPUWATCH_MMAP_CPU(&self->meta, self->meta.nr_cpus);
}

FIXTURE_TEARDOWN(ring_map)
{
	close(self->fd);
}

/* 0 when it works, else the errno. */
static int try_map(int fd, size_t length, int prot, int flags, uint64_t at)
{
	void *p = mmap(NULL, length, prot, flags, fd, at);

	if (p == MAP_FAILED)
		return errno;
	munmap(p, length);
	return 0;
}

#define TRY(length, prot, flags, at) try_map(self->fd, length, prot, flags, at)
#define RW (PROT_READ | PROT_WRITE)

TEST_F(ring_map, meta)
{
	struct gpuwatch_info info = gw_info(self->fd);
	uint8_t *p = mmap(NULL, self->page, PROT_READ, MAP_SHARED, self->fd, 0);
	long i;

	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(sizeof(struct gpuwatch_meta), self->meta.struct_len);
	EXPECT_EQ(GPUWATCH_ABI_MAJOR, self->meta.abi_major);
	EXPECT_EQ(GPUWATCH_ABI_MINOR, self->meta.abi_minor);
	EXPECT_EQ(GPUWATCH_SCHEMA, self->meta.schema);
	EXPECT_EQ(info.nr_cpus, self->meta.nr_cpus);
	EXPECT_LE(sysconf(_SC_NPROCESSORS_CONF), self->meta.nr_cpus);
	EXPECT_EQ(GPUWATCH_MODE_DROP_NEWEST, self->meta.mode);
	EXPECT_EQ(self->page, self->meta.page_bytes);
	EXPECT_EQ(RING, self->meta.ring_bytes);
	EXPECT_EQ(2 * self->page + 2 * RING, self->meta.cpu_stride);
	for (i = self->meta.struct_len; i < self->page; i++) {
		ASSERT_EQ(0, p[i])
			TH_LOG("byte %ld of the meta page", i);
	}
	munmap(p, self->page);
}

TEST_F(ring_map, parts_that_may_be)
{
	EXPECT_EQ(0, TRY(self->page, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(0, TRY(self->page, RW, MAP_SHARED, self->at));
	EXPECT_EQ(0, TRY(self->page, PROT_READ, MAP_SHARED, self->at));
	EXPECT_EQ(0, TRY(self->page, PROT_READ, MAP_SHARED, self->at + self->page));
	EXPECT_EQ(0, TRY(2 * RING, PROT_READ, MAP_SHARED, self->at + 2 * self->page));
	EXPECT_EQ(0, TRY(RING, PROT_READ, MAP_SHARED, self->at + 2 * self->page));
	EXPECT_EQ(0, TRY(self->page + 2 * RING, PROT_READ, MAP_SHARED, self->at + self->page));
	EXPECT_EQ(0, TRY(self->end, PROT_READ, MAP_SHARED, 0));
}

TEST_F(ring_map, writable)
{
	EXPECT_EQ(EPERM, TRY(self->page, RW, MAP_SHARED, 0));
	EXPECT_EQ(EPERM, TRY(self->page, RW, MAP_SHARED, self->at + self->page));
	EXPECT_EQ(EPERM, TRY(self->page, RW, MAP_SHARED, self->at + 2 * self->page));
	EXPECT_EQ(EPERM, TRY(self->page, RW, MAP_SHARED, self->at + 2 * self->page + RING));
	EXPECT_EQ(EPERM, TRY(2 * self->page, RW, MAP_SHARED, self->at));
	EXPECT_EQ(EPERM, TRY(2 * self->page, RW, MAP_SHARED, 0));
}

TEST_F(ring_map, executable)
{
	EXPECT_EQ(EPERM, TRY(self->page, PROT_READ | PROT_EXEC, MAP_SHARED, 0));
	EXPECT_EQ(EPERM, TRY(self->page, PROT_READ | PROT_EXEC, MAP_SHARED, self->at));
	EXPECT_EQ(EPERM, TRY(RING, PROT_READ | PROT_EXEC, MAP_SHARED, self->at + 2 * self->page));
}

TEST_F(ring_map, private)
{
	EXPECT_EQ(EINVAL, TRY(self->page, PROT_READ, MAP_PRIVATE, 0));
	EXPECT_EQ(EINVAL, TRY(self->page, RW, MAP_PRIVATE, self->at));
	EXPECT_EQ(EINVAL, TRY(RING, PROT_READ, MAP_PRIVATE, self->at + 2 * self->page));
}

TEST_F(ring_map, beyond_the_end)
{
	EXPECT_EQ(EINVAL, TRY(self->page, PROT_READ, MAP_SHARED, self->end));
	EXPECT_EQ(EINVAL, TRY(self->end + self->page, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(EINVAL, TRY(2 * self->page, PROT_READ, MAP_SHARED, self->end - self->page));
	EXPECT_NE(0, TRY(self->page, PROT_READ, MAP_SHARED, 1ULL << 40));
	EXPECT_NE(0, TRY(self->page, PROT_READ, MAP_SHARED, 0x7ffffffffffff000ULL));
	EXPECT_NE(0, TRY(self->page, PROT_READ, MAP_SHARED, 0xfffffffffffff000ULL));
	EXPECT_EQ(EINVAL, TRY(self->page, PROT_READ, MAP_SHARED, 512));
}

TEST_F(ring_map, before_setup)
{
	int fd = gw_open();

	ASSERT_LE(0, fd);
	EXPECT_EQ(ENXIO, try_map(fd, self->page, PROT_READ, MAP_SHARED, 0));
	close(fd);
}

TEST_F(ring_map, mprotect)
{
	uint64_t places[] = { 0, self->at + self->page, self->at + 2 * self->page };
	unsigned int i;
	void *p;

	for (i = 0; i < 3; i++) {
		p = mmap(NULL, self->page, PROT_READ, MAP_SHARED, self->fd, places[i]);
		ASSERT_NE(MAP_FAILED, p);
		EXPECT_EQ(-1, mprotect(p, self->page, RW));
		EXPECT_EQ(EACCES, errno);
		EXPECT_EQ(-1, mprotect(p, self->page, PROT_READ | PROT_EXEC));
		EXPECT_EQ(EACCES, errno);
		munmap(p, self->page);
	}
	p = mmap(NULL, self->page, PROT_READ, MAP_SHARED, self->fd, self->at);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(-1, mprotect(p, self->page, PROT_READ | PROT_EXEC));
	EXPECT_EQ(0, mprotect(p, self->page, RW));
	munmap(p, self->page);
}

TEST_F(ring_map, no_growth)
{
	void *p = mmap(NULL, self->page, PROT_READ, MAP_SHARED, self->fd, self->at);

	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(MAP_FAILED, mremap(p, self->page, 4 * self->page, MREMAP_MAYMOVE));
	munmap(p, self->page);
}

/* The mapping lives on when the descriptor is closed, and ends with the process. */
TEST_F(ring_map, outlives_its_descriptor)
{
	struct gpuwatch_meta *p = mmap(NULL, self->page, PROT_READ, MAP_SHARED, self->fd, 0);

	ASSERT_NE(MAP_FAILED, p);
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(RING, p->ring_bytes);
	EXPECT_EQ(-EAGAIN, lab_unload("gpuwatch"));
	munmap(p, self->page);
}

TEST_F(ring_map, data_is_seen_twice)
{
	uint8_t *p = mmap(NULL, 2 * RING, PROT_READ, MAP_SHARED, self->fd,
			  self->at + 2 * self->page), arg[64] = { 0 };
	int fd;

	ASSERT_NE(MAP_FAILED, p);
	ASSERT_EQ(0, ioctl(self->fd, GPUWATCH_IOC_ENABLE));
	lab_pin(0);
	fd = lab_node("/dev/nvidiactl");
	lab_transform(fd, arg, sizeof(arg));
	EXPECT_LT(0, *(uint32_t *)p);
	EXPECT_EQ(0, memcmp(p, p + RING, RING));
	close(fd);
	munmap(p, 2 * RING);
}

/* --- a reader that lies about its position -------------------------------- */

FIXTURE(hostile) {
	struct gw_reader bad, good;
	struct gw_stream s;
	int node;
};

FIXTURE_VARIANT(hostile) {
	uint64_t offset;	/* from head, or the value itself when absolute */
	bool absolute;
};

FIXTURE_VARIANT_ADD(hostile, ahead) { 4096, false };
FIXTURE_VARIANT_ADD(hostile, far_ahead) { 1ULL << 62, false };
FIXTURE_VARIANT_ADD(hostile, just_ahead) { 1, false };
FIXTURE_VARIANT_ADD(hostile, misaligned) { (uint64_t)-13, false };
FIXTURE_VARIANT_ADD(hostile, far_behind) { (uint64_t)-(1LL << 40), false };
FIXTURE_VARIANT_ADD(hostile, all_ones) { ~0ULL, true };
FIXTURE_VARIANT_ADD(hostile, half) { 1ULL << 63, true };

FIXTURE_SETUP(hostile)
{
	struct gw_options o = { .ring_bytes = 4096 }, big = {};

	lab_fresh(false, "");
	ASSERT_EQ(0, gw_reader_start(&self->good, &big));
	ASSERT_EQ(0, gw_reader_start(&self->bad, &o));
	lab_pin(0);
	self->node = lab_node("/dev/nvidiactl");
}

FIXTURE_TEARDOWN(hostile)
{
	close(self->node);
	gw_reader_stop(&self->bad);
	gw_reader_stop(&self->good);
	gw_stream_free(&self->s);
}

TEST_F_TIMEOUT(hostile, costs_only_itself, 60)
{
	static uint8_t buf[65536];
	struct gw_map *m = &self->bad.rings[0];
	uint8_t arg[64] = { 0 };
	struct gpuwatch_stats st;
	struct gw_verdict v;
	ssize_t got;
	int i;

	for (i = 0; i < 300; i++) {
		uint64_t head = __atomic_load_n(&m->prod->head, __ATOMIC_ACQUIRE);

		__atomic_store_n(&m->cons->tail,
				 variant->absolute ? variant->offset : head + variant->offset,
				 __ATOMIC_RELEASE);
		ASSERT_EQ(0, lab_transform(self->node, arg, sizeof(arg)));
		if (i % 10 == 0) {
			/* Whatever read() makes of it, it stays within the ring. */
			got = read(self->bad.fd, buf, sizeof(buf));
			EXPECT_GE(4096, got);
		}
	}
	st = gw_stats(self->bad.fd);
	EXPECT_EQ(st.seq, st.records + st.lost[GPUWATCH_LOSS_RING_FULL] +
			  st.lost[GPUWATCH_LOSS_TOO_BIG]);
	gw_reader_finish(&self->good, &self->s);
	gw_verify(&self->s, self->good.info.nr_cpus, NULL, &v);
	EXPECT_EQ(300, v.n[GPUWATCH_REC_IOCTL]);
	EXPECT_EQ(0, v.gaps + v.malformed + v.undefined);
	/* A reader that sees its error can go on. */
	__atomic_store_n(&m->cons->tail, m->prod->head, __ATOMIC_RELEASE);
	m->pos = m->prod->head;
	gw_stream_clear(&self->s);
	ASSERT_EQ(0, lab_transform(self->node, arg, sizeof(arg)));
	gw_reader_finish(&self->bad, &self->s);
	gw_verify_parts(&self->s, &v);
	EXPECT_EQ(1, v.n[GPUWATCH_REC_IOCTL]);
}

TEST_HARNESS_MAIN
