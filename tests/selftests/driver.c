// SPDX-License-Identifier: Apache-2.0
/*
 * driver - the driver comes, goes and comes back while hooks are wanted; files
 * come to their users by every way there is; every node family is known.
 */
#define _GNU_SOURCE
#include <kselftest_harness.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "lib/verify.h"

FIXTURE(driver) {
	struct gw_reader r;
	struct gw_stream s;
};

FIXTURE_SETUP(driver)
{
	lab_fresh(false, "");
	self->r.fd = -1;
}

FIXTURE_TEARDOWN(driver)
{
	gw_reader_stop(&self->r);
	gw_stream_free(&self->s);
}

/* All that the witness counted, by node and operation; nothing wrong in the stream. */
static unsigned int differences(const struct gw_verdict *v)
{
	struct gwsim_totals t = lab_witness();
	unsigned int bad = 0;
	int kind, op;

	for (kind = 0; kind < GWSIM_NODE_MAX; kind++) {
		for (op = 0; op < GWSIM_OP_MAX; op++) {
			if (t.counts.n[kind][op] == v->op[kind][op])
				continue;
			printf("# node kind %d, operation %d: %llu counted, %llu seen\n", kind, op,
			       (unsigned long long)t.counts.n[kind][op], v->op[kind][op]);
			bad++;
		}
	}
	if (v->gaps + v->malformed + v->time_back + v->thread_back + v->bad_bytes + v->undefined) {
		printf("# %s\n", v->first);
		bad++;
	}
	return bad;
}

static void one_round(const char *node)
{
	uint8_t arg[64] = { 0 };
	int fd = lab_node(node);
	void *map;

	lab_transform(fd, arg, sizeof(arg));
	map = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED)
		munmap(map, 8192);
	close(fd);
}

static unsigned int states(const struct gw_stream *s, unsigned int event, const char *name)
{
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < s->nr; i++) {
		const struct gpuwatch_rec_state *st = gw_payload(gw_rec(s, i));

		n += gw_rec(s, i)->type == GPUWATCH_REC_STATE && st->event == event &&
		     (!name || !strcmp(st->name, name));
	}
	return n;
}

TEST_F_TIMEOUT(driver, reloaded_while_attached, 240)
{
	unsigned int n = lab_scaled(20), i;
	struct gw_options o = {};
	struct gw_verdict v;

	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	for (i = 0; i < n; i++) {
		lab_driver_unload();
		lab_driver_load(i % 2 ? "shape=frontend" : "");
		/* The very first calls of the new driver count. */
		one_round("/dev/nvidiactl");
		one_round("/dev/nvidia0");
		one_round("/dev/nvidia-uvm");
		gw_reader_drain(&self->r, &self->s);
	}
	gw_reader_finish(&self->r, &self->s);
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	gw_verdict_print(&v);
	EXPECT_EQ(0, differences(&v));
	EXPECT_EQ(3 * n, v.n[GPUWATCH_REC_OPEN]);
	EXPECT_EQ(3 * n, v.n[GPUWATCH_REC_IOCTL]);
	EXPECT_EQ(3 * n, v.n[GPUWATCH_REC_RELEASE]);
	EXPECT_EQ(n, states(&self->s, GPUWATCH_STATE_DRIVER_LIVE, "nvidia"));
	EXPECT_EQ(n, states(&self->s, GPUWATCH_STATE_DRIVER_GOING, "nvidia"));
	EXPECT_EQ(n, states(&self->s, GPUWATCH_STATE_DRIVER_LIVE, "nvidia_uvm"));
	EXPECT_EQ(0, states(&self->s, GPUWATCH_STATE_HOOK_FAILED, NULL));
	EXPECT_EQ(0, gw_info(self->r.fd).in_flight);
}

TEST_F_TIMEOUT(driver, loaded_after_attach, 60)
{
	struct gw_options o = {};
	struct gw_verdict v;

	lab_driver_unload();
	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	EXPECT_EQ(1, gw_info(self->r.fd).attached);
	lab_driver_load("");
	one_round("/dev/nvidiactl");
	gw_reader_finish(&self->r, &self->s);
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	EXPECT_EQ(0, differences(&v));
	EXPECT_EQ(1, v.n[GPUWATCH_REC_OPEN]);
	EXPECT_EQ(1, v.n[GPUWATCH_REC_IOCTL]);
	EXPECT_EQ(1, v.n[GPUWATCH_REC_MMAP]);
	EXPECT_EQ(1, v.n[GPUWATCH_REC_RELEASE]);
}

/* No driver anywhere is a state, not an error; unloading while hooked works. */
TEST_F_TIMEOUT(driver, absent, 60)
{
	struct gw_options o = {};
	struct gpuwatch_target t = { 0 };
	struct gw_verdict v;

	lab_driver_unload();
	lab_gpuwatch_unload();
	lab_gpuwatch(false);
	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	EXPECT_EQ(1, gw_info(self->r.fd).attached);
	EXPECT_EQ(1, gw_info(self->r.fd).nr_targets);
	EXPECT_EQ(0, ioctl(self->r.fd, GPUWATCH_IOC_GET_TARGET, &t));
	EXPECT_EQ(GPUWATCH_OP_OPEN, t.op);
	EXPECT_EQ(0, t.error);
	close(open("/dev/null", O_RDWR));
	gw_reader_finish(&self->r, &self->s);
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	EXPECT_EQ(0, v.n[GPUWATCH_REC_OPEN]);
	lab_driver_load("");
}

