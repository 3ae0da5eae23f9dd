// SPDX-License-Identifier: Apache-2.0
/*
 * cycles - hooks come and go 200 times, and the module 50 times, while four
 * processes call the driver: their answers stay right and nothing is left over.
 */
#include <kselftest_harness.h>
#include <errno.h>
#include <sys/ioctl.h>

#include "lib/verify.h"

static const char *const nodes[] = {
	"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm", "/dev/nvidiactl",
};

/* What could leak, in kB. Page tables and caches of the tests stay out. A debug
 * kernel keeps what was freed for a while; there kmemleak tells. */
static long kernel_memory(void)
{
	if (lab_debug_kernel())
		return 0;
	return lab_meminfo_kb("Slab") + lab_meminfo_kb("VmallocUsed") + lab_meminfo_kb("Percpu") +
	       lab_meminfo_kb("KernelStack");
}

FIXTURE(cycles) {
	struct lab_busy busy;
	unsigned long long calls, wrong;
};

FIXTURE_VARIANT(cycles) {
	bool kretprobe;
	unsigned int attach, load;
};

FIXTURE_VARIANT_ADD(cycles, redirect) { false, 200, 50 };
FIXTURE_VARIANT_ADD(cycles, kretprobe) { true, 20, 10 };

FIXTURE_SETUP(cycles)
{
	lab_fresh(variant->kretprobe, "");
	lab_busy_start(&self->busy, nodes, 4);
}

FIXTURE_TEARDOWN(cycles)
{
}

static int detach(int fd)
{
	struct gpuwatch_detach d = { .timeout_ms = 5000 };

	return ioctl(fd, GPUWATCH_IOC_DETACH, &d) ? -errno : 0;
}

TEST_F_TIMEOUT(cycles, attach, 600)
{
	unsigned int n = lab_scaled(variant->attach), i, seen = 0;
	struct gw_options o = { .ring_bytes = 1 << 20 };
	struct gw_stream s = {};
	uint64_t attach_ns = 0, detach_ns = 0, from;
	struct gw_verdict v;
	long before = 0;
	int fd;

	fd = gw_open();
	ASSERT_LE(0, fd);
	for (i = 0; i < n; i++) {
		struct gw_reader r;

		if (i == n / 10)
			before = kernel_memory();
		/* By turns: pinned with an explicit detach, and a consumer that goes. */
		from = gw_now_ns();
		if (i % 2)
			ASSERT_EQ(0, ioctl(fd, GPUWATCH_IOC_ATTACH));
		ASSERT_EQ(0, gw_reader_start(&r, &o));
		attach_ns += gw_now_ns() - from;
		lab_busy_wait(&self->busy, 40);
		gw_reader_finish(&r, &s);
		gw_verify(&s, r.info.nr_cpus, NULL, &v);
		/* The ring may run full where the machine is slow; that is no fault. */
		EXPECT_LE(v.gaps, gw_stats(r.fd).lost[GPUWATCH_LOSS_RING_FULL]);
		EXPECT_EQ(0, v.malformed + v.time_back + v.bad_bytes + v.undefined)
			TH_LOG("cycle %u: %s (%llu time, %llu undefined)", i, v.first, v.time_back,
			       v.undefined);
		seen += v.n[GPUWATCH_REC_IOCTL] > 0;
		gw_stream_clear(&s);
		gw_reader_stop(&r);
		from = gw_now_ns();
		ASSERT_EQ(0, detach(fd))
			TH_LOG("cycle %u", i);
		detach_ns += gw_now_ns() - from;
		ASSERT_EQ(0, gw_info(fd).attached);
		ASSERT_EQ(0, gw_info(fd).in_flight);
	}
	lab_busy_stop(&self->busy, &self->calls, &self->wrong);
	EXPECT_EQ(n, seen);
	EXPECT_EQ(0, self->wrong);
	EXPECT_EQ(0, gw_info(fd).nr_consumers);
	EXPECT_EQ(0, gw_info(fd).stage_exhausted);
	close(fd);
	gw_stream_free(&s);
	EXPECT_EQ(0, lab_refcount("gpuwatch"));
	printf("# %u cycles, %llu calls, kernel memory %ld kB before and %ld kB after\n", n,
	       self->calls, before, kernel_memory());
	printf("# attach %llu ms, detach %llu ms on average\n",
	       (unsigned long long)attach_ns / n / 1000000, (unsigned long long)detach_ns / n / 1000000);
	EXPECT_GT(4096, kernel_memory() - before);
}

TEST_F_TIMEOUT(cycles, load, 600)
{
	unsigned int n = lab_scaled(variant->load), i;
	struct gw_options o = { .ring_bytes = 1 << 20 };
	struct gw_stream s = {};
	struct gw_verdict v;
	long before = 0;

	for (i = 0; i < n; i++) {
		struct gw_reader r;

		if (i == n / 10)
			before = kernel_memory();
		lab_gpuwatch_unload();
		ASSERT_FALSE(lab_loaded("gpuwatch"));
		lab_busy_wait(&self->busy, 10);
		ASSERT_EQ(0, lab_load("gpuwatch.ko", variant->kretprobe ? "kretprobe=1" : ""));
		ASSERT_EQ(0, gw_reader_start(&r, &o));
		lab_busy_wait(&self->busy, 40);
		gw_reader_finish(&r, &s);
		gw_verify(&s, r.info.nr_cpus, NULL, &v);
		EXPECT_LT(0, v.n[GPUWATCH_REC_IOCTL]);
		/* The ring may run full where the machine is slow; that is no fault. */
		EXPECT_LE(v.gaps, gw_stats(r.fd).lost[GPUWATCH_LOSS_RING_FULL]);
		EXPECT_EQ(0, v.malformed + v.time_back + v.bad_bytes + v.undefined)
			TH_LOG("cycle %u: %s (%llu time, %llu undefined)", i, v.first, v.time_back,
			       v.undefined);
		gw_stream_clear(&s);
		gw_reader_stop(&r);
	}
	lab_gpuwatch_unload();
	lab_busy_stop(&self->busy, &self->calls, &self->wrong);
	EXPECT_EQ(0, self->wrong);
	gw_stream_free(&s);
	printf("# %u cycles, %llu calls, kernel memory %ld kB before and %ld kB after\n", n,
	       self->calls, before, kernel_memory());
	EXPECT_GT(4096, kernel_memory() - before);
}

TEST_HARNESS_MAIN
