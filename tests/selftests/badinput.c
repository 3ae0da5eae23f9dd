// SPDX-License-Identifier: Apache-2.0
/*
 * badinput - arguments that lie, fault or change: the traced call's result is
 * what it is without the module, the record says what could be read, and no
 * call is missing.
 */
#define _GNU_SOURCE
#include <kselftest_harness.h>
#include <errno.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "lib/verify.h"

struct control {
	uint32_t client, object, cmd, flags;
	uint64_t params;
	uint32_t params_bytes, status;
};

struct alloc {
	uint32_t root, parent, object, class;
	uint64_t params, rights;
	uint32_t params_bytes, flags, status, pad;
};

struct xfer {
	uint32_t cmd, size;
	uint64_t ptr;
};

#define RM_CONTROL	_IOWR('F', 0x2a, struct control)
#define RM_ALLOC	_IOWR('F', 0x2b, struct alloc)
#define XFER		_IOWR('F', 211, struct xfer)

#define KERNEL_ADDRESS	0xffff888000000000ULL
#define NON_CANONICAL	0x0000900000000000ULL

/* Everything a case may point to; made afresh for each. */
struct ground {
	uint8_t *page;		/* one writable page with a hole behind it */
	uint8_t *hole;
	uint8_t *read_only;
	uint8_t *fresh;		/* mapped, never touched */
	struct control *c;
	struct alloc *a;
	struct xfer *x;
};

static void ground_make(struct ground *g)
{
	int i;

	g->page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	g->read_only = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	g->fresh = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (g->page == MAP_FAILED || g->read_only == MAP_FAILED || g->fresh == MAP_FAILED)
		abort();
	munmap(g->page + 4096, 4096);
	g->hole = g->page + 4096;
	for (i = 0; i < 4096; i++)
		g->page[i] = i * 7;
	g->c = (void *)g->page;
	g->a = (void *)(g->page + 256);
	g->x = (void *)(g->page + 512);
	*g->c = (struct control) { 1, 2, 3, 0, (uintptr_t)g->page + 1024, 64, 0xff };
	*g->a = (struct alloc) { 1, 1, 2, 0x80, (uintptr_t)g->page + 1024, 0, 64, 0, 0xff, 0 };
	*g->x = (struct xfer) { 0x2a, sizeof(*g->c), (uintptr_t)g->c };
}

static void ground_free(struct ground *g)
{
	munmap(g->page, 4096);
	munmap(g->read_only, 4096);
	munmap(g->fresh, 4096);
}

struct outcome {
	long ret;
	int error;
	uint64_t bytes;		/* digest of the page afterwards */
};

/* One call; what a case is about is in the name. */
struct bad {
	const char *name;
	unsigned int (*prepare)(struct ground *g, void **arg);	/* request word */
	bool in_fault;		/* ARG_IN can't be read */
	bool nested_fault;	/* nor can NESTED0_IN */
};

#define CASE(name) static unsigned int name(struct ground *g, void **arg)

CASE(null_argument) { (void)g; *arg = NULL; return GWSIM_TRANSFORM(64); }
CASE(unmapped) { *arg = g->hole; return GWSIM_TRANSFORM(64); }
CASE(kernel_address) { (void)g; *arg = (void *)KERNEL_ADDRESS; return GWSIM_TRANSFORM(64); }
CASE(non_canonical) { (void)g; *arg = (void *)NON_CANONICAL; return GWSIM_TRANSFORM(64); }
CASE(end_of_address_space) { (void)g; *arg = (void *)-16L; return GWSIM_TRANSFORM(64); }
CASE(straddles_page_end) { *arg = g->page + 4096 - 40; return GWSIM_TRANSFORM(64); }
CASE(straddles_large) { *arg = g->page + 4096 - 200; return GWSIM_TRANSFORM(1000); }
CASE(read_only_argument) { *arg = g->read_only; return GWSIM_TRANSFORM(64); }
CASE(fresh_page) { *arg = g->fresh; return GWSIM_TRANSFORM(64); }
CASE(odd_length) { *arg = g->page + 2049; return GWSIM_TRANSFORM(37); }
CASE(no_argument) { *arg = g->hole; return GWSIM_NOP; }
CASE(word_zero) { *arg = g->page; return 0; }
CASE(word_all_ones) { *arg = g->page; return ~0U; }
CASE(word_max_size) { *arg = g->page; return _IOC(3, 'F', 0x91, 16383); }
CASE(word_size_without_direction) { *arg = g->page; return _IOC(0, 'F', 0x92, 64); }
CASE(unknown_escape) { *arg = g->page; return _IOC(3, 'F', 0xfe, 64); }

