// SPDX-License-Identifier: Apache-2.0
/*
 * loss - what does not reach the reader is counted, by reason, and the sums are
 * exact: records + lost == calls that the driver itself counted.
 */
#include <kselftest_harness.h>
#include <errno.h>
#include <pthread.h>
#include <sys/ioctl.h>

#include "lib/verify.h"

#define CALLS_ONLY (GPUWATCH_CLASS(GPUWATCH_REC_OPEN) | GPUWATCH_CLASS(GPUWATCH_REC_IOCTL) | \
		    GPUWATCH_CLASS(GPUWATCH_REC_MMAP) | GPUWATCH_CLASS(GPUWATCH_REC_RELEASE))

FIXTURE(loss) {
	struct gw_reader r;
	struct gw_stream s;
};

FIXTURE_SETUP(loss)
{
	lab_fresh(false, "");
	self->r.fd = -1;
}

FIXTURE_TEARDOWN(loss)
{
	gw_reader_stop(&self->r);
	gw_stream_free(&self->s);
}

static unsigned long long lost_total(const struct gpuwatch_stats *st)
{
	unsigned long long n = 0;
	int i;

	for (i = 0; i < GPUWATCH_LOSS_MAX; i++)
		n += st->lost[i];
	return n;
}

/* A call on every CPU, so that every ring shows where it stands. */
static void touch_cpus(unsigned int nr)
{
	uint8_t arg[64] = { 0 };
	int fd = lab_node("/dev/nvidiactl");
	unsigned int i;

	for (i = 0; i < nr; i++) {
		lab_pin(i);
		lab_transform(fd, arg, sizeof(arg));
	}
	lab_pin(-1);
	close(fd);
}

TEST_F_TIMEOUT(loss, stopped_reader, 120)
{
	const struct gpuwatch_filter calls = { .class_mask = CALLS_ONLY, .cgroup_fd = -1 };
	struct gw_options o = { .ring_bytes = 65536, .filter = &calls };
	unsigned long calls_each = lab_scaled(1500);
	unsigned long long issued, seen = 0, missing = 0;
	struct gpuwatch_stats st;
	struct gwsim_totals t;
	struct lab_run run;
	struct gw_verdict v;
	char text[16];
	int kind, op;

	snprintf(text, sizeof(text), "%lu", calls_each);
	const char *const storm[] = {
		"gw-storm", "--procs", "3", "--threads", "2", "--calls", text, "--open-every", "100",
		"--mmap-every", "150", "--nested-every", "10", "--unknown", "20",
		"--node", "/dev/nvidiactl", "--node", "/dev/nvidia0", NULL,
	};

	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	lab_start(&run, storm);
	ASSERT_EQ(0, lab_finish(&run));
	t = lab_witness();
	issued = lab_witness_calls(&t);
	st = gw_stats(self->r.fd);
	EXPECT_EQ(issued, st.seq);
	EXPECT_EQ(issued, st.records + st.lost[GPUWATCH_LOSS_RING_FULL]);
	EXPECT_LT(0, st.lost[GPUWATCH_LOSS_RING_FULL]);
	EXPECT_EQ(st.lost[GPUWATCH_LOSS_RING_FULL], lost_total(&st));

	/* The reader goes on: gaps in the sequence are what was counted. */
	gw_reader_finish(&self->r, &self->s);
	EXPECT_EQ(st.records, self->s.nr);
	ASSERT_EQ(0, lab_run_drained(&run, storm, &self->r, &self->s));
	touch_cpus(self->r.info.nr_cpus);
	gw_reader_finish(&self->r, &self->s);
	st = gw_stats(self->r.fd);
	t = lab_witness();
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	gw_verdict_print(&v);
	EXPECT_EQ(st.records, self->s.nr);
	EXPECT_EQ(st.lost[GPUWATCH_LOSS_RING_FULL], v.gaps);
	EXPECT_EQ(lab_witness_calls(&t), st.records + lost_total(&st));
	EXPECT_EQ(0, v.malformed + v.time_back + v.thread_back + v.bad_bytes);
	for (kind = 0; kind < GWSIM_NODE_MAX; kind++) {
		for (op = 0; op < GWSIM_OP_MAX; op++) {
			EXPECT_GE(t.counts.n[kind][op], v.op[kind][op]);
			seen += v.op[kind][op];
			missing += t.counts.n[kind][op] - v.op[kind][op];
		}
	}
	EXPECT_EQ(seen, self->s.nr);
	EXPECT_EQ(missing, v.gaps);
}

