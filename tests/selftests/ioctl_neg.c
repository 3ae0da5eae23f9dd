// SPDX-License-Identifier: Apache-2.0
/*
 * ioctl_neg - one wrong thing at a time in otherwise good arguments of
 * /dev/gpuwatch's ioctls, and that nothing changes by it.
 */
#include <kselftest_harness.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#include "lib/verify.h"

FIXTURE(ioctl_neg) {
	int fd;
	struct gpuwatch_setup setup;
	struct gpuwatch_filter filter;
};

FIXTURE_SETUP(ioctl_neg)
{
	lab_fresh(false, "");
	self->fd = gw_open();
	ASSERT_LE(0, self->fd);
	self->setup = (struct gpuwatch_setup) {
		.abi_major = GPUWATCH_ABI_MAJOR, .ring_bytes = 65536, .watermark_bytes = 4096,
	};
	self->filter = (struct gpuwatch_filter) { .cgroup_fd = -1 };
}

FIXTURE_TEARDOWN(ioctl_neg)
{
	close(self->fd);
}

static int try(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) ? errno : 0;
}

#define SETUP() try(self->fd, GPUWATCH_IOC_SETUP, &self->setup)
#define FILTER() try(self->fd, GPUWATCH_IOC_SET_FILTER, &self->filter)

TEST_F(ioctl_neg, good)
{
	EXPECT_EQ(0, SETUP());
	EXPECT_EQ(0, FILTER());
	EXPECT_EQ(0, try(self->fd, GPUWATCH_IOC_ENABLE, NULL));
	EXPECT_EQ(0, try(self->fd, GPUWATCH_IOC_DISABLE, NULL));
}

TEST_F(ioctl_neg, abi)
{
	self->setup.abi_major = GPUWATCH_ABI_MAJOR + 1;
	EXPECT_EQ(EPROTO, SETUP());
	self->setup.abi_major = 0;
	EXPECT_EQ(EPROTO, SETUP());
	self->setup.abi_major = GPUWATCH_ABI_MAJOR;
	EXPECT_EQ(0, SETUP());
}

TEST_F(ioctl_neg, setup_flags) { self->setup.flags = 2; EXPECT_EQ(EINVAL, SETUP()); }
TEST_F(ioctl_neg, setup_holds_images) { self->setup.flags = GPUWATCH_SETUP_HOLD_IMAGES; EXPECT_EQ(0, SETUP()); }
TEST_F(ioctl_neg, setup_mode) { self->setup.mode = 2; EXPECT_EQ(EINVAL, SETUP()); }
TEST_F(ioctl_neg, setup_no_ring) { self->setup.ring_bytes = 0; EXPECT_EQ(EINVAL, SETUP()); }
TEST_F(ioctl_neg, setup_not_power) { self->setup.ring_bytes = 65536 + 4096; EXPECT_EQ(EINVAL, SETUP()); }
TEST_F(ioctl_neg, setup_small_ring) { self->setup.ring_bytes = 2048; self->setup.watermark_bytes = 0; EXPECT_EQ(EINVAL, SETUP()); }
TEST_F(ioctl_neg, setup_large_ring) { self->setup.ring_bytes = 128 << 20; EXPECT_EQ(EINVAL, SETUP()); }
TEST_F(ioctl_neg, setup_huge_ring) { self->setup.ring_bytes = 1ULL << 63; EXPECT_EQ(EINVAL, SETUP()); }
TEST_F(ioctl_neg, setup_watermark) { self->setup.watermark_bytes = 65537; EXPECT_EQ(EINVAL, SETUP()); }
TEST_F(ioctl_neg, setup_watermark_equal) { self->setup.watermark_bytes = 65536; EXPECT_EQ(0, SETUP()); }
TEST_F(ioctl_neg, setup_smallest) { self->setup.ring_bytes = 4096; EXPECT_EQ(0, SETUP()); }
TEST_F(ioctl_neg, setup_null) { EXPECT_EQ(EFAULT, try(self->fd, GPUWATCH_IOC_SETUP, NULL)); }
TEST_F(ioctl_neg, setup_twice) { EXPECT_EQ(0, SETUP()); EXPECT_EQ(EBUSY, SETUP()); }

/* Much of the machine's memory, and all of it given back. */
TEST_F_TIMEOUT(ioctl_neg, memory_given_back, 240)
{
	long before = lab_meminfo_kb("MemFree");
	int fds[16], n, err = 0;

	self->setup.ring_bytes = 32 << 20;
	for (n = 0; n < 16 && !err; n++) {
		/* Not to the last page, or the kernel would end processes. */
		if (lab_meminfo_kb("MemAvailable") < 300 * 1024)
			break;
		fds[n] = gw_open();
		ASSERT_LE(0, fds[n]);
		err = try(fds[n], GPUWATCH_IOC_SETUP, &self->setup);
		EXPECT_TRUE(err == 0 || err == ENOMEM);
	}
	while (n-- > 0)
		close(fds[n]);
	EXPECT_GT(before / 10, before - lab_meminfo_kb("MemFree"));
}

