// SPDX-License-Identifier: Apache-2.0
/*
 * overwrite - the flight recorder: old records go, the newest stay, and what is
 * copied out while calls run is whole.
 */
#include <kselftest_harness.h>
#include <errno.h>
#include <poll.h>

#include "../vm/guest/storm.h"
#include "lib/verify.h"

FIXTURE(overwrite) {
	struct gw_reader r;
	struct gw_stream s;
};

FIXTURE_SETUP(overwrite)
{
	struct gw_options o = { .mode = GPUWATCH_MODE_OVERWRITE, .ring_bytes = 65536 };

	lab_fresh(false, "");
	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
}

FIXTURE_TEARDOWN(overwrite)
{
	gw_reader_stop(&self->r);
	gw_stream_free(&self->s);
}

static void storm_calls(int fd, uint64_t from, uint64_t to)
{
	uint8_t arg[64];

	for (; from < to; from++) {
		storm_fill(arg, sizeof(arg), 3, 0, 0, from);
		lab_transform(fd, arg, sizeof(arg));
	}
}

TEST_F_TIMEOUT(overwrite, newest_stay, 60)
{
	enum { kCalls = 2000 };
	const struct storm_arg *first, *last;
	struct gpuwatch_stats st;
	unsigned long long kept = 0;
	struct gw_verdict v;
	unsigned int cpu;
	int fd;

	lab_pin(0);
	fd = lab_node("/dev/nvidiactl");
	storm_calls(fd, 0, kCalls);
	gw_reader_snapshot(&self->r, 0, &self->s);
	ASSERT_LT(0, self->s.nr);
	/* What is kept fills the ring but for less than the largest record. */
	EXPECT_LT(65536 - 8192, self->s.used);
	EXPECT_GE(65536, self->s.used);
	gw_verify_parts(&self->s, &v);
	gw_verdict_print(&v);
	EXPECT_EQ(0, v.malformed + v.bad_bytes);
	EXPECT_LE(1, v.n[GPUWATCH_REC_TASK]);
	EXPECT_LE(1, v.n[GPUWATCH_REC_CGROUP]);
	last = (const void *)(gw_capture(gw_rec(&self->s, self->s.nr - 1), GPUWATCH_CAP_ARG_IN) + 1);
	EXPECT_EQ(kCalls - 1, last->seq);
	for (size_t i = 0; i < self->s.nr; i++) {
		const struct gpuwatch_capture *c = gw_capture(gw_rec(&self->s, i), GPUWATCH_CAP_ARG_IN);

		if (gw_rec(&self->s, i)->type != GPUWATCH_REC_IOCTL)
			continue;
		first = (const void *)(c + 1);
		EXPECT_EQ(kCalls - v.n[GPUWATCH_REC_IOCTL], first->seq);
		break;
	}
	for (size_t i = 1; i < self->s.nr; i++) {
		EXPECT_EQ(gw_rec(&self->s, i - 1)->seq + 1, gw_rec(&self->s, i)->seq);
	}
	for (cpu = 0; cpu < self->r.info.nr_cpus; cpu++) {
		gw_stream_clear(&self->s);
		gw_reader_snapshot(&self->r, cpu, &self->s);
		kept += self->s.nr;
	}
	st = gw_stats(self->r.fd);
	EXPECT_EQ(st.records, kept + st.lost[GPUWATCH_LOSS_OVERWRITTEN]);
	EXPECT_EQ(0, st.lost[GPUWATCH_LOSS_RING_FULL]);
	close(fd);
}

/*
 * Records of the newer half of the ring have their definitions in it. @s begins
 * with the oldest record there was when the copy was done.
 */
