// SPDX-License-Identifier: Apache-2.0
/*
 * faults - memory that cannot be had and user memory that cannot be read, at
 * every place in turn (failslab, fail_usercopy of a debug kernel): errors come
 * back as errors, traced calls keep their results, nothing crashes or hangs.
 */
#include <kselftest_harness.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "lib/verify.h"

#define DEBUG "/sys/kernel/debug/"

FIXTURE(faults) {
	struct lab_busy busy;
};

FIXTURE_VARIANT(faults) {
	const char *where;
	int error;	/* what a failed ioctl may say */
};

FIXTURE_VARIANT_ADD(faults, failslab) { "failslab", ENOMEM };
FIXTURE_VARIANT_ADD(faults, fail_page_alloc) { "fail_page_alloc", ENOMEM };
FIXTURE_VARIANT_ADD(faults, fail_usercopy) { "fail_usercopy", EFAULT };

static int set(const char *where, const char *name, const char *value)
{
	char path[256];

	snprintf(path, sizeof(path), DEBUG "%s/%s", where, name);
	return lab_write(path, value);
}

static int inject(const char *where, const char *probability)
{
	int err = 0;

	err |= set(where, "task-filter", "Y");
	err |= set(where, "verbose", "0");
	err |= set(where, "interval", "1");
	err |= set(where, "times", "-1");
	set(where, "ignore-gfp-wait", "N");
	set(where, "ignore-gfp-highmem", "N");
	set(where, "min-order", "0");
	return err | set(where, "probability", probability);
}

/*
 * Faults hit the calling process only while this is on. Switching them off may
 * run into one itself, so the file is opened before, and the write repeated.
 */
static void fail_me(bool on)
{
	static int fd = -1;

	if (fd < 0)
		fd = open("/proc/self/make-it-fail", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		abort();
	while (pwrite(fd, on ? "1" : "0", 1, 0) != 1)
		;
}

FIXTURE_SETUP(faults)
{
	/* Without it there is nothing to test; the suite asks debug kernels only. */
	ASSERT_EQ(0, set(variant->where, "probability", "0"));
	lab_fresh(false, "");
}

FIXTURE_TEARDOWN(faults)
{
	set(variant->where, "probability", "0");
}

/* Everything a consumer does, again and again; returns how often all went well. */
static unsigned int life_of_consumers(unsigned int rounds, int error, unsigned int *strange)
{
	struct gpuwatch_plan_entry e = {
		.cmd = 0xe1, .cmd_mask = 0xff, .node_mask = 0x3ff, .in_bytes = 64, .out_bytes = 64,
	};
	struct gpuwatch_plan_size z = { 1, 2 };
	unsigned int good = 0, i;

	for (i = 0; i < rounds; i++) {
		struct gpuwatch_plan plan = { .entries = (uintptr_t)&e, .nr_entries = 1,
					      .sizes = (uintptr_t)&z, .nr_sizes = 1, .default_bytes = 64 };
		struct gpuwatch_filter f = { .cgroup_fd = -1 };
		struct gpuwatch_setup s = { .abi_major = GPUWATCH_ABI_MAJOR, .ring_bytes = 16384 };
		struct gpuwatch_detach d = { .timeout_ms = 5000 };
		int fd, k;

		fail_me(true);
		fd = gw_open();
		for (k = 0; fd >= 0 && k < 6; k++) {
			static const unsigned long cmds[] = {
				GPUWATCH_IOC_SETUP, GPUWATCH_IOC_SET_FILTER, GPUWATCH_IOC_SET_PLAN,
				GPUWATCH_IOC_ATTACH, GPUWATCH_IOC_ENABLE, GPUWATCH_IOC_DETACH,
			};
			void *args[] = { &s, &f, &plan, NULL, NULL, &d };

			if (!ioctl(fd, cmds[k], args[k])) {
				good += k == 5;
				continue;
			}
			/* After a refused SETUP the rest has nothing to work on. */
			if (errno != error && errno != ENOMEM && errno != EFAULT && errno != ENXIO) {
				int code = errno;

				fail_me(false);
				printf("# ioctl %d says %s\n", k, strerror(code));
				fail_me(true);
				++*strange;
			}
		}
		fail_me(false);
		if (fd >= 0)
			close(fd);
	}
	return good;
}

/* Attach, setup, plan and detach run into faults; four processes must not. */
TEST_F_TIMEOUT(faults, attach_and_detach, 300)
{
	static const char *const nodes[] = { "/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm", "/dev/nvidiactl" };
	static const char *const chances[] = { "1", "5", "20", "60" };
	unsigned long long calls, wrong;
	unsigned int i, good = 0, strange = 0;
	struct gw_options o = {};
	struct gw_reader r;
	struct gw_stream s = {};
	struct gw_verdict v;

	lab_busy_start(&self->busy, nodes, 4);
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, inject(variant->where, chances[i]));
		good += life_of_consumers(12, variant->error, &strange);
		ASSERT_EQ(0, inject(variant->where, "0"));
	}
	lab_busy_wait(&self->busy, 100);
	lab_busy_stop(&self->busy, &calls, &wrong);
	EXPECT_EQ(0, wrong);
	EXPECT_EQ(0, strange);
	EXPECT_LT(0, good);
	printf("# %u of 48 rounds went through, %llu calls\n", good, calls);
	/* When the faults are over everything works as ever. */
	lab_wait_detached();
	ASSERT_EQ(0, gw_reader_start(&r, &o));
	lab_busy_start(&self->busy, nodes, 4);
	lab_busy_wait(&self->busy, 200);
	lab_busy_stop(&self->busy, &calls, &wrong);
	gw_reader_finish(&r, &s);
	gw_verify(&s, r.info.nr_cpus, NULL, &v);
	gw_verdict_print(&v);
	EXPECT_EQ(0, wrong);
	EXPECT_EQ(calls, v.n[GPUWATCH_REC_IOCTL]);
	EXPECT_EQ(0, v.gaps + v.malformed + v.undefined);
	gw_reader_stop(&r);
	gw_stream_free(&s);
	lab_wait_detached();
	EXPECT_EQ(0, lab_refcount("gpuwatch"));
}

