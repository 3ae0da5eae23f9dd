// SPDX-License-Identifier: Apache-2.0
/*
 * blocked - a call that stays in the driver: detaching is bounded and says so,
 * unloading says so at once, and both work when the call is over.
 */
#include <kselftest_harness.h>
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "lib/verify.h"

FIXTURE(blocked) {
	struct gw_reader r;
	struct gw_stream s;
	int fd;		/* of /dev/gpuwatch, for the module's ioctls */
};

FIXTURE_SETUP(blocked)
{
	struct gw_options o = {};

	lab_fresh(false, "");
	self->fd = gw_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
}

FIXTURE_TEARDOWN(blocked)
{
	gw_reader_stop(&self->r);
	gw_stream_free(&self->s);
	close(self->fd);
}

/* A process inside the driver for so long; it ends with 0 when all was well. */
static pid_t block(unsigned int ms)
{
	struct gwsim_totals t = lab_witness();
	unsigned long long before = lab_witness_op(&t, GWSIM_OP_IOCTL);
	pid_t pid = fork();

	if (pid == 0) {
		struct gwsim_block b = { .ms = ms };
		uint64_t begin = gw_now_ns();
		long ret = ioctl(lab_node("/dev/nvidiactl"), GWSIM_BLOCK, &b);

		_exit(ret ? 1 : gw_now_ns() - begin < ms * 1000000ULL ? 2 : 0);
	}
	do {
		usleep(1000);
		t = lab_witness();
	} while (lab_witness_op(&t, GWSIM_OP_IOCTL) == before);
	return pid;
}

static int detach(int fd, unsigned int timeout_ms, unsigned int *in_flight, double *seconds)
{
	struct gpuwatch_detach d = { .timeout_ms = timeout_ms };
	uint64_t begin = gw_now_ns();
	int err = ioctl(fd, GPUWATCH_IOC_DETACH, &d) ? -errno : 0;

	*seconds = (gw_now_ns() - begin) / 1e9;
	*in_flight = d.in_flight;
	return err;
}

TEST_F_TIMEOUT(blocked, ten_seconds, 60)
{
	unsigned int in_flight, n_before, status;
	uint8_t arg[64] = { 0 };
	struct gw_verdict v;
	double seconds;
	uint64_t begin;
	pid_t pid;
	int fd;

	pid = block(10000);
	EXPECT_EQ(-EBUSY, detach(self->fd, 5000, &in_flight, &seconds));
	EXPECT_EQ(1, in_flight);
	EXPECT_LT(4.9, seconds);
	EXPECT_GT(5.6, seconds);
	EXPECT_EQ(1, gw_info(self->fd).in_flight);
	EXPECT_EQ(0, gw_info(self->fd).attached);

	/* No new call is recorded, though the consumer is still there. */
	gw_reader_finish(&self->r, &self->s);
	n_before = self->s.nr;
	fd = lab_node("/dev/nvidiactl");
	EXPECT_EQ(0, lab_transform(fd, arg, sizeof(arg)));
	close(fd);
	gw_reader_finish(&self->r, &self->s);
	EXPECT_EQ(n_before, self->s.nr);

	/* Not held by any file, only by the call in flight. */
	gw_reader_stop(&self->r);
	close(self->fd);
	self->fd = -1;
	begin = gw_now_ns();
	EXPECT_EQ(-EAGAIN, lab_unload("gpuwatch"));
	EXPECT_GT(0.5, (gw_now_ns() - begin) / 1e9);
	EXPECT_TRUE(lab_loaded("gpuwatch"));

	ASSERT_EQ(pid, waitpid(pid, (int *)&status, 0));
	EXPECT_EQ(0, status);
	self->fd = gw_open();
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(0, detach(self->fd, 5000, &in_flight, &seconds));
	EXPECT_EQ(0, in_flight);
	EXPECT_EQ(0, gw_info(self->fd).in_flight);
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(0, lab_unload("gpuwatch"));
	(void)v;
}

/* Attached anew while a call of before is still inside: it is counted once. */
TEST_F_TIMEOUT(blocked, attached_again, 60)
{
	unsigned int in_flight;
	unsigned long long ioctls = 0;
	struct gpuwatch_target target;
	uint8_t arg[64] = { 0 };
	double seconds;
	int status, fd;
	size_t i;
	pid_t pid;

	pid = block(4000);
	EXPECT_EQ(-EBUSY, detach(self->fd, 100, &in_flight, &seconds));
	EXPECT_EQ(1, in_flight);
	EXPECT_GT(2.0, seconds);
	ASSERT_EQ(0, ioctl(self->r.fd, GPUWATCH_IOC_ENABLE));
	EXPECT_EQ(1, gw_info(self->fd).attached);
	fd = lab_node("/dev/nvidiactl");
	for (i = 0; i < 10; i++)
		EXPECT_EQ(0, lab_transform(fd, arg, sizeof(arg)));
	close(fd);
	EXPECT_EQ(1, gw_info(self->fd).in_flight);
	for (target.index = 0; !ioctl(self->fd, GPUWATCH_IOC_GET_TARGET, &target); target.index++) {
		EXPECT_EQ(target.op == GPUWATCH_OP_IOCTL && !strcmp(target.module, "nvidia"),
			  target.in_flight);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	gw_reader_finish(&self->r, &self->s);
	for (i = 0; i < self->s.nr; i++)
		ioctls += gw_rec(&self->s, i)->type == GPUWATCH_REC_IOCTL;
	EXPECT_EQ(11, ioctls);	/* the blocked one too: its record comes at its end */
	EXPECT_EQ(0, detach(self->fd, 5000, &in_flight, &seconds));
}

/* A caller killed while it is in the driver is gone, and so are its hooks. */
TEST_F_TIMEOUT(blocked, killed, 60)
{
	struct gwsim_block b = { .ms = 60000, .killable = 1 };
	struct gwsim_totals t;
	unsigned int in_flight;
	double seconds;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(ioctl(lab_node("/dev/nvidiactl"), GWSIM_BLOCK, &b) ? 1 : 0);
	do {
		usleep(1000);
		t = lab_witness();
	} while (!lab_witness_op(&t, GWSIM_OP_IOCTL));
	EXPECT_EQ(-EBUSY, detach(self->fd, 200, &in_flight, &seconds));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, detach(self->fd, 5000, &in_flight, &seconds));
	EXPECT_GT(5.0, seconds);
}

TEST_HARNESS_MAIN