static unsigned long long undefined_in_newer_half(const struct gw_stream *s, uint64_t ring_bytes,
						  unsigned long long *looked)
{
	struct gw_set defined = {};
	unsigned long long bad = 0;
	size_t i;

	for (i = 0; i < s->nr; i++) {
		const struct gpuwatch_rec *rec = gw_rec(s, i);

		if (rec->type == GPUWATCH_REC_TASK)
			gw_set_add(&defined, gw_task_key(rec));
		if (rec->type == GPUWATCH_REC_CGROUP)
			gw_set_add(&defined, gw_cgroup_key(rec));
	}
	for (i = 0; i < s->nr; i++) {
		const struct gpuwatch_rec *rec = gw_rec(s, i);

		if (rec->type == GPUWATCH_REC_STATE || s->at[i] < ring_bytes / 2)
			continue;
		++*looked;
		bad += !gw_set_has(&defined, gw_task_key(rec)) ||
		       !gw_set_has(&defined, gw_cgroup_key(rec));
	}
	gw_set_free(&defined);
	return bad;
}

TEST_F_TIMEOUT(overwrite, snapshots_under_storm, 120)
{
	char text[16];
	const char *const storm[] = {
		"gw-storm", "--procs", "3", "--threads", "2", "--calls", text, "--fork-every", "40",
		"--open-every", "200", "--node", "/dev/nvidiactl", "--node", "/dev/nvidia-uvm", NULL,
	};
	unsigned long long snapshots = 0, records = 0, looked = 0;
	struct gw_verdict v;
	struct lab_run run;
	unsigned int cpu;
	int status;
	size_t i;

	snprintf(text, sizeof(text), "%lu", lab_scaled(2000));
	lab_start(&run, storm);
	while (!lab_done(&run, &status)) {
		for (cpu = 0; cpu < self->r.info.nr_cpus; cpu++) {
			gw_stream_clear(&self->s);
			gw_reader_snapshot(&self->r, cpu, &self->s);
			gw_verify_parts(&self->s, &v);
			ASSERT_EQ(0, v.malformed + v.bad_bytes)
				TH_LOG("%s", v.first);
			for (i = 1; i < self->s.nr; i++) {
				ASSERT_EQ(gw_rec(&self->s, i - 1)->seq + 1, gw_rec(&self->s, i)->seq);
				ASSERT_LE(gw_rec(&self->s, i - 1)->time_ns,
					  gw_rec(&self->s, i)->time_ns);
			}
			ASSERT_EQ(0, undefined_in_newer_half(&self->s, 65536, &looked));
			records += self->s.nr;
			snapshots++;
		}
		usleep(5000);
	}
	EXPECT_EQ(0, status);
	EXPECT_LT(20, snapshots);
	EXPECT_LT(1000, looked);
	printf("# %llu snapshots, %llu records, %llu of newer halves\n", snapshots, records, looked);
}

/* read() gives the oldest that are left, then goes on without a repetition. */
TEST_F_TIMEOUT(overwrite, read, 60)
{
	static uint8_t buf[32768];
	uint64_t next = 0;
	unsigned long long n = 0;
	ssize_t got;
	size_t i;
	int fd;

	lab_pin(0);
	fd = lab_node("/dev/nvidiactl");
	storm_calls(fd, 0, 1000);
	while ((got = read(self->r.fd, buf, sizeof(buf))) > 0) {
		gw_stream_clear(&self->s);
		gw_stream_add(&self->s, buf, got);
		for (i = 0; i < self->s.nr; i++) {
			const struct gpuwatch_rec *rec = gw_rec(&self->s, i);

			if (rec->cpu != 0)
				continue;
			EXPECT_LE(next, rec->seq);
			next = rec->seq + 1;
			n++;
		}
	}
	EXPECT_EQ(-1, got);
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_EQ(self->r.rings[0].prod->next_seq, next);
	storm_calls(fd, 1000, 1010);
	got = read(self->r.fd, buf, sizeof(buf));
	ASSERT_LT(0, got);
	gw_stream_clear(&self->s);
	gw_stream_add(&self->s, buf, got);
	EXPECT_EQ(10, self->s.nr);
	EXPECT_EQ(next, gw_rec(&self->s, 0)->seq);
	EXPECT_LT(100, n);
	close(fd);
}

TEST_HARNESS_MAIN
