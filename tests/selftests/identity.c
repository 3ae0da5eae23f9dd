// SPDX-License-Identifier: Apache-2.0
/*
 * identity - who called: definitions after fork, exec and in threads, process
 * ids used again, namespaces, and cgroups that come and go by the thousand.
 */
#define _GNU_SOURCE
#include <kselftest_harness.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "lib/verify.h"

FIXTURE(identity) {
	struct gw_reader r;
	struct gw_stream s;
};

FIXTURE_SETUP(identity)
{
	struct gw_options o = {};

	lab_fresh(false, "");
	ASSERT_EQ(0, gw_reader_start(&self->r, &o));
}

FIXTURE_TEARDOWN(identity)
{
	gw_reader_stop(&self->r);
	gw_stream_free(&self->s);
}

static int one_call(void)
{
	uint8_t arg[64] = { 0 };
	int fd = lab_node("/dev/nvidiactl"), ret = lab_transform(fd, arg, sizeof(arg));

	close(fd);
	return ret;
}

/* The definition of @rec's process in force at record @at of its ring. */
static const struct gpuwatch_rec_task *task_at(const struct gw_stream *s, size_t at,
					       const struct gpuwatch_rec **head)
{
	const struct gpuwatch_rec *rec = gw_rec(s, at);

	while (at-- > 0) {
		const struct gpuwatch_rec *def = gw_rec(s, at);

		if (def->type == GPUWATCH_REC_TASK && def->cpu == rec->cpu &&
		    gw_task_key(def) == gw_task_key(rec)) {
			*head = def;
			return gw_payload(def);
		}
	}
	return NULL;
}

/* Of the process @tgid, in the ring of CPU 0. Our own calls of before may have
 * left definitions of ourselves in others. */
static unsigned int definitions_of(const struct gw_stream *s, unsigned int type, pid_t tgid)
{
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < s->nr; i++) {
		const struct gpuwatch_rec *rec = gw_rec(s, i);

		n += rec->type == type && rec->tgid == (uint32_t)tgid && rec->cpu == 0;
	}
	return n;
}

static const char *path_of(const struct gpuwatch_rec_task *task)
{
	static char path[GPUWATCH_PATH_MAX + 1];

	snprintf(path, sizeof(path), "%.*s", (int)task->path_len, (const char *)(task + 1));
	return path;
}

/* Field @n of /proc/self/stat; 22 is the start time in ticks. */
static unsigned long long own_start_ticks(void)
{
	char text[1024] = "", *p;
	int fd = open("/proc/self/stat", O_RDONLY), field;
	ssize_t got = read(fd, text, sizeof(text) - 1);

	close(fd);
	p = got > 0 ? strrchr(text, ')') : NULL;
	for (field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p, NULL, 10) : 0;
}

TEST_F(identity, header_and_task)
{
	const struct gpuwatch_rec *head;
	const struct gpuwatch_rec_task *task;
	struct stat st, cgroup;
	uint64_t before = gw_now_ns(), after;
	char exe[256] = "";
	size_t i, n = 0;

	prctl(PR_SET_NAME, "id-ent\xff\x01ity");
	lab_pin(0);
	ASSERT_EQ(0, one_call());
	after = gw_now_ns();
	gw_reader_finish(&self->r, &self->s);
	ASSERT_LT(0, readlink("/proc/self/exe", exe, sizeof(exe) - 1));
	ASSERT_EQ(0, stat("/proc/self/exe", &st));
	ASSERT_EQ(0, stat("/sys/fs/cgroup", &cgroup));
	for (i = 0; i < self->s.nr; i++) {
		const struct gpuwatch_rec *rec = gw_rec(&self->s, i);

		if (rec->type != GPUWATCH_REC_IOCTL)
			continue;
		n++;
		EXPECT_EQ(getpid(), rec->tgid);
		EXPECT_EQ(gettid(), rec->tid);
		EXPECT_EQ(0, rec->uid);
		EXPECT_EQ(0, rec->cpu);
		EXPECT_STREQ("id-ent\xff\x01ity", rec->comm);
		EXPECT_LE(before, rec->time_ns);
		EXPECT_GE(after, rec->time_ns);
		EXPECT_EQ(own_start_ticks(), rec->start_ns / 10000000);
		EXPECT_EQ(cgroup.st_ino, rec->cgroup_id);
		EXPECT_EQ(0, rec->flags);
		task = task_at(&self->s, i, &head);
		ASSERT_NE(NULL, task);
		EXPECT_EQ(getpid(), task->ns_tgid);
		EXPECT_EQ(getppid(), task->parent_tgid);
		EXPECT_EQ(0, task->ns_level);
		EXPECT_EQ(st.st_ino, task->exe_ino);
		EXPECT_EQ(major(st.st_dev) << 20 | minor(st.st_dev), task->exe_dev);
		EXPECT_STREQ(exe, path_of(task));
	}
	EXPECT_EQ(1, n);
}