/* One process on one CPU, definitions in the ring: exact to the single record. */
TEST_F_TIMEOUT(loss, with_definitions, 60)
{
	struct gw_options o = { .ring_bytes = 4096 };
	struct gpuwatch_stats st;
	uint8_t arg[64] = { 0 };
	struct gw_verdict v;
	int fd, i;

	lab_pin(0);
	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	gw_reader_finish(&self->r, &self->s);
	st = gw_stats(self->r.fd);
	fd = lab_node("/dev/nvidiactl");
	for (i = 0; i < 100; i++)
		ASSERT_EQ(0, lab_transform(fd, arg, sizeof(arg)));
	gw_reader_finish(&self->r, &self->s);
	gw_verify_parts(&self->s, &v);
	/* TASK and CGROUP once each, before the STATE of the hooks that we set. */
	EXPECT_EQ(1, v.n[GPUWATCH_REC_TASK]);
	EXPECT_EQ(1, v.n[GPUWATCH_REC_CGROUP]);
	EXPECT_EQ(1, v.n[GPUWATCH_REC_OPEN]);
	EXPECT_LT(0, v.n[GPUWATCH_REC_IOCTL]);
	EXPECT_GT(100, v.n[GPUWATCH_REC_IOCTL]);
	EXPECT_EQ(100 - v.n[GPUWATCH_REC_IOCTL],
		  gw_stats(self->r.fd).lost[GPUWATCH_LOSS_RING_FULL] -
		  st.lost[GPUWATCH_LOSS_RING_FULL]);
	close(fd);
}

/* A record larger than the ring has a reason of its own. */
TEST_F(loss, too_big)
{
	struct gpuwatch_plan plan = { .default_bytes = 8192 };
	struct gw_options o = { .ring_bytes = 4096 };
	static uint8_t arg[4096];
	struct gpuwatch_stats st;
	struct gw_verdict v;
	int fd, i;

	lab_pin(0);
	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	ASSERT_EQ(0, ioctl(self->r.fd, GPUWATCH_IOC_SET_PLAN, &plan));
	fd = lab_node("/dev/nvidiactl");
	gw_reader_finish(&self->r, &self->s);
	gw_stream_clear(&self->s);
	for (i = 0; i < 7; i++) {
		ASSERT_EQ(0, lab_transform(fd, arg, sizeof(arg)));
		ASSERT_EQ(0, lab_transform(fd, arg, 64));
		gw_reader_finish(&self->r, &self->s);
	}
	st = gw_stats(self->r.fd);
	gw_verify_parts(&self->s, &v);
	EXPECT_EQ(7, st.lost[GPUWATCH_LOSS_TOO_BIG]);
	EXPECT_EQ(0, st.lost[GPUWATCH_LOSS_RING_FULL]);
	EXPECT_EQ(7, v.n[GPUWATCH_REC_IOCTL]);
	EXPECT_EQ(st.seq, st.records + 7);
	close(fd);
	/* Only a new module has the built-in plan again. */
	gw_reader_stop(&self->r);
	lab_gpuwatch_unload();
}

static void *blocked_thread(void *arg)
{
	struct gwsim_block b = { .ms = 6000, .killable = 1 };

	(void)arg;
	ioctl(lab_node("/dev/nvidiactl"), GWSIM_BLOCK, &b);
	return NULL;
}

/* More calls at once in one function than a kretprobe has instances. */
TEST_F_TIMEOUT(loss, probe_missed, 120)
{
	enum { kThreads = 160 };
	struct gw_options o = {};
	pthread_t threads[kThreads];
	struct gpuwatch_stats st;
	struct gwsim_totals t;
	struct gw_verdict v;
	int i;

	lab_fresh(true, "");
	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	close(lab_node("/dev/nvidiactl"));	/* hooks the functions */
	usleep(200000);
	lab_witness_reset();
	for (i = 0; i < kThreads; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, blocked_thread, NULL));
	for (i = 0; i < kThreads; i++)
		pthread_join(threads[i], NULL);
	gw_reader_finish(&self->r, &self->s);
	gw_verify_parts(&self->s, &v);
	st = gw_stats(self->r.fd);
	t = lab_witness();
	EXPECT_EQ(kThreads, lab_witness_op(&t, GWSIM_OP_IOCTL));
	EXPECT_GT(kThreads, v.n[GPUWATCH_REC_IOCTL]);
	EXPECT_EQ(kThreads - v.n[GPUWATCH_REC_IOCTL], st.lost[GPUWATCH_LOSS_PROBE_MISSED]);
	EXPECT_EQ(st.lost[GPUWATCH_LOSS_PROBE_MISSED], gw_info(self->r.fd).probe_missed);
}

TEST_HARNESS_MAIN
