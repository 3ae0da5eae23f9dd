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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
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

/* What lies behind the path. */
static const struct gpuwatch_task_more *more_of(const struct gpuwatch_rec_task *task)
{
	return (const void *)((const char *)(task + 1) + (task->path_len + 7) / 8 * 8);
}

static const struct gpuwatch_ancestor *ancestors_of(const struct gpuwatch_task_more *more)
{
	return (const void *)(more + 1);
}

static const uint32_t *ns_ids_of(const struct gpuwatch_task_more *more)
{
	return (const void *)(ancestors_of(more) + more->nr_ancestors);
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
		EXPECT_EQ(0, more_of(task)->flags);
		EXPECT_EQ(1, more_of(task)->nr_ns);
		EXPECT_EQ(getpid(), ns_ids_of(more_of(task))[0]);
		ASSERT_LE(1, more_of(task)->nr_ancestors);
		EXPECT_EQ(getppid(), ancestors_of(more_of(task))[0].tgid);
		EXPECT_EQ(task->parent_start_ns, ancestors_of(more_of(task))[0].start_ns);
		EXPECT_EQ(1, ancestors_of(more_of(task))[more_of(task)->nr_ancestors - 1].tgid);
	}
	EXPECT_EQ(1, n);
}

static void become_memfd(void)
{
	char *const argv[] = { "memory", NULL }, *const envp[] = { "GW_CALL_ONCE=1", NULL };
	int from = open("/proc/self/exe", O_RDONLY), to = memfd_create("program", MFD_CLOEXEC);
	struct stat st;

	if (fstat(from, &st) || sendfile(to, from, NULL, st.st_size) != st.st_size)
		_exit(2);
	fexecve(to, argv, envp);
	_exit(3);
}

/* This program again, as a process that calls once and ends. */
__attribute__((constructor)) static void call_once_when_asked(void)
{
	const char *how = getenv("GW_CALL_ONCE");

	if (!how)
		return;
	if (!strcmp(how, "memfd"))
		become_memfd();
	if (!strcmp(how, "gone"))
		unlink("/tmp/old");
	if (!strcmp(how, "moved")) {
		usleep(20000); /* the change's time stamp is a tick's, not the moment's */
		rename("/tmp/old", "/tmp/new");
	}
	_exit(one_call() ? 1 : 0);
}

/* A node is told by its inode: one made by mknod is another than the driver's. */
TEST_F(identity, node_of_an_open)
{
	struct stat host, own;
	unsigned int at_host = 0, at_own = 0;
	size_t i;
	int fd;

	ASSERT_EQ(0, stat("/dev/nvidiactl", &host));
	ASSERT_EQ(0, mknod("/tmp/mine", S_IFCHR | 0600, host.st_rdev));
	ASSERT_EQ(0, stat("/tmp/mine", &own));
	close(lab_node("/dev/nvidiactl"));
	fd = open("/tmp/mine", O_RDWR);
	ASSERT_LE(0, fd);
	close(fd);
	unlink("/tmp/mine");
	gw_reader_finish(&self->r, &self->s);
	for (i = 0; i < self->s.nr; i++) {
		const struct gpuwatch_rec *rec = gw_rec(&self->s, i);
		const struct gpuwatch_rec_open *open = gw_payload(rec);
		const struct gpuwatch_open_node *node = (const void *)(open + 1);

		if (rec->type != GPUWATCH_REC_OPEN)
			continue;
		at_host += node->ino == host.st_ino &&
			   node->dev == (major(host.st_dev) << 20 | minor(host.st_dev));
		at_own += node->ino == own.st_ino &&
			  node->dev == (major(own.st_dev) << 20 | minor(own.st_dev)) &&
			  node->ctime_ns == own.st_ctim.tv_sec * 1000000000ULL + own.st_ctim.tv_nsec;
	}
	EXPECT_EQ(1, at_host);
	EXPECT_EQ(1, at_own);
}

/* Programs whose file has no name: memfd, removed, renamed after the start. */
TEST_F(identity, nameless_executables)
{
	static const char script[] =
		"cp /bin/busybox /tmp/gone; cp /usr/local/bin/st-identity /tmp/old;"
		"GW_CALL_ONCE=memfd st-identity; GW_CALL_ONCE=gone /tmp/old; cp /usr/local/bin/st-identity /tmp/old;"
		"GW_CALL_ONCE=moved /tmp/old";
	const char *const argv[] = { "sh", "-c", script, NULL };
	unsigned int flags[8] = { 0 };
	struct lab_run run;
	size_t i;

	lab_pin(0);
	ASSERT_EQ(0, lab_run_drained(&run, argv, &self->r, &self->s));
	for (i = 0; i < self->s.nr; i++) {
		const struct gpuwatch_rec *rec = gw_rec(&self->s, i);

		if (rec->type == GPUWATCH_REC_TASK && rec->tgid != (uint32_t)getpid())
			flags[more_of(gw_payload(rec))->flags & 7]++;
	}
	EXPECT_EQ(1, flags[GPUWATCH_TASK_EXE_MEMFD]);
	EXPECT_EQ(1, flags[GPUWATCH_TASK_EXE_DELETED]);
	EXPECT_EQ(1, flags[GPUWATCH_TASK_EXE_CHANGED]);
	unlink("/tmp/gone");
	unlink("/tmp/new");
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
			ASSERT_EQ(2, more_of(task)->nr_ns);
			EXPECT_EQ(rec->tgid, ns_ids_of(more_of(task))[0]);
			EXPECT_EQ(2, ns_ids_of(more_of(task))[1]);
			/* gw-storm's children are the children of the first one. */
			EXPECT_EQ(1, more_of(task)->nr_ancestors);
			EXPECT_EQ(1, ancestors_of(more_of(task))[0].ns_tgid);
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
