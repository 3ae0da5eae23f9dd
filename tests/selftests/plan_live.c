// SPDX-License-Identifier: Apache-2.0
/*
 * plan_live - what a capture plan does to records: lengths, directions, nested
 * pointers by key, wrappers, limits of memory; and a plan replaced 1,000 times
 * while calls run.
 */
#include <kselftest_harness.h>
#include <errno.h>
#include <sys/ioctl.h>

#include "lib/verify.h"

struct control {
	uint32_t client, object, cmd, flags;
	uint64_t params;
	uint32_t params_bytes, status;
};

struct xfer {
	uint32_t cmd, size;
	uint64_t ptr;
};

#define RM_CONTROL	_IOWR('F', 0x2a, struct control)
#define XFER		_IOWR('F', 211, struct xfer)
#define CTL		(1U << GPUWATCH_NODE_CTL)

FIXTURE(plan_live) {
	struct gw_reader r;
	struct gw_stream s;
	int node;
};

FIXTURE_SETUP(plan_live)
{
	struct gw_options o = {};

	lab_fresh(false, "");
	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	self->node = lab_node("/dev/nvidiactl");
}

FIXTURE_TEARDOWN(plan_live)
{
	close(self->node);
	gw_reader_stop(&self->r);
	gw_stream_free(&self->s);
	lab_gpuwatch_unload();	/* only a new module has the built-in plan again */
}

static int set_plan(int fd, const struct gpuwatch_plan_entry *entries, unsigned int nr,
		    const struct gpuwatch_plan_size *sizes, unsigned int nr_sizes,
		    unsigned int default_bytes)
{
	struct gpuwatch_plan plan = {
		.entries = (uintptr_t)entries, .nr_entries = nr, .sizes = (uintptr_t)sizes,
		.nr_sizes = nr_sizes, .default_bytes = default_bytes,
	};

	return ioctl(fd, GPUWATCH_IOC_SET_PLAN, &plan) ? -errno : 0;
}

/* The one ioctl record since the last look. */
static const struct gpuwatch_rec *only_ioctl(struct gw_reader *r, struct gw_stream *s)
{
	const struct gpuwatch_rec *found = NULL;
	unsigned int n = 0;
	size_t i;

	gw_stream_clear(s);
	gw_reader_finish(r, s);
	for (i = 0; i < s->nr; i++) {
		if (gw_rec(s, i)->type != GPUWATCH_REC_IOCTL)
			continue;
		found = gw_rec(s, i);
		n++;
	}
	return n == 1 ? found : NULL;
}

static int length_of(const struct gpuwatch_rec *rec, unsigned int what)
{
	const struct gpuwatch_capture *c = gw_capture(rec, what);

	return c ? (int)c->len : -1;
}