/* A traced process without any memory to be had: its small calls need none. */
TEST_F_TIMEOUT(faults, traced_calls, 120)
{
	enum { kCalls = 300 };
	struct gw_options o = {};
	struct gw_reader r;
	struct gw_stream s = {};
	struct gwsim_log_entry *log;
	unsigned int failed = 0, i, at = 0;
	long rets[kCalls];
	struct gw_verdict v;
	uint8_t arg[64];
	size_t nr, k;
	int fd;

	ASSERT_EQ(0, gw_reader_start(&r, &o));
	fd = lab_node("/dev/nvidiactl");
	memset(arg, 0, sizeof(arg));
	ASSERT_EQ(0, inject(variant->where, variant->error == EFAULT ? "30" : "100"));
	for (i = 0; i < kCalls; i++) {
		fail_me(true);
		rets[i] = lab_transform(fd, arg, sizeof(arg));
		fail_me(false);
		failed += rets[i] != 0;
	}
	ASSERT_EQ(0, inject(variant->where, "0"));
	close(fd);
	gw_reader_finish(&r, &s);
	gw_verify(&s, r.info.nr_cpus, NULL, &v);
	gw_verdict_print(&v);
	EXPECT_EQ(kCalls, v.n[GPUWATCH_REC_IOCTL]);
	EXPECT_EQ(0, v.gaps + v.malformed + v.undefined);
	/* Lack of memory is no reason at all; a copy that failed is the driver's own. */
	EXPECT_EQ(variant->error == EFAULT, failed > 0);
	log = lab_witness_log(&nr);
	ASSERT_EQ(kCalls, nr);
	for (k = 0; k < s.nr && at < kCalls; k++) {
		const struct gpuwatch_rec_ioctl *io = gw_payload(gw_rec(&s, k));

		if (gw_rec(&s, k)->type != GPUWATCH_REC_IOCTL)
			continue;
		EXPECT_EQ(rets[at], io->ret);
		EXPECT_EQ(log[at].ret, io->ret);
		at++;
	}
	free(log);
	gw_reader_stop(&r);
	gw_stream_free(&s);
}

TEST_HARNESS_MAIN