TEST_F(ioctl_neg, before_setup)
{
	struct gpuwatch_stats stats;

	EXPECT_EQ(ENXIO, FILTER());
	EXPECT_EQ(ENXIO, try(self->fd, GPUWATCH_IOC_ENABLE, NULL));
	EXPECT_EQ(ENXIO, try(self->fd, GPUWATCH_IOC_DISABLE, NULL));
	EXPECT_EQ(ENXIO, try(self->fd, GPUWATCH_IOC_GET_STATS, &stats));
	EXPECT_EQ(0, gw_info(self->fd).attached);
}

TEST_F(ioctl_neg, filter_nodes) { SETUP(); self->filter.node_mask = 1 << GPUWATCH_NODE_MAX; EXPECT_EQ(EINVAL, FILTER()); }
TEST_F(ioctl_neg, filter_pids) { SETUP(); self->filter.nr_pids = GPUWATCH_FILTER_PIDS + 1; EXPECT_EQ(EINVAL, FILTER()); }
TEST_F(ioctl_neg, filter_most_pids) { SETUP(); self->filter.nr_pids = GPUWATCH_FILTER_PIDS; EXPECT_EQ(0, FILTER()); }
TEST_F(ioctl_neg, filter_negative_fd) { SETUP(); self->filter.cgroup_fd = -2; EXPECT_EQ(EINVAL, FILTER()); }
TEST_F(ioctl_neg, filter_closed_fd) { SETUP(); self->filter.cgroup_fd = 987; EXPECT_EQ(EBADF, FILTER()); }
TEST_F(ioctl_neg, filter_null) { SETUP(); EXPECT_EQ(EFAULT, try(self->fd, GPUWATCH_IOC_SET_FILTER, NULL)); }

TEST_F(ioctl_neg, filter_no_cgroup)
{
	SETUP();
	self->filter.cgroup_fd = open("/tmp", O_RDONLY | O_DIRECTORY);
	EXPECT_EQ(EBADF, FILTER());
	close(self->filter.cgroup_fd);
	self->filter.cgroup_fd = open("/dev/null", O_RDONLY);
	EXPECT_NE(0, FILTER());
	close(self->filter.cgroup_fd);
	self->filter.cgroup_fd = self->fd;
	EXPECT_NE(0, FILTER());
}

TEST_F(ioctl_neg, unknown_commands)
{
	static uint8_t arg[4096];
	unsigned int nr;

	SETUP();
	for (nr = 6; nr < 0x10; nr++)
		EXPECT_EQ(ENOTTY, try(self->fd, _IO(GPUWATCH_IOC_MAGIC, nr), arg));
	EXPECT_EQ(ENOTTY, try(self->fd, _IO(GPUWATCH_IOC_MAGIC, 0x14), arg));
	EXPECT_EQ(ENOTTY, try(self->fd, 0, arg));
	EXPECT_EQ(ENOTTY, try(self->fd, ~0UL, arg));
	/* Right number, wrong size or direction: another command. */
	EXPECT_EQ(ENOTTY, try(self->fd, _IOC(_IOC_WRITE, GPUWATCH_IOC_MAGIC, 1, sizeof(self->setup) + 8), arg));
	EXPECT_EQ(ENOTTY, try(self->fd, _IOC(_IOC_READ, GPUWATCH_IOC_MAGIC, 1, sizeof(self->setup)), arg));
}

TEST_F(ioctl_neg, detach)
{
	struct gpuwatch_detach d = { .timeout_ms = 60001 };

	EXPECT_EQ(EINVAL, try(self->fd, GPUWATCH_IOC_DETACH, &d));
	d = (struct gpuwatch_detach) { .in_flight = 1 };
	EXPECT_EQ(EINVAL, try(self->fd, GPUWATCH_IOC_DETACH, &d));
	EXPECT_EQ(EFAULT, try(self->fd, GPUWATCH_IOC_DETACH, NULL));
	d = (struct gpuwatch_detach) { .timeout_ms = 60000 };
	EXPECT_EQ(0, try(self->fd, GPUWATCH_IOC_DETACH, &d));	/* nothing attached: done */
}

