// SPDX-License-Identifier: Apache-2.0
/*
 * access - who may open /dev/gpuwatch: privilege in the first user namespace,
 * whatever the mode of the node says.
 */
#define _GNU_SOURCE
#include <kselftest_harness.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/lab.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

#define OPEN_NODE "/tmp/gpuwatch-open"	/* the same device, mode 0666 */

FIXTURE(access) {
};

FIXTURE_SETUP(access)
{
	struct stat st;

	lab_fresh(false, "");
	ASSERT_EQ(0, stat("/dev/gpuwatch", &st));
	unlink(OPEN_NODE);
	ASSERT_EQ(0, mknod(OPEN_NODE, S_IFCHR | 0666, st.st_rdev));
	ASSERT_EQ(0, chmod(OPEN_NODE, 0666));
}

FIXTURE_TEARDOWN(access)
{
	unlink(OPEN_NODE);
}

/* Runs @how in a child; its exit status. */
static int in_child(int (*how)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(how());
	if (waitpid(pid, &status, 0) != pid)
		abort();
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int try_open(void)
{
	int fd = open(OPEN_NODE, O_RDWR);

	return fd < 0 ? errno : 0;
}

/* Keeps only the capabilities in @mask. */
static int keep_caps(uint64_t mask)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = {
		{ (uint32_t)mask, (uint32_t)mask, 0 },
		{ (uint32_t)(mask >> 32), (uint32_t)(mask >> 32), 0 },
	};

	return syscall(SYS_capset, &head, data) ? errno : 0;
}

static int map_root(void)
{
	return lab_write("/proc/self/setgroups", "deny") || lab_write("/proc/self/uid_map", "0 0 1") ||
	       lab_write("/proc/self/gid_map", "0 0 1");
}

static int as_root(void)
{
	return try_open();
}

static int as_namespace_root(void)
{
	if (unshare(CLONE_NEWUSER) || map_root() || getuid() != 0)
		return 250;
	return try_open();
}

/* As a container sees it: all namespaces its own, the node bound into place. */
static int as_container(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS) ||
	    map_root())
		return 250;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/root", "tmpfs", 0, NULL))
		return 251;
	close(open("/root/gpuwatch", O_CREAT | O_WRONLY, 0666));
	if (mount(OPEN_NODE, "/root/gpuwatch", NULL, MS_BIND, NULL))
		return 252;
	/* /root is of this user namespace, and its mounts have no devices. */
	return try_open();
}

static int without_caps(void)
{
	if (keep_caps(~0ULL & ~(1ULL << CAP_PERFMON | 1ULL << CAP_SYS_ADMIN) & ((1ULL << 40) - 1)))
		return 250;
	return try_open();
}

static int with_perfmon_only(void)
{
	if (keep_caps(1ULL << CAP_PERFMON))
		return 250;
	return try_open();
}

static int with_sys_admin_only(void)
{
	if (keep_caps(1ULL << CAP_SYS_ADMIN))
		return 250;
	return try_open();
}

static int as_nobody(void)
{
	if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return 250;
	return try_open();
}

static int nobody_on_the_real_node(void)
{
	if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return 250;
	return open("/dev/gpuwatch", O_RDONLY) < 0 ? errno : 0;
}

TEST_F(access, root) { EXPECT_EQ(0, in_child(as_root)); }
TEST_F(access, namespace_root) { EXPECT_EQ(EPERM, in_child(as_namespace_root)); }
TEST_F(access, container) { EXPECT_EQ(EPERM, in_child(as_container)); }
TEST_F(access, root_without_capabilities) { EXPECT_EQ(EPERM, in_child(without_caps)); }
TEST_F(access, perfmon_is_enough) { EXPECT_EQ(0, in_child(with_perfmon_only)); }
TEST_F(access, sys_admin_is_enough) { EXPECT_EQ(0, in_child(with_sys_admin_only)); }
TEST_F(access, nobody) { EXPECT_EQ(EPERM, in_child(as_nobody)); }
TEST_F(access, nobody_by_mode) { EXPECT_EQ(EACCES, in_child(nobody_on_the_real_node)); }

TEST_F(access, node)
{
	struct stat st;

	ASSERT_EQ(0, stat("/dev/gpuwatch", &st));
	EXPECT_TRUE(S_ISCHR(st.st_mode));
	EXPECT_EQ(0, st.st_mode & 0007);	/* nothing for others */
	EXPECT_EQ(0, st.st_uid);
}

/* What concerns the whole module needs more than reading does. */
static int module_ioctls_with_perfmon(void)
{
	struct gpuwatch_detach d = { 0 };
	struct gpuwatch_target t = { 0 };
	struct gpuwatch_plan p = { 0 };
	struct gpuwatch_info info;
	int fd;

	if (keep_caps(1ULL << CAP_PERFMON))
		return 250;
	fd = open(OPEN_NODE, O_RDWR);
	if (fd < 0)
		return 251;
	if (!ioctl(fd, GPUWATCH_IOC_ATTACH) || errno != EPERM)
		return 1;
	if (!ioctl(fd, GPUWATCH_IOC_DETACH, &d) || errno != EPERM)
		return 2;
	if (!ioctl(fd, GPUWATCH_IOC_GET_TARGET, &t) || errno != EPERM)
		return 3;
	if (!ioctl(fd, GPUWATCH_IOC_SET_PLAN, &p) || errno != EPERM)
		return 4;
	return ioctl(fd, GPUWATCH_IOC_GET_INFO, &info) ? 5 : 0;
}

TEST_F(access, module_ioctls) { EXPECT_EQ(0, in_child(module_ioctls_with_perfmon)); }

TEST_HARNESS_MAIN