/* This program again, as a process that calls once and ends. */
__attribute__((constructor)) static void call_once_when_asked(void)
{
	if (getenv("GW_CALL_ONCE"))
		_exit(one_call() ? 1 : 0);
}

/* One process calls, becomes another program by exec, and calls again. */
TEST_F(identity, exec_defines_anew)
{
	const char *const argv[] = {
		"sh", "-c", "exec 3<>/dev/nvidiactl; exec 3>&-; GW_CALL_ONCE=1 exec st-identity", NULL,
	};
	const struct gpuwatch_rec *head;
	const struct gpuwatch_rec_task *task;
	unsigned int shell = 0, own = 0;
	struct lab_run run;
	struct gw_verdict v;
	uint64_t start = 0;
	uint32_t tgid = 0;
	size_t i;

	lab_pin(0);
	ASSERT_EQ(0, lab_run_drained(&run, argv, &self->r, &self->s));
	for (i = 0; i < self->s.nr; i++) {
		const struct gpuwatch_rec *rec = gw_rec(&self->s, i);

		if (rec->type > GPUWATCH_REC_RELEASE)
			continue;
		if (!tgid) {
			tgid = rec->tgid;
			start = rec->start_ns;
		}
		EXPECT_EQ(tgid, rec->tgid);
		EXPECT_EQ(start, rec->start_ns);
		task = task_at(&self->s, i, &head);
		ASSERT_NE(NULL, task);
		if (strstr(path_of(task), "busybox"))
			shell++;
		else if (strstr(path_of(task), "st-identity"))
			own++;
	}
	EXPECT_EQ(2, shell);
	EXPECT_EQ(3, own);
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	EXPECT_EQ(2, definitions_of(&self->s, GPUWATCH_REC_TASK, tgid));
	EXPECT_EQ(0, v.undefined);
}

static void *thread_call(void *arg)
{
	prctl(PR_SET_NAME, arg);
	one_call();
	return NULL;
}

TEST_F(identity, threads_share_a_definition)
{
	pthread_t threads[8];
	struct gw_set tids = {};
	char names[8][16];
	struct gw_verdict v;
	size_t i;

	lab_pin(0);
	for (i = 0; i < 8; i++) {
		snprintf(names[i], sizeof(names[i]), "thread-%zu", i);
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, thread_call, names[i]));
		pthread_join(threads[i], NULL);
	}
	gw_reader_finish(&self->r, &self->s);
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	EXPECT_EQ(1, definitions_of(&self->s, GPUWATCH_REC_TASK, getpid()));
	EXPECT_EQ(1, definitions_of(&self->s, GPUWATCH_REC_CGROUP, getpid()));
	EXPECT_EQ(8, v.n[GPUWATCH_REC_IOCTL]);
	EXPECT_EQ(0, v.undefined);
	for (i = 0; i < self->s.nr; i++) {
		const struct gpuwatch_rec *rec = gw_rec(&self->s, i);

		if (rec->type != GPUWATCH_REC_IOCTL)
			continue;
		EXPECT_EQ(getpid(), rec->tgid);
		EXPECT_EQ(0, strncmp("thread-", rec->comm, 7));
		gw_set_add(&tids, rec->tid);
	}
	EXPECT_EQ(8, tids.nr);
	gw_set_free(&tids);
}

/* The same pid for two processes: told apart by their start, defined each. */
TEST_F_TIMEOUT(identity, pid_used_again, 60)
{
	uint64_t starts[2] = { 0 };
	struct gw_verdict v;
	unsigned int n = 0;
	char text[16];
	int status;
	pid_t pid;
	size_t i;
	int k;

	lab_pin(0);
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(one_call() ? 1 : 0);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	snprintf(text, sizeof(text), "%d", pid - 1);
	usleep(30000);	/* so that the start differs in /proc's ticks as well */
	if (lab_write("/proc/sys/kernel/ns_last_pid", text))
		SKIP(return, "this kernel has no ns_last_pid");
	k = fork();
	if (k == 0)
		_exit(one_call() ? 1 : 0);
	ASSERT_EQ(k, waitpid(k, &status, 0));
	ASSERT_EQ(pid, k);
	gw_reader_finish(&self->r, &self->s);
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	EXPECT_EQ(0, v.undefined);
	EXPECT_EQ(2, definitions_of(&self->s, GPUWATCH_REC_TASK, pid));
	for (i = 0; i < self->s.nr; i++) {
		const struct gpuwatch_rec *rec = gw_rec(&self->s, i);

		if (rec->type == GPUWATCH_REC_TASK && rec->tgid == (uint32_t)pid && n < 2)
			starts[n++] = rec->start_ns;
	}
	EXPECT_LT(starts[0], starts[1]);
}