TEST_F_TIMEOUT(driver, opened_before_module, 60)
{
	struct gw_options o = {};
	uint8_t arg[64] = { 0 };
	struct gw_verdict v;
	int ctl, uvm, i;

	lab_gpuwatch_unload();
	ctl = lab_node("/dev/nvidiactl");
	uvm = lab_node("/dev/nvidia-uvm");
	lab_gpuwatch(false);
	lab_witness_reset();
	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, lab_transform(ctl, arg, sizeof(arg)));
		ASSERT_EQ(0, lab_transform(uvm, arg, sizeof(arg)));
	}
	close(ctl);
	close(uvm);
	gw_reader_finish(&self->r, &self->s);
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	EXPECT_EQ(0, differences(&v));
	EXPECT_EQ(20, v.n[GPUWATCH_REC_IOCTL]);
	EXPECT_EQ(2, v.n[GPUWATCH_REC_RELEASE]);
}

static void send_fd(int to, int fd)
{
	char byte = 'f', control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec io = { &byte, 1 };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (sendmsg(to, &m, 0) != 1)
		abort();
}

static int receive_fd(int from)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec io = { &byte, 1 };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	int fd = -1;

	if (recvmsg(from, &m, 0) != 1)
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

/* One open file, used by the opener, a forked child, and one that got it by mail. */
TEST_F_TIMEOUT(driver, handed_on, 60)
{
	struct gw_options o = {};
	uint8_t arg[64] = { 0 };
	uint64_t file_id = 0;
	struct gw_set callers = {};
	int sockets[2], fd, status, i;
	struct gw_verdict v;
	pid_t pids[2];

	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	fflush(stdout);
	pids[0] = fork();
	if (pids[0] == 0) {
		fd = receive_fd(sockets[1]);
		for (i = 0; i < 5; i++)
			if (lab_transform(fd, arg, sizeof(arg)))
				_exit(1);
		_exit(0);
	}
	fd = lab_node("/dev/nvidia3");
	ASSERT_EQ(0, lab_transform(fd, arg, sizeof(arg)));
	pids[1] = fork();
	if (pids[1] == 0)
		_exit(lab_transform(fd, arg, sizeof(arg)) ? 1 : 0);
	send_fd(sockets[0], fd);
	close(fd);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(pids[i], waitpid(pids[i], &status, 0));
		EXPECT_EQ(0, status);
	}
	gw_reader_finish(&self->r, &self->s);
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	EXPECT_EQ(0, differences(&v));
	EXPECT_EQ(1, v.n[GPUWATCH_REC_OPEN]);
	EXPECT_EQ(7, v.n[GPUWATCH_REC_IOCTL]);
	EXPECT_EQ(1, v.n[GPUWATCH_REC_RELEASE]);
	for (size_t n = 0; n < self->s.nr; n++) {
		const struct gpuwatch_rec *rec = gw_rec(&self->s, n);

		if (rec->type > GPUWATCH_REC_RELEASE)
			continue;
		if (!file_id)
			file_id = rec->file_id;
		EXPECT_EQ(file_id, rec->file_id);
		EXPECT_NE(0, rec->file_id);
		EXPECT_EQ(195 << 20 | 3, rec->rdev);
		if (rec->type == GPUWATCH_REC_IOCTL)
			gw_set_add(&callers, rec->tgid);
	}
	EXPECT_EQ(3, callers.nr);
	EXPECT_TRUE(gw_set_has(&callers, pids[0]));
	EXPECT_TRUE(gw_set_has(&callers, pids[1]));
	EXPECT_TRUE(gw_set_has(&callers, getpid()));
	gw_set_free(&callers);
}