CASE(nested_null) { g->c->params = 0; *arg = g->c; return RM_CONTROL; }
CASE(nested_unmapped) { g->c->params = (uintptr_t)g->hole; *arg = g->c; return RM_CONTROL; }
CASE(nested_kernel) { g->c->params = KERNEL_ADDRESS; *arg = g->c; return RM_CONTROL; }
CASE(nested_minus_one) { g->c->params = ~0ULL; *arg = g->c; return RM_CONTROL; }
CASE(nested_zero_bytes) { g->c->params_bytes = 0; *arg = g->c; return RM_CONTROL; }
CASE(nested_4_gib)
{
	g->c->params_bytes = ~0U;
	*arg = g->c;
	return RM_CONTROL;
}
CASE(nested_straddles) { g->c->params = (uintptr_t)g->hole - 16; *arg = g->c; return RM_CONTROL; }
CASE(nested_is_argument) { g->c->params = (uintptr_t)g->c; g->c->params_bytes = 32; *arg = g->c; return RM_CONTROL; }
CASE(alloc_unmapped) { g->a->params = (uintptr_t)g->hole; *arg = g->a; return RM_ALLOC; }
CASE(alloc_4_gib) { g->a->params_bytes = ~0U; *arg = g->a; return RM_ALLOC; }

CASE(xfer_good) { *arg = g->x; return XFER; }
CASE(xfer_unmapped) { *arg = g->hole; return XFER; }
CASE(xfer_to_unmapped) { g->x->ptr = (uintptr_t)g->hole; *arg = g->x; return XFER; }
CASE(xfer_to_null) { g->x->ptr = 0; *arg = g->x; return XFER; }
CASE(xfer_to_kernel) { g->x->ptr = KERNEL_ADDRESS; *arg = g->x; return XFER; }
CASE(xfer_zero_bytes) { g->x->size = 0; *arg = g->x; return XFER; }
CASE(xfer_4_gib) { g->x->size = ~0U; *arg = g->x; return XFER; }
CASE(xfer_in_xfer) { g->x->cmd = 211; g->x->size = 16; g->x->ptr = (uintptr_t)g->x; *arg = g->x; return XFER; }
CASE(xfer_unknown) { g->x->cmd = 0xfffffffe; *arg = g->x; return XFER; }
CASE(xfer_nested_unmapped) { g->c->params = (uintptr_t)g->hole; *arg = g->x; return XFER; }
CASE(xfer_nested_4_gib) { g->c->params_bytes = ~0U; *arg = g->x; return XFER; }

static const struct bad cases[] = {
#define PLAIN(name) { #name, name, false, false }
#define FAULTS(name) { #name, name, true, false }
#define NESTED_FAULTS(name) { #name, name, false, true }
	FAULTS(null_argument), FAULTS(unmapped), FAULTS(kernel_address), FAULTS(non_canonical),
	FAULTS(end_of_address_space), FAULTS(straddles_page_end), FAULTS(straddles_large),
	PLAIN(read_only_argument), PLAIN(fresh_page), PLAIN(odd_length), PLAIN(no_argument),
	PLAIN(word_zero), PLAIN(word_all_ones), PLAIN(word_max_size),
	PLAIN(word_size_without_direction), PLAIN(unknown_escape), PLAIN(nested_null),
	NESTED_FAULTS(nested_unmapped), NESTED_FAULTS(nested_kernel),
	NESTED_FAULTS(nested_minus_one), PLAIN(nested_zero_bytes), PLAIN(nested_4_gib),
	NESTED_FAULTS(nested_straddles), PLAIN(nested_is_argument), NESTED_FAULTS(alloc_unmapped),
	PLAIN(alloc_4_gib), PLAIN(xfer_good), PLAIN(xfer_unmapped), FAULTS(xfer_to_unmapped),
	FAULTS(xfer_to_null), FAULTS(xfer_to_kernel), PLAIN(xfer_zero_bytes), PLAIN(xfer_4_gib),
	PLAIN(xfer_in_xfer), PLAIN(xfer_unknown), NESTED_FAULTS(xfer_nested_unmapped),
	PLAIN(xfer_nested_4_gib),
};

#define NR (sizeof(cases) / sizeof(cases[0]))