/* A pid namespace two levels down, and a cgroup of its own. */
TEST_F(identity, container)
{
	const char *const argv[] = { "gw-container", "box", "--cgroup", "/kubepods.slice/gw-id/box",
				     "--uid", "1000", "--gid", "1000", "--", "gw-storm", "--calls", "5", NULL };
	unsigned int storms = 0, cgroups = 0;
	struct lab_run run;
	struct gw_verdict v;
	size_t i;

	ASSERT_EQ(0, lab_run_drained(&run, argv, &self->r, &self->s));
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	EXPECT_EQ(0, v.undefined + v.gaps + v.malformed);
	for (i = 0; i < self->s.nr; i++) {
		const struct gpuwatch_rec *rec = gw_rec(&self->s, i);
		const struct gpuwatch_rec_task *task = gw_payload(rec);
		const struct gpuwatch_rec_cgroup *cg = gw_payload(rec);

		if (rec->type == GPUWATCH_REC_TASK && rec->tgid != (uint32_t)getpid()) {
			storms++;
			EXPECT_EQ(1, task->ns_level);
			EXPECT_EQ(2, task->ns_tgid);
			EXPECT_EQ(1000, rec->uid);
		}
		if (rec->type == GPUWATCH_REC_CGROUP && cg->path_len > 1) {
			cgroups++;
			EXPECT_EQ(2, cg->version);
			EXPECT_EQ(strlen("/kubepods.slice/gw-id/box"), cg->path_len);
			EXPECT_EQ(0, strncmp("/kubepods.slice/gw-id/box", (const char *)(cg + 1),
					     cg->path_len));
		}
	}
	EXPECT_LE(1, storms);
	EXPECT_LE(1, cgroups);
}

/* 1,000 cgroups made and removed while others call: each record's cgroup is
 * defined with the path it had. */
TEST_F_TIMEOUT(identity, thousand_cgroups, 240)
{
	const unsigned int n = lab_scaled(1000);
	static const char *const nodes[] = { "/dev/nvidiactl", "/dev/nvidia0" };
	unsigned long long calls, wrong, checked = 0, defined = 0;
	uint64_t *ids = calloc(n, sizeof(*ids));
	struct gw_set index = {}, seen = {};
	struct lab_busy busy;
	struct gw_verdict v;
	struct clone_args clone = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD };
	char path[128];
	struct stat st;
	unsigned int i;
	int status;
	size_t at;
	pid_t pid;

	ASSERT_NE(NULL, ids);
	mkdir("/sys/fs/cgroup/gw-many", 0755);
	lab_busy_start(&busy, nodes, 2);
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "/sys/fs/cgroup/gw-many/job-%u.scope", i);
		ASSERT_EQ(0, mkdir(path, 0755));
		ASSERT_EQ(0, stat(path, &st));
		ids[i] = st.st_ino;
		*gw_set_value(&index, st.st_ino) = i + 1;
		/* Born there: moving a process costs a grace period each. */
		clone.cgroup = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		pid = syscall(SYS_clone3, &clone, sizeof(clone));
		if (pid == 0)
			_exit(one_call() ? 1 : 0);
		close(clone.cgroup);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_EQ(0, status);
		/* Empty only when the dead is off the list; that is soon. */
		while (rmdir(path))
			usleep(1000);
		gw_reader_drain(&self->r, &self->s);
	}
	lab_busy_stop(&busy, &calls, &wrong);
	EXPECT_EQ(0, wrong);
	rmdir("/sys/fs/cgroup/gw-many");
	gw_reader_finish(&self->r, &self->s);
	gw_verify(&self->s, self->r.info.nr_cpus, NULL, &v);
	gw_verdict_print(&v);
	EXPECT_EQ(0, v.gaps + v.malformed + v.time_back + v.undefined);
	for (at = 0; at < self->s.nr; at++) {
		const struct gpuwatch_rec *rec = gw_rec(&self->s, at);
		const struct gpuwatch_rec_cgroup *cg = gw_payload(rec);

		if (rec->type == GPUWATCH_REC_IOCTL && gw_set_has(&index, rec->cgroup_id))
			gw_set_add(&seen, rec->cgroup_id);
		if (rec->type != GPUWATCH_REC_CGROUP || !gw_set_has(&index, rec->cgroup_id))
			continue;
		snprintf(path, sizeof(path), "/gw-many/job-%u.scope",
			 (unsigned int)*gw_set_value(&index, rec->cgroup_id) - 1);
		defined++;
		checked += cg->path_len == strlen(path) &&
			   !strncmp(path, (const char *)(cg + 1), cg->path_len);
	}
	EXPECT_EQ(n, seen.nr);
	EXPECT_LE(n, defined);
	EXPECT_EQ(defined, checked);
	gw_set_free(&index);
	gw_set_free(&seen);
	free(ids);
}

TEST_HARNESS_MAIN