TEST_F(ioctl_neg, targets)
{
	struct gpuwatch_target t = { .index = ~0U };

	EXPECT_EQ(ENOENT, try(self->fd, GPUWATCH_IOC_GET_TARGET, &t));
	t.index = 0;
	EXPECT_EQ(ENOENT, try(self->fd, GPUWATCH_IOC_GET_TARGET, &t));
	EXPECT_EQ(EFAULT, try(self->fd, GPUWATCH_IOC_GET_TARGET, NULL));
	ASSERT_EQ(0, try(self->fd, GPUWATCH_IOC_ATTACH, NULL));
	EXPECT_EQ(0, try(self->fd, GPUWATCH_IOC_GET_TARGET, &t));
	t.index = gw_info(self->fd).nr_targets;
	EXPECT_EQ(ENOENT, try(self->fd, GPUWATCH_IOC_GET_TARGET, &t));
	lab_wait_detached();
}

TEST_F(ioctl_neg, info)
{
	struct gpuwatch_info info = gw_info(self->fd);

	EXPECT_EQ(GPUWATCH_ABI_MAJOR, info.abi_major);
	EXPECT_EQ(GPUWATCH_ABI_MINOR, info.abi_minor);
	EXPECT_EQ(GPUWATCH_SCHEMA, info.schema);
	EXPECT_EQ(0, info.attached);
	EXPECT_EQ(0, info.pinned);
	EXPECT_EQ(0, info.nr_consumers);
	EXPECT_EQ(0, info.in_flight);
	EXPECT_EQ(0, info.pad);
	EXPECT_LT(0, strnlen(info.release, sizeof(info.release)));
	EXPECT_GT(sizeof(info.release), strnlen(info.release, sizeof(info.release)));
	EXPECT_NE(0, info.features & GPUWATCH_FEAT_REDIRECT);
	EXPECT_EQ(EFAULT, try(self->fd, GPUWATCH_IOC_GET_INFO, NULL));
	ASSERT_EQ(0, try(self->fd, GPUWATCH_IOC_ATTACH, NULL));
	info = gw_info(self->fd);
	EXPECT_EQ(1, info.attached);
	EXPECT_EQ(1, info.pinned);
	lab_wait_detached();
}

/* --- capture plans -------------------------------------------------------- */

FIXTURE(plan) {
	int fd;
	struct gpuwatch_plan plan;
	struct gpuwatch_plan_entry entry;
	struct gpuwatch_plan_size sizes[3];
};

FIXTURE_SETUP(plan)
{
	lab_fresh(false, "");
	self->fd = gw_open();
	ASSERT_LE(0, self->fd);
	self->entry = (struct gpuwatch_plan_entry) {
		.cmd = _IOWR('F', 0x2a, uint8_t[32]), .cmd_mask = ~0U,
		.node_mask = 1 << GPUWATCH_NODE_CTL, .in_bytes = 32, .out_bytes = 32,
		.nested[0] = { .ptr_offset = 16, .len_value = 24, .cap = 128,
			       .len_kind = GPUWATCH_LEN_AT, .directions = 3 },
	};
	self->sizes[0] = (struct gpuwatch_plan_size) { 1, 8 };
	self->sizes[1] = (struct gpuwatch_plan_size) { 2, 16 };
	self->sizes[2] = (struct gpuwatch_plan_size) { 9, 24 };
	self->plan = (struct gpuwatch_plan) {
		.entries = (uintptr_t)&self->entry, .nr_entries = 1,
		.sizes = (uintptr_t)self->sizes, .nr_sizes = 3, .default_bytes = 64,
	};
}

FIXTURE_TEARDOWN(plan)
{
	bool changed = gw_info(self->fd).plan_generation > 0;

	close(self->fd);
	if (changed)
		lab_gpuwatch_unload();	/* a new module has the built-in plan again */
}

#define PLAN() try(self->fd, GPUWATCH_IOC_SET_PLAN, &self->plan)
#define REFUSED(change) do { change; EXPECT_EQ(EINVAL, PLAN()); \
	EXPECT_EQ(0, gw_info(self->fd).plan_generation); } while (0)

TEST_F(plan, good)
{
	EXPECT_EQ(0, PLAN());
	EXPECT_EQ(1, self->plan.generation);
	EXPECT_EQ(0, PLAN());
	EXPECT_EQ(2, self->plan.generation);
	EXPECT_EQ(2, gw_info(self->fd).plan_generation);
	self->plan.nr_entries = self->plan.nr_sizes = 0;
	EXPECT_EQ(0, PLAN());
}