static struct outcome run_case(int fd, const struct bad *bad)
{
	struct outcome out;
	struct ground g;
	unsigned int cmd;
	void *arg;

	ground_make(&g);
	cmd = bad->prepare(&g, &arg);
	errno = 0;
	out.ret = ioctl(fd, cmd, arg);
	out.error = errno;
	/* Addresses differ from run to run, and so may their bytes. */
	g.c->params = g.a->params = g.x->ptr = 0;
	out.bytes = gwsim_hash(g.page, 4096);
	ground_free(&g);
	return out;
}

FIXTURE(badinput) {
	struct gw_reader r;
	struct gw_stream s;
};

FIXTURE_VARIANT(badinput) {
	bool kretprobe;
};

FIXTURE_VARIANT_ADD(badinput, redirect) { false };
FIXTURE_VARIANT_ADD(badinput, kretprobe) { true };

FIXTURE_SETUP(badinput)
{
	lab_fresh(variant->kretprobe, "");
	self->r.fd = -1;
}

FIXTURE_TEARDOWN(badinput)
{
	gw_reader_stop(&self->r);
	gw_stream_free(&self->s);
}

TEST_F_TIMEOUT(badinput, results_stay, 60)
{
	struct outcome bare[NR], hooked[NR];
	struct gwsim_log_entry *log;
	unsigned long long unchecked;
	struct gw_options o = {};
	struct gw_verdict v;
	size_t i, at = 0, nr;
	int fd;

	fd = lab_node("/dev/nvidiactl");
	for (i = 0; i < NR; i++)
		bare[i] = run_case(fd, &cases[i]);
	lab_witness_reset();
	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	for (i = 0; i < NR; i++)
		hooked[i] = run_case(fd, &cases[i]);
	gw_reader_finish(&self->r, &self->s);
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	gw_verdict_print(&v);
	EXPECT_EQ(0, v.gaps + v.malformed + v.time_back + v.undefined);
	EXPECT_EQ(NR, v.n[GPUWATCH_REC_IOCTL]);
	for (i = 0; i < NR; i++) {
		EXPECT_EQ(bare[i].ret, hooked[i].ret)
			TH_LOG("%s", cases[i].name);
		EXPECT_EQ(bare[i].error, hooked[i].error)
			TH_LOG("%s", cases[i].name);
		EXPECT_EQ(bare[i].bytes, hooked[i].bytes)
			TH_LOG("%s: memory differs afterwards", cases[i].name);
	}
	log = lab_witness_log(&nr);
	EXPECT_EQ(NR, nr);
	for (i = 0; i < self->s.nr; i++) {
		const struct gpuwatch_rec *rec = gw_rec(&self->s, i);
		const struct gpuwatch_rec_ioctl *io = gw_payload(rec);
		const struct gpuwatch_capture *in, *nested;

		if (rec->type != GPUWATCH_REC_IOCTL || at >= NR)
			continue;
		EXPECT_EQ(hooked[at].ret < 0 ? -hooked[at].error : hooked[at].ret, io->ret)
			TH_LOG("%s", cases[at].name);
		EXPECT_EQ(log[at].ret, io->ret)
			TH_LOG("%s", cases[at].name);
		in = gw_capture(rec, GPUWATCH_CAP_ARG_IN);
		nested = gw_capture(rec, GPUWATCH_CAP_NESTED0_IN);
		if (cases[at].in_fault)
			EXPECT_TRUE(in && in->flags & GPUWATCH_CAPF_FAULT)
				TH_LOG("%s: %s", cases[at].name, in ? "no fault seen" : "no capture");
		/* What the driver could read, the redirect reads as well. */
		if (!cases[at].in_fault && log[at].in_len && !variant->kretprobe)
			EXPECT_TRUE(in && !(in->flags & GPUWATCH_CAPF_FAULT))
				TH_LOG("%s", cases[at].name);
		if (cases[at].nested_fault)
			EXPECT_TRUE(nested && nested->flags & GPUWATCH_CAPF_FAULT)
				TH_LOG("%s", cases[at].name);
		if (nested && nested->want == ~0U)
			EXPECT_TRUE(nested->len == 512 && nested->flags == GPUWATCH_CAPF_CAPPED)
				TH_LOG("%s: len %u flags %u", cases[at].name, nested->len, nested->flags);
		at++;
	}
	/*
	 * Bytes the driver saw are the bytes recorded, wherever both could read. But
	 * nested_is_argument is written twice by the driver: the last wins.
	 */
	if (!variant->kretprobe)
		EXPECT_EQ(NR - 1, gw_verify_log(&self->s, log, nr, &unchecked, &v))
			TH_LOG("%s", v.first);
	free(log);
	close(fd);
}