#define EXPECT_LEN(rec, what, len) do { \
	EXPECT_EQ(len, length_of(rec, GPUWATCH_CAP_##what)) \
		TH_LOG("%s", #what); \
} while (0)

TEST_F(plan_live, in_and_out_bytes)
{
	const struct gpuwatch_plan_entry e[] = {
		{ .cmd = GWSIM_TRANSFORM(64), .cmd_mask = ~0U, .node_mask = CTL, .in_bytes = 8, .out_bytes = 40 },
		{ .cmd = GWSIM_TRANSFORM(80), .cmd_mask = ~0U, .node_mask = CTL, .out_bytes = 200 },
		{ .cmd = GWSIM_TRANSFORM(96), .cmd_mask = ~0U, .node_mask = 1 << GPUWATCH_NODE_GPU, .in_bytes = 4 },
	};
	const struct gpuwatch_rec *rec;
	uint8_t arg[128] = { 0 };

	ASSERT_EQ(0, set_plan(self->r.fd, e, 3, NULL, 0, 16));
	gw_reader_finish(&self->r, &self->s);
	lab_transform(self->node, arg, 64);
	rec = only_ioctl(&self->r, &self->s);
	ASSERT_NE(NULL, rec);
	EXPECT_LEN(rec, ARG_IN, 8);
	EXPECT_LEN(rec, ARG_OUT, 40);
	EXPECT_EQ(64, gw_capture(rec, GPUWATCH_CAP_ARG_IN)->want);
	EXPECT_EQ(GPUWATCH_CAPF_CAPPED, gw_capture(rec, GPUWATCH_CAP_ARG_IN)->flags);
	lab_transform(self->node, arg, 80);
	rec = only_ioctl(&self->r, &self->s);
	ASSERT_NE(NULL, rec);
	EXPECT_GE(0, length_of(rec, GPUWATCH_CAP_ARG_IN));
	EXPECT_LEN(rec, ARG_OUT, 80);	/* the request word's size is a cap too */
	lab_transform(self->node, arg, 96);	/* an entry for another node */
	rec = only_ioctl(&self->r, &self->s);
	ASSERT_NE(NULL, rec);
	EXPECT_LEN(rec, ARG_IN, 16);
	EXPECT_LEN(rec, ARG_OUT, 16);
	/* Nothing declared, nothing listed, nothing copied. */
	ioctl(self->node, 0x30000001, arg);
	rec = only_ioctl(&self->r, &self->s);
	ASSERT_NE(NULL, rec);
	EXPECT_EQ(0, ((const struct gpuwatch_rec_ioctl *)gw_payload(rec))->nr_captures);
}

/* Of a large argument whose results lie at its end. */
TEST_F(plan_live, out_offset)
{
	const struct gpuwatch_plan_entry e[] = {
		{ .cmd = GWSIM_TRANSFORM(1000), .cmd_mask = ~0U, .node_mask = CTL, .in_bytes = 16,
		  .out_bytes = 24, .out_offset = 968 },
		{ .cmd = GWSIM_TRANSFORM(992), .cmd_mask = ~0U, .node_mask = CTL, .in_bytes = 16,
		  .out_bytes = 64, .out_offset = 980 },
		{ .cmd = GWSIM_TRANSFORM(64), .cmd_mask = ~0U, .node_mask = CTL, .in_bytes = 16,
		  .out_bytes = 64, .out_offset = 64 },
		{ .cmd = 0x21, .cmd_mask = 0xff, .node_mask = CTL, .in_bytes = 8, .out_bytes = 16, .out_offset = 100 },
	};
	const struct gpuwatch_capture *out;
	const struct gpuwatch_rec *rec;
	static uint8_t arg[1000];
	unsigned int i;

	for (i = 0; i < sizeof(arg); i++)
		arg[i] = i * 3;
	ASSERT_EQ(0, set_plan(self->r.fd, e, 4, NULL, 0, 0));
	gw_reader_finish(&self->r, &self->s);
	ASSERT_EQ(0, lab_transform(self->node, arg, 1000));
	rec = only_ioctl(&self->r, &self->s);
	ASSERT_NE(NULL, rec);
	EXPECT_LEN(rec, ARG_IN, 16);
	EXPECT_LEN(rec, ARG_OUT, 24);
	out = gw_capture(rec, GPUWATCH_CAP_ARG_OUT);
	EXPECT_EQ(968, out->offset);
	EXPECT_EQ(1000, out->want);
	EXPECT_EQ(0, memcmp(arg + 968, out + 1, 24));
	/* Up to the end of the argument, not beyond. */
	ASSERT_EQ(0, lab_transform(self->node, arg, 992));
	rec = only_ioctl(&self->r, &self->s);
	ASSERT_NE(NULL, rec);
	EXPECT_LEN(rec, ARG_OUT, 12);
	EXPECT_EQ(0, memcmp(arg + 980, gw_capture(rec, GPUWATCH_CAP_ARG_OUT) + 1, 12));
	/* Wholly beyond it: nothing. */
	ASSERT_EQ(0, lab_transform(self->node, arg, 64));
	rec = only_ioctl(&self->r, &self->s);
	ASSERT_NE(NULL, rec);
	EXPECT_GE(0, length_of(rec, GPUWATCH_CAP_ARG_OUT));
	EXPECT_LEN(rec, ARG_IN, 16);
	/* A word without size: the entry says where. */
	ioctl(self->node, 0x21, arg);
	rec = only_ioctl(&self->r, &self->s);
	ASSERT_NE(NULL, rec);
	EXPECT_LEN(rec, ARG_OUT, 16);
	EXPECT_EQ(0, memcmp(arg + 100, gw_capture(rec, GPUWATCH_CAP_ARG_OUT) + 1, 16));
	/* Beyond the end of memory there is nothing to read. */
	ioctl(self->node, GWSIM_TRANSFORM(1000), (void *)-512L);
	rec = only_ioctl(&self->r, &self->s);
	ASSERT_NE(NULL, rec);
	out = gw_capture(rec, GPUWATCH_CAP_ARG_OUT);
	EXPECT_TRUE(!out || out->flags & GPUWATCH_CAPF_FAULT);
}

/* Commands without a size, as UVM has them: the entry says how many bytes. */
TEST_F(plan_live, word_without_size)
{
	const struct gpuwatch_plan_entry e = {
		.cmd = 0x21, .cmd_mask = 0xff, .node_mask = CTL, .in_bytes = 24, .out_bytes = 32,
	};
	const struct gpuwatch_rec *rec;
	uint8_t arg[64];
	unsigned int i;

	for (i = 0; i < sizeof(arg); i++)
		arg[i] = i;
	ASSERT_EQ(0, set_plan(self->r.fd, &e, 1, NULL, 0, 0));
	gw_reader_finish(&self->r, &self->s);
	ioctl(self->node, 0x21, arg);
	rec = only_ioctl(&self->r, &self->s);
	ASSERT_NE(NULL, rec);
	EXPECT_LEN(rec, ARG_IN, 24);
	EXPECT_LEN(rec, ARG_OUT, 32);
	EXPECT_EQ(0, memcmp(arg, gw_capture(rec, GPUWATCH_CAP_ARG_OUT) + 1, 32));
}

TEST_F(plan_live, nested_directions_and_keys)
{
	struct gpuwatch_plan_entry e = {
		.cmd = RM_CONTROL, .cmd_mask = ~0U, .node_mask = CTL, .in_bytes = 32, .out_bytes = 32,
		.nested[0] = { .ptr_offset = 16, .key_offset = 8, .len_value = 24, .cap = 40,
			       .len_kind = GPUWATCH_LEN_BY_KEY, .directions = 2 },
		.nested[1] = { .ptr_offset = 16, .len_value = 12, .cap = 100,
			       .len_kind = GPUWATCH_LEN_FIXED, .directions = 1 },
	};
	const struct gpuwatch_plan_size sizes[] = { { 0x100, 20 }, { 0x200, 64 } };
	uint8_t params[64] = { 0 };
	struct control c = { 1, 2, 0x100, 0, (uintptr_t)params, 48, 0 };
	const struct gpuwatch_rec *rec;

	ASSERT_EQ(0, set_plan(self->r.fd, &e, 1, sizes, 2, 0));
	gw_reader_finish(&self->r, &self->s);
	EXPECT_EQ(0, ioctl(self->node, RM_CONTROL, &c));
	rec = only_ioctl(&self->r, &self->s);
	ASSERT_NE(NULL, rec);
	EXPECT_LEN(rec, NESTED0_IN, -1);
	EXPECT_LEN(rec, NESTED0_OUT, 20);	/* by its key */
	EXPECT_LEN(rec, NESTED1_IN, 12);
	EXPECT_LEN(rec, NESTED1_OUT, -1);
	c.cmd = 0x200;
	EXPECT_EQ(0, ioctl(self->node, RM_CONTROL, &c));
	rec = only_ioctl(&self->r, &self->s);
	ASSERT_NE(NULL, rec);
	EXPECT_LEN(rec, NESTED0_OUT, 40);	/* by its key, up to the cap */
	EXPECT_EQ(64, gw_capture(rec, GPUWATCH_CAP_NESTED0_OUT)->want);
	c.cmd = 0x300;
	c.params_bytes = 36;
	EXPECT_EQ(0, ioctl(self->node, RM_CONTROL, &c));
	rec = only_ioctl(&self->r, &self->s);
	ASSERT_NE(NULL, rec);
	EXPECT_LEN(rec, NESTED0_OUT, 36);	/* not listed: as the argument says */
	/* The bytes are those of after the call. */
	EXPECT_EQ(0, memcmp(params, gw_capture(rec, GPUWATCH_CAP_NESTED0_OUT) + 1, 36));
}

/* The first entry that fits decides; masks let one entry serve many words. */
TEST_F(plan_live, order_and_masks)
{
	const struct gpuwatch_plan_entry e[] = {
		{ .cmd = GWSIM_TRANSFORM(64), .cmd_mask = ~0U, .node_mask = CTL, .in_bytes = 16 },
		{ .cmd = 0xe1, .cmd_mask = 0xff, .node_mask = CTL, .in_bytes = 24 },
		{ .cmd = GWSIM_TRANSFORM(48), .cmd_mask = ~0U, .node_mask = CTL, .in_bytes = 32 },
	};
	const struct gpuwatch_rec *rec;
	uint8_t arg[64] = { 0 };

	ASSERT_EQ(0, set_plan(self->r.fd, e, 3, NULL, 0, 0));
	gw_reader_finish(&self->r, &self->s);
	lab_transform(self->node, arg, 64);
	rec = only_ioctl(&self->r, &self->s);
	ASSERT_NE(NULL, rec);
	EXPECT_LEN(rec, ARG_IN, 16);
	lab_transform(self->node, arg, 48);
	rec = only_ioctl(&self->r, &self->s);
	ASSERT_NE(NULL, rec);
	EXPECT_LEN(rec, ARG_IN, 24);
}

/* All that one call may ask for is more than one call gets: said, not hidden. */
TEST_F(plan_live, largest_captures)
{
	const struct gpuwatch_plan_entry e = {
		.cmd = RM_CONTROL, .cmd_mask = ~0U, .node_mask = CTL, .in_bytes = 32, .out_bytes = 32,
		.nested[0] = { .ptr_offset = 16, .len_value = 16384, .cap = 16384,
			       .len_kind = GPUWATCH_LEN_FIXED, .directions = 3 },
		.nested[1] = { .ptr_offset = 16, .len_value = 16384, .cap = 16384,
			       .len_kind = GPUWATCH_LEN_FIXED, .directions = 3 },
	};
	static uint8_t params[16384];
	struct control c = { 1, 2, 3, 0, (uintptr_t)params, 64, 0 };
	unsigned int full = 0, none = 0, what;
	const struct gpuwatch_rec *rec;

	ASSERT_EQ(0, set_plan(self->r.fd, &e, 1, NULL, 0, 0));
	gw_reader_finish(&self->r, &self->s);
	EXPECT_EQ(0, ioctl(self->node, RM_CONTROL, &c));
	rec = only_ioctl(&self->r, &self->s);
	ASSERT_NE(NULL, rec);
	for (what = GPUWATCH_CAP_NESTED0_IN; what <= GPUWATCH_CAP_NESTED1_OUT; what++) {
		const struct gpuwatch_capture *cap = gw_capture(rec, what);

		ASSERT_NE(NULL, cap);
		EXPECT_EQ(16384, cap->want);
		full += cap->len == 16384 && !cap->flags;
		none += cap->len == 0 && cap->flags == GPUWATCH_CAPF_NO_ROOM;
	}
	EXPECT_EQ(4, full + none);
	EXPECT_LE(2, full);
	EXPECT_GT(GPUWATCH_REC_MAX, rec->len);
}

TEST_F(plan_live, wrapped)
{
	const struct gpuwatch_plan_entry e[] = {
		{ .cmd = XFER, .cmd_mask = ~0U, .node_mask = CTL, .flags = GPUWATCH_PLAN_XFER, .in_bytes = 16 },
		{ .cmd = 32 << 16 | 0x2a, .cmd_mask = 0x3fff00ff, .node_mask = CTL, .in_bytes = 32,
		  .out_bytes = 32,
		  .nested[0] = { .ptr_offset = 16, .len_value = 24, .cap = 64,
				 .len_kind = GPUWATCH_LEN_AT, .directions = 3 } },
	};
	uint8_t params[32] = { 0 };
	struct control c = { 1, 2, 3, 0, (uintptr_t)params, 32, 0xff };
	struct xfer x = { 0x2a, sizeof(c), (uintptr_t)&c };
	const struct gpuwatch_rec_ioctl *io;
	const struct gpuwatch_rec *rec;

	ASSERT_EQ(0, set_plan(self->r.fd, e, 2, NULL, 0, 0));
	gw_reader_finish(&self->r, &self->s);
	EXPECT_EQ(0, ioctl(self->node, XFER, &x));
	rec = only_ioctl(&self->r, &self->s);
	ASSERT_NE(NULL, rec);
	io = gw_payload(rec);
	EXPECT_EQ(GPUWATCH_F_XFER, rec->flags);
	EXPECT_EQ(XFER, io->cmd);
	EXPECT_EQ(0x2a, io->inner_cmd);
	EXPECT_EQ(sizeof(c), io->inner_size);
	EXPECT_EQ((uintptr_t)&x, io->arg);
	EXPECT_LEN(rec, XFER_IN, 16);
	EXPECT_LEN(rec, ARG_IN, 32);
	EXPECT_LEN(rec, ARG_OUT, 32);
	EXPECT_LEN(rec, NESTED0_IN, 32);
	EXPECT_LEN(rec, NESTED0_OUT, 32);
	EXPECT_EQ(0, memcmp(&x, gw_capture(rec, GPUWATCH_CAP_XFER_IN) + 1, 16));
	EXPECT_EQ(0, memcmp(&c, gw_capture(rec, GPUWATCH_CAP_ARG_OUT) + 1, 32));
	EXPECT_EQ(0, memcmp(params, gw_capture(rec, GPUWATCH_CAP_NESTED0_OUT) + 1, 32));
}

TEST_F_TIMEOUT(plan_live, replaced_under_load, 240)
{
	static const char *const nodes[] = { "/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidiactl" };
	struct gpuwatch_plan_entry e = {
		.cmd = GWSIM_TRANSFORM(64), .cmd_mask = ~0U,
		.node_mask = (1 << GPUWATCH_NODE_MAX) - 1, .in_bytes = 64, .out_bytes = 64,
	};
	unsigned int n = lab_scaled(1000), i;
	unsigned long long calls, wrong, lengths[65] = { 0 };
	struct gpuwatch_plan_size sizes[64];
	struct lab_busy busy;
	struct gw_verdict v;
	size_t at;

	for (i = 0; i < 64; i++)
		sizes[i] = (struct gpuwatch_plan_size) { i, i };
	lab_busy_start(&busy, nodes, 3);
	for (i = 0; i < n; i++) {
		e.in_bytes = i % 2 ? 64 : 32;
		ASSERT_EQ(0, set_plan(self->r.fd, &e, 1, sizes, i % 64, 48));
		gw_reader_drain(&self->r, &self->s);
	}
	lab_busy_wait(&busy, 50);
	lab_busy_stop(&busy, &calls, &wrong);
	gw_reader_finish(&self->r, &self->s);
	EXPECT_EQ(0, wrong);
	EXPECT_EQ(n, gw_info(self->r.fd).plan_generation);
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	gw_verdict_print(&v);
	EXPECT_EQ(0, v.gaps + v.malformed + v.time_back + v.bad_bytes + v.undefined);
	EXPECT_EQ(calls, v.n[GPUWATCH_REC_IOCTL]);
	/* Each call by the one plan or the other, none by half of each. */
	for (at = 0; at < self->s.nr; at++) {
		const struct gpuwatch_rec_ioctl *io = gw_payload(gw_rec(&self->s, at));
		const struct gpuwatch_capture *c;

		if (gw_rec(&self->s, at)->type != GPUWATCH_REC_IOCTL || io->cmd != GWSIM_TRANSFORM(64))
			continue;
		c = gw_capture(gw_rec(&self->s, at), GPUWATCH_CAP_ARG_IN);
		ASSERT_TRUE(c && c->len <= 64);
		lengths[c->len]++;
	}
	EXPECT_LT(0, lengths[32]);
	EXPECT_LT(0, lengths[64]);
	EXPECT_EQ(v.storm, lengths[32] + lengths[64]);
}

TEST_HARNESS_MAIN
