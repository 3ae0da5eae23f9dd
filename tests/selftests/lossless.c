// SPDX-License-Identifier: Apache-2.0
/*
 * lossless - 100,000 calls of several processes and threads and 1,000 of 32-bit
 * programs: every one is recorded, in order, to the byte, as the driver itself
 * saw it. Both ways of hooking have to do it.
 */
#include <kselftest_harness.h>

#include "lib/verify.h"

FIXTURE(lossless) {
	struct gw_reader r;
	struct gw_stream s;
};

FIXTURE_VARIANT(lossless) {
	bool kretprobe;
	const char *driver;
};

FIXTURE_VARIANT_ADD(lossless, redirect) { .kretprobe = false, .driver = "" };
FIXTURE_VARIANT_ADD(lossless, kretprobe) { .kretprobe = true, .driver = "" };

FIXTURE_SETUP(lossless)
{
	struct gw_options o = { .ring_bytes = 4 << 20 };

	lab_fresh(variant->kretprobe, variant->driver);
	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
}

FIXTURE_TEARDOWN(lossless)
{
	gw_reader_stop(&self->r);
	gw_stream_free(&self->s);
}

/* Every count of the witness, by node and operation, is one of ours. */
#define EXPECT_SAME_COUNTS(v, totals) do { \
	for (int kind_ = 0; kind_ < GWSIM_NODE_MAX; kind_++) { \
		for (int op_ = 0; op_ < GWSIM_OP_MAX; op_++) { \
			EXPECT_EQ((totals)->counts.n[kind_][op_], (v)->op[kind_][op_]) \
				TH_LOG("node kind %d, operation %d", kind_, op_); \
		} \
	} \
} while (0)

TEST_F_TIMEOUT(lossless, storm, 240)
{
	unsigned long calls = lab_scaled(6250), calls32 = lab_scaled(250);
	unsigned long long unchecked, agree;
	struct gwsim_log_entry *log;
	struct gwsim_totals totals;
	char text[16], text32[16];
	struct gpuwatch_stats stats;
	struct lab_run run;
	struct gw_verdict v;
	size_t nr, i;

	snprintf(text, sizeof(text), "%lu", calls);
	snprintf(text32, sizeof(text32), "%lu", calls32);
	const char *const storm[] = {
		"gw-storm", "--procs", "4", "--threads", "4", "--calls", text, "--seed", "11",
		"--node", "/dev/nvidiactl", "--node", "/dev/nvidia0", "--node", "/dev/nvidia-uvm",
		"--node", "/dev/nvidiactl", "--node", "/dev/nvidia1",
		"--open-every", "500", "--mmap-every", "700", "--fork-every", "1500", NULL,
	};
	const char *const compat[] = {
		"gw-storm32", "--procs", "2", "--threads", "2", "--calls", text32, "--seed", "12",
		"--node", "/dev/nvidiactl", "--node", "/dev/nvidia0", "--nested-every", "50", NULL,
	};

	gw_stream_reserve(&self->s, 40 << 20);
	ASSERT_EQ(0, lab_run_drained(&run, storm, &self->r, &self->s));
	EXPECT_EQ(0, lab_number(&run, "wrong"));
	ASSERT_EQ(0, lab_run_drained(&run, compat, &self->r, &self->s));
	EXPECT_EQ(0, lab_number(&run, "wrong"));
	totals = lab_witness();
	stats = gw_stats(self->r.fd);
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	gw_verdict_print(&v);

	EXPECT_LE(16 * calls, lab_witness_op(&totals, GWSIM_OP_IOCTL));
	EXPECT_LE(4 * calls32, lab_witness_op(&totals, GWSIM_OP_COMPAT_IOCTL));
	EXPECT_SAME_COUNTS(&v, &totals);
	EXPECT_EQ(0, v.gaps);
	EXPECT_EQ(0, v.malformed);
	EXPECT_EQ(0, v.time_back);
	EXPECT_EQ(0, v.thread_back);
	EXPECT_EQ(0, v.thread_gaps);
	EXPECT_EQ(0, v.bad_bytes);
	EXPECT_EQ(0, v.undefined);
	EXPECT_EQ(self->s.nr, stats.records);
	EXPECT_EQ(stats.records, stats.seq);
	for (i = 0; i < GPUWATCH_LOSS_MAX; i++) {
		EXPECT_EQ(0, stats.lost[i])
			TH_LOG("lost for reason %zu", i);
	}

	log = lab_witness_log(&nr);
	EXPECT_EQ(0, totals.log_dropped);
	EXPECT_EQ(v.n[GPUWATCH_REC_IOCTL], nr);
	agree = gw_verify_log(&self->s, log, nr, &unchecked, &v);
	EXPECT_EQ(nr, agree)
		TH_LOG("%s", v.first);
	EXPECT_EQ(0, unchecked);
	/* Which of the two ways was under test? */
	for (i = 0; i < self->s.nr; i++) {
		const struct gpuwatch_rec *rec = gw_rec(&self->s, i);

		if (rec->type == GPUWATCH_REC_IOCTL) {
			ASSERT_EQ(variant->kretprobe, !!(rec->flags & GPUWATCH_F_PROBE));
		}
	}
	free(log);
}

/* Large arguments, of which the plan keeps the first bytes and says so. */
TEST_F_TIMEOUT(lossless, large_arguments, 60)
{
	const char *const storm[] = {
		"gw-storm", "--procs", "2", "--threads", "2", "--calls", "200", "--bytes", "4000", NULL,
	};
	struct gwsim_log_entry *log;
	unsigned long long unchecked;
	struct lab_run run;
	struct gw_verdict v;
	size_t nr, i;

	ASSERT_EQ(0, lab_run_drained(&run, storm, &self->r, &self->s));
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	EXPECT_EQ(800, v.storm);
	EXPECT_EQ(0, v.gaps + v.malformed + v.thread_gaps + v.thread_back + v.bad_bytes);
	log = lab_witness_log(&nr);
	EXPECT_EQ(nr, gw_verify_log(&self->s, log, nr, &unchecked, &v))
		TH_LOG("%s", v.first);
	EXPECT_EQ(800, unchecked);
	for (i = 0; i < self->s.nr; i++) {
		const struct gpuwatch_capture *c;

		if (gw_rec(&self->s, i)->type != GPUWATCH_REC_IOCTL)
			continue;
		c = gw_capture(gw_rec(&self->s, i), GPUWATCH_CAP_ARG_IN);
		ASSERT_NE(NULL, c);
		EXPECT_EQ(4000, c->want);
		EXPECT_EQ(256, c->len);
		EXPECT_EQ(GPUWATCH_CAPF_CAPPED, c->flags);
	}
	free(log);
}

TEST_HARNESS_MAIN