static void *changer(void *p)
{
	struct gwsim_change *c = p;

	while (!__atomic_load_n(&c->entered, __ATOMIC_ACQUIRE))
		usleep(100);
	memset(c->data, 0xbb, sizeof(c->data));
	__atomic_store_n(&c->go, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Another thread writes into the argument while the driver has it. */
TEST_F_TIMEOUT(badinput, argument_changes, 60)
{
	static struct gwsim_change c;
	struct gw_options o = {};
	const struct gpuwatch_capture *in, *out;
	pthread_t thread;
	unsigned int n = 0;
	size_t i;
	int fd;

	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	fd = lab_node("/dev/nvidiactl");
	usleep(variant->kretprobe ? 200000 : 0);
	memset(&c, 0, sizeof(c));
	memset(c.data, 0xaa, sizeof(c.data));
	c.timeout_ms = 30000;
	ASSERT_EQ(0, pthread_create(&thread, NULL, changer, &c));
	EXPECT_EQ(0, ioctl(fd, GWSIM_CHANGE, &c));
	pthread_join(thread, NULL);
	gw_reader_finish(&self->r, &self->s);
	for (i = 0; i < self->s.nr; i++) {
		const struct gpuwatch_rec *rec = gw_rec(&self->s, i);
		const struct gwsim_change *before, *after;

		if (rec->type != GPUWATCH_REC_IOCTL)
			continue;
		n++;
		in = gw_capture(rec, GPUWATCH_CAP_ARG_IN);
		out = gw_capture(rec, GPUWATCH_CAP_ARG_OUT);
		ASSERT_TRUE(in && out && in->len == sizeof(c) && out->len == sizeof(c));
		before = (const void *)(in + 1);
		after = (const void *)(out + 1);
		EXPECT_EQ(0, before->entered);
		EXPECT_EQ(1, after->entered);
		EXPECT_EQ(0xaa, before->data[0]);
		EXPECT_EQ(0xaa, before->data[47]);
		EXPECT_EQ(0xbb, after->data[0]);
		EXPECT_EQ(0xbb, after->data[47]);
	}
	EXPECT_EQ(1, n);
	close(fd);
}

static volatile bool flip_stop;

static void *flipper(void *p)
{
	struct ground *g = p;
	unsigned int i = 0;

	for (; !flip_stop; i++) {
		g->c->params = i % 3 ? (uintptr_t)g->page + 1024 : i % 2 ? KERNEL_ADDRESS : (uintptr_t)g->hole;
		g->c->params_bytes = i * 2654435761U;
		g->x->size = i % 5 ? sizeof(*g->c) : i * 40503U;
		g->x->cmd = i % 7 ? 0x2a : i;
		g->x->ptr = i % 4 ? (uintptr_t)g->c : (uintptr_t)g->hole - i % 64;
	}
	return NULL;
}

/* Lengths and pointers that change all the time: read once, then trusted. */
TEST_F_TIMEOUT(badinput, flipping, 60)
{
	struct gw_options o = {};
	unsigned long n = lab_scaled(20000), i;
	struct gw_verdict v;
	struct ground g;
	pthread_t thread;
	int fd;

	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	fd = lab_node("/dev/nvidiactl");
	usleep(variant->kretprobe ? 200000 : 0);
	ground_make(&g);
	flip_stop = false;
	ASSERT_EQ(0, pthread_create(&thread, NULL, flipper, &g));
	for (i = 0; i < n; i++) {
		ioctl(fd, i % 2 ? XFER : RM_CONTROL, i % 2 ? (void *)g.x : (void *)g.c);
		if (i % 512 == 0)
			gw_reader_drain(&self->r, &self->s);
	}
	flip_stop = true;
	pthread_join(thread, NULL);
	ground_free(&g);
	gw_reader_finish(&self->r, &self->s);
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	gw_verdict_print(&v);
	EXPECT_EQ(n, v.n[GPUWATCH_REC_IOCTL]);
	EXPECT_EQ(0, v.gaps + v.malformed + v.time_back + v.undefined);
	close(fd);
}

TEST_HARNESS_MAIN