/* Every family, each through its own operations table. */
TEST_F_TIMEOUT(driver, node_families, 60)
{
	static const struct {
		const char *path;
		unsigned int kind;
		bool ioctl;
	} all[] = {
		{ "/dev/nvidiactl", GPUWATCH_NODE_CTL, true },
		{ "/dev/nvidia0", GPUWATCH_NODE_GPU, true },
		{ "/dev/nvidia7", GPUWATCH_NODE_GPU, true },
		{ "/dev/nvidia-uvm", GPUWATCH_NODE_UVM, true },
		{ "/dev/nvidia-uvm-tools", GPUWATCH_NODE_UVM_TOOLS, true },
		{ "/dev/nvidia-modeset", GPUWATCH_NODE_MODESET, true },
		{ "/dev/nvidia-caps/nvidia-cap1", GPUWATCH_NODE_CAPS, false },
		{ "/dev/nvidia-caps-imex-channels/channel0", GPUWATCH_NODE_IMEX, false },
		{ "/dev/nvidia-nvswitch0", GPUWATCH_NODE_NVSWITCH, true },
		{ "/dev/nvidia-nvswitchctl", GPUWATCH_NODE_NVSWITCH, true },
		{ "/dev/nvidia-nvlink", GPUWATCH_NODE_NVLINK, true },
	};
	struct gw_options o = {};
	uint8_t arg[64] = { 0 };
	struct gw_verdict v;
	struct stat st;
	size_t i, n, at;
	int fd;

	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		gw_stream_clear(&self->s);
		fd = lab_node(all[i].path);
		ASSERT_EQ(0, fstat(fd, &st));
		EXPECT_EQ(all[i].ioctl ? 0 : -ENOTTY, lab_transform(fd, arg, sizeof(arg)));
		close(fd);
		gw_reader_finish(&self->r, &self->s);
		for (n = 0, at = 0; at < self->s.nr; at++) {
			const struct gpuwatch_rec *rec = gw_rec(&self->s, at);

			if (rec->type > GPUWATCH_REC_RELEASE)
				continue;
			n++;
			EXPECT_EQ(all[i].kind, rec->node_kind)
				TH_LOG("%s", all[i].path);
			EXPECT_EQ(major(st.st_rdev) << 20 | minor(st.st_rdev), rec->rdev);
		}
		EXPECT_EQ(all[i].ioctl ? 3 : 2, n)
			TH_LOG("%s: records of open, ioctl and release", all[i].path);
	}
	(void)v;
}

/* Both tables a driver may have, both handlers of 32-bit calls. */
FIXTURE(shape) {
	struct gw_reader r;
	struct gw_stream s;
};

FIXTURE_VARIANT(shape) {
	const char *driver;
	bool separate;
	bool kretprobe;
};

FIXTURE_VARIANT_ADD(shape, split_same) { "shape=split compat=same", false, false };
FIXTURE_VARIANT_ADD(shape, split_separate) { "shape=split compat=separate", true, false };
FIXTURE_VARIANT_ADD(shape, frontend_same) { "shape=frontend compat=same", false, false };
FIXTURE_VARIANT_ADD(shape, frontend_separate) { "shape=frontend compat=separate", true, false };
FIXTURE_VARIANT_ADD(shape, frontend_separate_kretprobe) { "shape=frontend compat=separate", true, true };

FIXTURE_SETUP(shape)
{
	struct gw_options o = {};

	lab_fresh(variant->kretprobe, variant->driver);
	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
}

FIXTURE_TEARDOWN(shape)
{
	gw_reader_stop(&self->r);
	gw_stream_free(&self->s);
	lab_driver_unload();
}

TEST_F_TIMEOUT(shape, storm, 60)
{
	const char *const storm[] = {
		"gw-storm", "--procs", "2", "--threads", "2", "--calls", "300", "--nested-every", "5",
		"--open-every", "40", "--mmap-every", "50", "--node", "/dev/nvidiactl",
		"--node", "/dev/nvidia0", NULL,
	};
	const char *const uvm[] = { "gw-storm", "--calls", "100", "--node", "/dev/nvidia-uvm", NULL };
	const char *const modeset[] = { "gw-storm", "--calls", "50", "--node", "/dev/nvidia-modeset", NULL };
	const char *const storm32[] = {
		"gw-storm32", "--procs", "2", "--threads", "1", "--calls", "200", "--nested-every", "5",
		"--node", "/dev/nvidiactl", "--node", "/dev/nvidia1", NULL,
	};
	struct gpuwatch_target t = { 0 };
	struct gwsim_log_entry *log;
	unsigned long long unchecked;
	bool compat = false;
	struct lab_run run;
	struct gw_verdict v;
	size_t nr;

	ASSERT_EQ(0, lab_run_drained(&run, storm, &self->r, &self->s));
	ASSERT_EQ(0, lab_run_drained(&run, uvm, &self->r, &self->s));
	ASSERT_EQ(0, lab_run_drained(&run, modeset, &self->r, &self->s));
	ASSERT_EQ(0, lab_run_drained(&run, storm32, &self->r, &self->s));
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	gw_verdict_print(&v);
	EXPECT_EQ(0, differences(&v));
	EXPECT_EQ(0, v.thread_gaps);
	log = lab_witness_log(&nr);
	EXPECT_EQ(v.n[GPUWATCH_REC_IOCTL], nr);
	EXPECT_EQ(nr, gw_verify_log(&self->s, log, nr, &unchecked, &v))
		TH_LOG("%s", v.first);
	free(log);
	for (; !ioctl(self->r.fd, GPUWATCH_IOC_GET_TARGET, &t); t.index++) {
		compat |= t.op == GPUWATCH_OP_COMPAT_IOCTL && !strcmp(t.module, "nvidia");
		EXPECT_EQ(0, t.error);
		EXPECT_EQ(variant->kretprobe && t.op != GPUWATCH_OP_OPEN ? GPUWATCH_METHOD_KRETPROBE
									   : GPUWATCH_METHOD_REDIRECT,
			  t.method);
	}
	EXPECT_EQ(variant->separate, compat);
}

TEST_HARNESS_MAIN
