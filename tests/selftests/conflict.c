// SPDX-License-Identifier: Apache-2.0
/*
 * conflict - another owner of a driver function's entry, as a live patch is, and
 * ftrace switched off: the module hooks by kretprobe of its own accord, or says
 * that it can't; it never claims to see what it doesn't.
 */
#include <kselftest_harness.h>
#include <errno.h>
#include <sys/ioctl.h>

#include "lib/verify.h"

#define FTRACE_ENABLED "/proc/sys/kernel/ftrace_enabled"

FIXTURE(conflict) {
	struct gw_reader r;
	struct gw_stream s;
};

FIXTURE_SETUP(conflict)
{
	lab_fresh(false, "");
	self->r.fd = -1;
}

FIXTURE_TEARDOWN(conflict)
{
	gw_reader_stop(&self->r);
	gw_stream_free(&self->s);
	lab_wait_detached();
	if (lab_loaded("gwmodify"))
		lab_unload("gwmodify");
	lab_write(FTRACE_ENABLED, "1");
}

static unsigned int method_of(int fd, unsigned int op, const char *module, int *error)
{
	struct gpuwatch_target t = { 0 };

	for (; !ioctl(fd, GPUWATCH_IOC_GET_TARGET, &t); t.index++) {
		if (t.op == op && !strcmp(t.module, module)) {
			*error = t.error;
			return t.method;
		}
	}
	*error = -ENOENT;
	return ~0U;
}

static const char *const storm[] = {
	"gw-storm", "--procs", "2", "--threads", "2", "--calls", "300", "--open-every", "50",
	"--nested-every", "10", NULL,
};

TEST_F_TIMEOUT(conflict, function_is_owned, 60)
{
	struct gw_options o = {};
	struct lab_run run;
	struct gw_verdict v;
	int error;
	size_t i;

	ASSERT_EQ(0, lab_load("gwmodify.ko", ""));
	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	ASSERT_EQ(0, lab_run_drained(&run, storm, &self->r, &self->s));
	EXPECT_EQ(GPUWATCH_METHOD_KRETPROBE,
		  method_of(self->r.fd, GPUWATCH_OP_IOCTL, "nvidia", &error));
	EXPECT_EQ(0, error);
	EXPECT_EQ(GPUWATCH_METHOD_REDIRECT,
		  method_of(self->r.fd, GPUWATCH_OP_RELEASE, "nvidia", &error));
	EXPECT_EQ(GPUWATCH_METHOD_REDIRECT, method_of(self->r.fd, GPUWATCH_OP_OPEN, "kernel", &error));
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	gw_verdict_print(&v);
	EXPECT_EQ(1200, v.storm);
	EXPECT_EQ(lab_number(&run, "ioctls"), v.n[GPUWATCH_REC_IOCTL]);
	EXPECT_EQ(lab_number(&run, "opens"), v.n[GPUWATCH_REC_OPEN]);
	EXPECT_EQ(lab_number(&run, "releases"), v.n[GPUWATCH_REC_RELEASE]);
	EXPECT_EQ(0, v.gaps + v.malformed + v.thread_gaps + v.thread_back + v.bad_bytes + v.undefined);
	for (i = 0; i < self->s.nr; i++) {
		const struct gpuwatch_rec *rec = gw_rec(&self->s, i);

		if (rec->type == GPUWATCH_REC_IOCTL)
			ASSERT_NE(0, rec->flags & GPUWATCH_F_PROBE);
		if (rec->type == GPUWATCH_REC_OPEN)
			ASSERT_EQ(0, rec->flags & GPUWATCH_F_PROBE);
	}
	/* The owner can leave, and we can leave, in this order too. */
	EXPECT_EQ(0, lab_unload("gwmodify"));
	lab_wait_detached();
	ASSERT_EQ(0, ioctl(self->r.fd, GPUWATCH_IOC_ENABLE));
	EXPECT_EQ(GPUWATCH_METHOD_REDIRECT,
		  method_of(self->r.fd, GPUWATCH_OP_OPEN, "kernel", &error));
	gw_stream_clear(&self->s);
	ASSERT_EQ(0, lab_run_drained(&run, storm, &self->r, &self->s));
	EXPECT_EQ(GPUWATCH_METHOD_REDIRECT,
		  method_of(self->r.fd, GPUWATCH_OP_IOCTL, "nvidia", &error));
}

/* We were first: the live patch is refused, and nothing of ours changes. */
TEST_F_TIMEOUT(conflict, we_own_it, 60)
{
	struct gw_options o = {};
	struct lab_run run;
	struct gw_verdict v;

	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	ASSERT_EQ(0, lab_run_drained(&run, storm, &self->r, &self->s));
	EXPECT_EQ(-EBUSY, lab_load("gwmodify.ko", ""));
	ASSERT_EQ(0, lab_run_drained(&run, storm, &self->r, &self->s));
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	EXPECT_EQ(2400, v.storm);
	EXPECT_EQ(0, v.gaps + v.malformed + v.thread_gaps + v.thread_back + v.bad_bytes + v.undefined);
}

/* With ftrace off no redirect can work, and no probe that sits on its site. */
TEST_F_TIMEOUT(conflict, ftrace_is_off, 60)
{
	struct gw_options o = {};
	struct lab_run run;
	struct gw_verdict v;
	int err, error = 0;
	unsigned int method;

	close(lab_node("/dev/nvidiactl"));
	err = lab_write(FTRACE_ENABLED, "0");
	if (err == -EOPNOTSUPP)
		SKIP(return, "this kernel's ftrace can't be switched off");
	ASSERT_EQ(0, err);
	err = gw_reader_start(&self->r, &o);
	if (err) {
		/* Refused in so many words: that is honest. */
		printf("# ENABLE says %d while ftrace is off\n", err);
		self->r.fd = -1;
		return;
	}
	ASSERT_EQ(0, lab_run_drained(&run, storm, &self->r, &self->s));
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	gw_verdict_print(&v);
	method = method_of(self->r.fd, GPUWATCH_OP_IOCTL, "nvidia", &error);
	printf("# ioctl: method %u, error %d\n", method, error);
	EXPECT_NE(GPUWATCH_METHOD_REDIRECT, method);
	EXPECT_EQ(lab_number(&run, "ioctls"), v.n[GPUWATCH_REC_IOCTL]);
	EXPECT_EQ(lab_number(&run, "opens"), v.n[GPUWATCH_REC_OPEN]);
}

/* While our redirect is in, nobody can make it silently dead. */
TEST_F_TIMEOUT(conflict, ftrace_stays_on, 60)
{
	struct gw_options o = {};
	struct lab_run run;
	struct gw_verdict v;

	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	ASSERT_EQ(0, lab_run_drained(&run, storm, &self->r, &self->s));
	EXPECT_GT(0, lab_write(FTRACE_ENABLED, "0"));
	EXPECT_EQ(1, lab_read_number(FTRACE_ENABLED));
	ASSERT_EQ(0, lab_run_drained(&run, storm, &self->r, &self->s));
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	EXPECT_EQ(2400, v.storm);
}

TEST_HARNESS_MAIN