TEST_F(plan, flags) { REFUSED(self->plan.flags = 1); }
TEST_F(plan, pad) { REFUSED(self->plan.pad = 1); }
TEST_F(plan, too_many_entries) { REFUSED(self->plan.nr_entries = GPUWATCH_PLAN_ENTRIES + 1); }
TEST_F(plan, entries_overflow) { REFUSED(self->plan.nr_entries = ~0U); }
TEST_F(plan, too_many_sizes) { REFUSED(self->plan.nr_sizes = GPUWATCH_PLAN_SIZES + 1); }
TEST_F(plan, default_too_large) { REFUSED(self->plan.default_bytes = GPUWATCH_PLAN_CAP_MAX + 1); }
TEST_F(plan, mask_without_low_byte) { REFUSED(self->entry.cmd_mask = ~1U); }
TEST_F(plan, out_offset_too_large) { REFUSED(self->entry.out_offset = GPUWATCH_PLAN_CAP_MAX + 1); }
TEST_F(plan, out_offset_huge) { REFUSED(self->entry.out_offset = 65536); }
TEST_F(plan, entry_flags) { REFUSED(self->entry.flags = 2); }
TEST_F(plan, no_node) { REFUSED(self->entry.node_mask = 0); }
TEST_F(plan, unknown_node) { REFUSED(self->entry.node_mask = 1 << GPUWATCH_NODE_MAX); }
TEST_F(plan, in_too_large) { REFUSED(self->entry.in_bytes = GPUWATCH_PLAN_CAP_MAX + 1); }
TEST_F(plan, out_too_large) { REFUSED(self->entry.out_bytes = GPUWATCH_PLAN_CAP_MAX + 1); }
TEST_F(plan, xfer_of_other_size) { REFUSED(self->entry.flags = GPUWATCH_PLAN_XFER); }
TEST_F(plan, len_kind) { REFUSED(self->entry.nested[0].len_kind = 4); }
TEST_F(plan, cap_too_large) { REFUSED(self->entry.nested[0].cap = GPUWATCH_PLAN_CAP_MAX + 1); }
TEST_F(plan, no_direction) { REFUSED(self->entry.nested[0].directions = 0); }
TEST_F(plan, unknown_direction) { REFUSED(self->entry.nested[0].directions = 4); }
TEST_F(plan, pointer_beyond) { REFUSED(self->entry.nested[0].ptr_offset = 25); }
TEST_F(plan, pointer_far_beyond) { REFUSED(self->entry.nested[0].ptr_offset = 65535); }
TEST_F(plan, length_beyond) { REFUSED(self->entry.nested[0].len_value = 29); }
TEST_F(plan, second_nested) { REFUSED(self->entry.nested[1] = self->entry.nested[0]; self->entry.nested[1].cap = 20000); }
TEST_F(plan, key_beyond) { REFUSED(self->entry.nested[0].len_kind = GPUWATCH_LEN_BY_KEY; self->entry.nested[0].key_offset = 30); }
TEST_F(plan, sizes_not_sorted) { REFUSED(self->sizes[1].key = 10); }
TEST_F(plan, sizes_twice) { REFUSED(self->sizes[1].key = 1); }

TEST_F(plan, faults)
{
	self->plan.entries = 16;
	EXPECT_EQ(EFAULT, PLAN());
	self->plan.entries = (uintptr_t)&self->entry;
	self->plan.sizes = 0xffff888000000000ULL;
	EXPECT_EQ(EFAULT, PLAN());
	EXPECT_EQ(EFAULT, try(self->fd, GPUWATCH_IOC_SET_PLAN, NULL));
	EXPECT_EQ(0, gw_info(self->fd).plan_generation);
}

/* The largest plan that the header allows is one. */
TEST_F(plan, largest)
{
	struct gpuwatch_plan_entry *entries = calloc(GPUWATCH_PLAN_ENTRIES, sizeof(*entries));
	struct gpuwatch_plan_size *sizes = calloc(GPUWATCH_PLAN_SIZES, sizeof(*sizes));
	unsigned int i;

	for (i = 0; i < GPUWATCH_PLAN_ENTRIES; i++) {
		entries[i] = self->entry;
		entries[i].cmd = _IOC(3, 'F', i & 0xff, 32 + i / 256);
		entries[i].node_mask = (1 << GPUWATCH_NODE_MAX) - 1;
	}
	for (i = 0; i < GPUWATCH_PLAN_SIZES; i++)
		sizes[i] = (struct gpuwatch_plan_size) { i * 3, i };
	self->plan.entries = (uintptr_t)entries;
	self->plan.nr_entries = GPUWATCH_PLAN_ENTRIES;
	self->plan.sizes = (uintptr_t)sizes;
	self->plan.nr_sizes = GPUWATCH_PLAN_SIZES;
	EXPECT_EQ(0, PLAN());
	free(entries);
	free(sizes);
}

TEST_HARNESS_MAIN
