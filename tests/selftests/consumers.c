// SPDX-License-Identifier: Apache-2.0
/*
 * consumers - several readers at once, each with its own filter: each gets what
 * it asked for and nothing else, whatever happens to the others.
 */
#include <kselftest_harness.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/verify.h"

#define CGROUP "/sys/fs/cgroup/gw-consumers"

FIXTURE(consumers) {
	struct gw_reader r[16];
	struct gw_stream s[16];
};

FIXTURE_SETUP(consumers)
{
	int i;

	for (i = 0; i < 16; i++)
		self->r[i].fd = -1;
	lab_fresh(false, "");
	mkdir(CGROUP, 0755);
	mkdir(CGROUP "/inner", 0755);
}

FIXTURE_TEARDOWN(consumers)
{
	int i;

	for (i = 0; i < 16; i++) {
		gw_reader_stop(&self->r[i]);
		gw_stream_free(&self->s[i]);
	}
	rmdir(CGROUP "/inner");
	rmdir(CGROUP);
}

typedef bool (*predicate)(const struct gpuwatch_rec *rec, const void *with);

/* Calls only, thread by thread, each in the order of time. */
static int by_thread(const void *pa, const void *pb)
{
	const struct gpuwatch_rec *a = *(const struct gpuwatch_rec **)pa;
	const struct gpuwatch_rec *b = *(const struct gpuwatch_rec **)pb;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

static const struct gpuwatch_rec **calls_of(const struct gw_stream *s, predicate wanted,
					    const void *with, size_t *nr)
{
	const struct gpuwatch_rec **list = calloc(s->nr + 1, sizeof(*list));
	size_t i;

	*nr = 0;
	for (i = 0; i < s->nr; i++) {
		const struct gpuwatch_rec *rec = gw_rec(s, i);

		if (rec->type <= GPUWATCH_REC_RELEASE && (!wanted || wanted(rec, with)))
			list[(*nr)++] = rec;
	}
	qsort(list, *nr, sizeof(*list), by_thread);
	return list;
}

/* Without what each consumer's record may have of its own: a consumer that needs
 * definitions first gets its record a moment later. */
static void make_plain(uint8_t *to, const struct gpuwatch_rec *from)
{
	struct gpuwatch_rec *rec = (void *)to;

	memcpy(to, from, from->len);
	rec->seq = rec->time_ns = rec->cpu = 0;
	if (rec->type == GPUWATCH_REC_OPEN)
		((struct gpuwatch_rec_open *)(rec + 1))->duration_ns = 0;
	if (rec->type == GPUWATCH_REC_IOCTL)
		((struct gpuwatch_rec_ioctl *)(rec + 1))->duration_ns = 0;
	if (rec->type == GPUWATCH_REC_MMAP)
		((struct gpuwatch_rec_mmap *)(rec + 1))->duration_ns = 0;
	if (rec->type == GPUWATCH_REC_RELEASE)
		((struct gpuwatch_rec_release *)(rec + 1))->duration_ns = 0;
}

static bool same_record(const struct gpuwatch_rec *a, const struct gpuwatch_rec *b)
{
	static uint8_t plain[2][GPUWATCH_REC_MAX];

	if (a->len != b->len)
		return false;
	make_plain(plain[0], a);
	make_plain(plain[1], b);
	return !memcmp(plain[0], plain[1], a->len);
}

/* @got holds exactly those records of @all that pass. Returns how many, or -1. */
static long exactly(const struct gw_stream *got, const struct gw_stream *all, predicate wanted,
		    const void *with)
{
	size_t nr_want, nr_got, i;
	const struct gpuwatch_rec **want = calls_of(all, wanted, with, &nr_want);
	const struct gpuwatch_rec **have = calls_of(got, NULL, NULL, &nr_got);
	long result = nr_want;

	if (nr_want != nr_got) {
		printf("# wanted %zu records, got %zu\n", nr_want, nr_got);
		result = -1;
	}
	for (i = 0; result >= 0 && i < nr_want; i++) {
		if (!same_record(want[i], have[i])) {
			printf("# record %zu differs: type %u/%u tid %u/%u flags %x/%x len %u/%u\n", i,
			       want[i]->type, have[i]->type, want[i]->tid, have[i]->tid, want[i]->flags,
			       have[i]->flags, want[i]->len, have[i]->len);
			result = -1;
		}
	}
	free(want);
	free(have);
	return result;
}

static bool is_ctl(const struct gpuwatch_rec *rec, const void *with)
{
	(void)with;
	return rec->node_kind == GPUWATCH_NODE_CTL;
}

static bool is_open_or_release(const struct gpuwatch_rec *rec, const void *with)
{
	(void)with;
	return rec->type == GPUWATCH_REC_OPEN || rec->type == GPUWATCH_REC_RELEASE;
}

static bool is_pid(const struct gpuwatch_rec *rec, const void *with)
{
	return rec->tgid == (uint32_t) *(const pid_t *)with;
}

static bool is_in_cgroup(const struct gpuwatch_rec *rec, const void *with)
{
	const struct gw_set *ids = with;

	return gw_set_has(ids, rec->cgroup_id);
}

static bool is_none(const struct gpuwatch_rec *rec, const void *with)
{
	(void)rec;
	(void)with;
	return false;
}

static uint64_t inode_of(const char *path)
{
	struct stat st = { 0 };

	stat(path, &st);
	return st.st_ino;
}

/* A process whose pid is known before it calls: waits for a byte on stdin. */
static pid_t known_process(int *go)
{
	int ends[2];
	pid_t pid;

	if (pipe(ends))
		return -1;
	pid = fork();
	if (pid == 0) {
		uint8_t arg[64] = { 0 };
		char byte;
		int fd, i;

		close(ends[1]);
		if (read(ends[0], &byte, 1) != 1)
			_exit(1);
		fd = lab_node("/dev/nvidia2");
		for (i = 0; i < 100; i++)
			if (lab_transform(fd, arg, sizeof(arg)))
				_exit(1);
		_exit(0);
	}
	close(ends[0]);
	*go = ends[1];
	return pid;
}

enum { ALL, CTL, OPENS, PID, SUBTREE, PARENT, NONE, NR };

TEST_F_TIMEOUT(consumers, filters, 120)
{
	struct gpuwatch_filter f[NR] = {
		[ALL] = { .cgroup_fd = -1 },
		[CTL] = { .cgroup_fd = -1, .node_mask = 1 << GPUWATCH_NODE_CTL },
		[OPENS] = { .cgroup_fd = -1, .class_mask = GPUWATCH_CLASS(GPUWATCH_REC_OPEN) |
			    GPUWATCH_CLASS(GPUWATCH_REC_RELEASE) },
		[PID] = { .nr_pids = 2, .cgroup_fd = -1 },
		[NONE] = { .nr_pids = 1, .pids = { 4000000 }, .cgroup_fd = -1 },
	};
	const char *const inside[] = {
		"sh", "-c", "echo 0 >" CGROUP "/cgroup.procs && exec gw-storm --procs 2 --calls 300 "
		"--open-every 50 --mmap-every 60", NULL,
	};
	const char *const deep[] = {
		"sh", "-c", "echo 0 >" CGROUP "/inner/cgroup.procs && exec gw-storm --calls 300 "
		"--node /dev/nvidia-uvm --open-every 70", NULL,
	};
	const char *const outside[] = { "gw-storm", "--calls", "500", "--node", "/dev/nvidia0", NULL };
	struct lab_run runs[3];
	struct gw_set ids = {}, inner = {};
	struct gwsim_totals t;
	struct gw_verdict v;
	int i, go, status;
	pid_t pid;

	/* Memory and pids controllers forbid processes above a leaf: not so here. */
	f[SUBTREE] = f[PARENT] = f[ALL];
	f[SUBTREE].cgroup_fd = open(CGROUP "/inner", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f[PARENT].cgroup_fd = open(CGROUP, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_LE(0, f[SUBTREE].cgroup_fd);
	ASSERT_LE(0, f[PARENT].cgroup_fd);
	pid = known_process(&go);
	f[PID].pids[0] = 1;
	f[PID].pids[1] = pid;
	for (i = 0; i < NR; i++) {
		struct gw_options o = { .filter = &f[i] };

		ASSERT_EQ(0, gw_reader_start(&self->r[i], &o));
	}
	close(f[SUBTREE].cgroup_fd);
	close(f[PARENT].cgroup_fd);

	lab_start(&runs[0], inside);
	lab_start(&runs[1], deep);
	lab_start(&runs[2], outside);
	ASSERT_EQ(1, write(go, "g", 1));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, lab_finish(&runs[i]));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	for (i = 0; i < NR; i++) {
		gw_reader_finish(&self->r[i], &self->s[i]);
		EXPECT_EQ(gw_stats(self->r[i].fd).records, gw_stats(self->r[i].fd).seq);
		gw_verify(&self->s[i], self->r[i].info.nr_cpus, NULL, &v);
		EXPECT_EQ(0, v.gaps + v.malformed + v.time_back + v.bad_bytes)
			TH_LOG("consumer %d: %s", i, v.first);
		/* Without definitions by its own wish. */
		EXPECT_TRUE(v.undefined == 0 || i == OPENS)
			TH_LOG("consumer %d: %s", i, v.first);
		if (i == OPENS)
			EXPECT_EQ(0, v.n[GPUWATCH_REC_TASK] + v.n[GPUWATCH_REC_CGROUP] +
				     v.n[GPUWATCH_REC_STATE]);
		/* Module states pass every filter, and bring their definitions. */
		if (i == NONE)
			EXPECT_GE(v.n[GPUWATCH_REC_STATE], v.n[GPUWATCH_REC_TASK]);
	}
	t = lab_witness();
	EXPECT_EQ(lab_witness_calls(&t), exactly(&self->s[ALL], &self->s[ALL], NULL, NULL));
	gw_set_add(&inner, inode_of(CGROUP "/inner"));
	gw_set_add(&ids, inode_of(CGROUP "/inner"));
	gw_set_add(&ids, inode_of(CGROUP));
	EXPECT_LT(0, exactly(&self->s[CTL], &self->s[ALL], is_ctl, NULL));
	EXPECT_LT(0, exactly(&self->s[OPENS], &self->s[ALL], is_open_or_release, NULL));
	EXPECT_EQ(102, exactly(&self->s[PID], &self->s[ALL], is_pid, &pid));
	EXPECT_LT(300, exactly(&self->s[SUBTREE], &self->s[ALL], is_in_cgroup, &inner));
	EXPECT_LT(900, exactly(&self->s[PARENT], &self->s[ALL], is_in_cgroup, &ids));
	EXPECT_EQ(0, exactly(&self->s[NONE], &self->s[ALL], is_none, NULL));
	gw_set_free(&ids);
	gw_set_free(&inner);
}

/* The filter may change while calls run: no record of a node it never named. */
TEST_F_TIMEOUT(consumers, filter_changes, 60)
{
	static const char *const nodes[] = { "/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm" };
	struct gpuwatch_filter f = { .cgroup_fd = -1, .node_mask = 1 << GPUWATCH_NODE_CTL };
	struct gw_options o = { .filter = &f };
	unsigned long long calls, wrong;
	struct lab_busy busy;
	struct gw_verdict v;
	int i, op;

	ASSERT_EQ(0, gw_reader_start(&self->r[0], &o));
	lab_busy_start(&busy, nodes, 3);
	for (i = 0; i < (int)lab_scaled(300); i++) {
		f.node_mask = 1 << (i % 2 ? GPUWATCH_NODE_CTL : GPUWATCH_NODE_UVM);
		ASSERT_EQ(0, ioctl(self->r[0].fd, GPUWATCH_IOC_SET_FILTER, &f));
		gw_reader_drain(&self->r[0], &self->s[0]);
	}
	lab_busy_wait(&busy, 100);
	lab_busy_stop(&busy, &calls, &wrong);
	EXPECT_EQ(0, wrong);
	gw_reader_finish(&self->r[0], &self->s[0]);
	gw_verify(&self->s[0], self->r[0].info.nr_cpus, NULL, &v);
	gw_verdict_print(&v);
	EXPECT_EQ(0, v.malformed + v.gaps + v.time_back + v.undefined);
	EXPECT_LT(0, v.op[GPUWATCH_NODE_CTL][GWSIM_OP_IOCTL]);
	EXPECT_LT(0, v.op[GPUWATCH_NODE_UVM][GWSIM_OP_IOCTL]);
	for (op = 0; op < GWSIM_OP_MAX; op++)
		EXPECT_EQ(0, v.op[GPUWATCH_NODE_GPU][op]);
}

/* One reader of two dies in the middle; the other loses nothing. */
TEST_F_TIMEOUT(consumers, crash, 120)
{
	const char *const storm[] = { "gw-storm", "--procs", "2", "--threads", "2", "--calls", "1500",
				      "--open-every", "100", NULL };
	struct gw_options o = {}, small = { .ring_bytes = 4096 };
	int ready[2], i, status;
	struct gwsim_totals t;
	struct gw_verdict v;
	struct lab_run run;
	pid_t pids[3];
	char byte;

	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(0, gw_reader_start(&self->r[0], &o));
	fflush(stdout);
	for (i = 0; i < 3; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct gw_reader r;

			if (gw_reader_start(&r, i ? &o : &small) || write(ready[1], "r", 1) != 1)
				_exit(1);
			for (;;)
				pause();
		}
		ASSERT_EQ(1, read(ready[0], &byte, 1));
	}
	EXPECT_EQ(4, gw_info(self->r[0].fd).nr_consumers);
	lab_start(&run, storm);
	for (i = 0; i < 3; i++) {
		do {
			gw_reader_drain(&self->r[0], &self->s[0]);
			t = lab_witness();
		} while (lab_witness_calls(&t) < (i + 1) * 1000ULL);
		kill(pids[i], SIGKILL);
		waitpid(pids[i], &status, 0);
	}
	while (!lab_done(&run, &status)) {
		gw_reader_drain(&self->r[0], &self->s[0]);
		usleep(1000);
	}
	EXPECT_EQ(0, status);
	EXPECT_EQ(1, gw_info(self->r[0].fd).nr_consumers);
	gw_reader_finish(&self->r[0], &self->s[0]);
	gw_verify(&self->s[0], self->r[0].info.nr_cpus, NULL, &v);
	gw_verdict_print(&v);
	t = lab_witness();
	EXPECT_EQ(6000, v.storm);
	EXPECT_EQ(lab_witness_calls(&t), v.n[GPUWATCH_REC_OPEN] + v.n[GPUWATCH_REC_IOCTL] +
		  v.n[GPUWATCH_REC_MMAP] + v.n[GPUWATCH_REC_RELEASE]);
	EXPECT_EQ(0, v.gaps + v.malformed + v.time_back + v.thread_back + v.thread_gaps +
		     v.bad_bytes + v.undefined);
}

TEST_F(consumers, seventeenth)
{
	struct gw_options o = { .ring_bytes = 4096 };
	struct gw_reader one;
	int i;

	for (i = 0; i < 16; i++)
		ASSERT_EQ(0, gw_reader_start(&self->r[i], &o));
	EXPECT_EQ(-EUSERS, gw_reader_start(&one, &o));
	EXPECT_EQ(16, gw_info(self->r[0].fd).nr_consumers);
	/* An enabled one may say so again. */
	EXPECT_EQ(0, ioctl(self->r[0].fd, GPUWATCH_IOC_ENABLE));
	EXPECT_EQ(16, gw_info(self->r[0].fd).nr_consumers);
	/* A place that gets free is to be had. */
	ASSERT_EQ(0, ioctl(self->r[3].fd, GPUWATCH_IOC_DISABLE));
	ASSERT_EQ(0, gw_reader_start(&one, &o));
	EXPECT_EQ(-1, ioctl(self->r[3].fd, GPUWATCH_IOC_ENABLE));
	EXPECT_EQ(EUSERS, errno);
	gw_reader_stop(&one);
	EXPECT_EQ(0, ioctl(self->r[3].fd, GPUWATCH_IOC_ENABLE));
}

TEST_HARNESS_MAIN
