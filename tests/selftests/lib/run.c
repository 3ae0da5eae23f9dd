// SPDX-License-Identifier: Apache-2.0
/*
 * run.c - programs, busy processes, the driver's witness and small things, see
 * lab.h. Trouble with what is not under test ends the program.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../vm/guest/storm.h"
#include "lab.h"

static void give_up(const char *what)
{
	printf("# lab: %s: %s\n", what, strerror(errno));
	fflush(stdout);
	abort();
}

void lab_start(struct lab_run *run, const char *const *argv)
{
	int ends[2];

	fflush(stdout);
	if (pipe2(ends, O_CLOEXEC))
		give_up("pipe");
	run->used = 0;
	run->pid = fork();
	if (run->pid < 0)
		give_up("fork");
	if (run->pid == 0) {
		dup2(ends[1], 1);
		execvp(argv[0], (char *const *)argv);
		fprintf(stderr, "# lab: %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	close(ends[1]);
	run->out = ends[0];
	fcntl(run->out, F_SETFL, O_NONBLOCK);
}

static void take_output(struct lab_run *run)
{
	ssize_t n;

	while ((n = read(run->out, run->text + run->used,
			 sizeof(run->text) - 1 - run->used)) > 0)
		run->used += n;
	run->text[run->used] = '\0';
}

static int ended(struct lab_run *run, int status)
{
	take_output(run);
	close(run->out);
	run->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool lab_done(struct lab_run *run, int *status)
{
	int wait_status;

	take_output(run);
	if (waitpid(run->pid, &wait_status, WNOHANG) != run->pid)
		return false;
	*status = ended(run, wait_status);
	return true;
}

int lab_finish(struct lab_run *run)
{
	int wait_status;

	if (waitpid(run->pid, &wait_status, 0) != run->pid)
		give_up("waitpid");
	return ended(run, wait_status);
}

int lab_run_drained(struct lab_run *run, const char *const *argv, struct gw_reader *r,
		    struct gw_stream *to)
{
	const struct sched_param first = { .sched_priority = 1 }, normal = { .sched_priority = 0 };
	struct pollfd p = { .fd = r->fd, .events = POLLIN };
	int status;

	lab_start(run, argv);
	/* Ahead of the storm, which has a thread for every other turn. */
	sched_setscheduler(0, SCHED_FIFO, &first);
	while (!lab_done(run, &status)) {
		if (poll(&p, 1, 20) < 0 && errno != EINTR)
			give_up("poll");
		gw_reader_drain(r, to);
	}
	sched_setscheduler(0, SCHED_OTHER, &normal);
	/* A process closes its files before it can be waited for. */
	gw_reader_finish(r, to);
	return status;
}

unsigned long long lab_number(const struct lab_run *run, const char *key)
{
	char quoted[64];
	const char *p;

	snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	p = strstr(run->text, quoted);
	return p ? strtoull(p + strlen(quoted), NULL, 10) : ~0ULL;
}

static void busy_process(volatile struct lab_busy_shared *shared, const char *node, unsigned int me)
{
	struct gwsim_block block = { .ms = 3 };
	uint8_t arg[64], want[64];
	int fd = lab_node(node);
	uint64_t seq;

	for (seq = 0; !shared->stop; seq++) {
		/* A thread number whose order nobody checks: seen only in parts. */
		storm_fill(arg, sizeof(arg), 7, me, 256, seq);
		memcpy(want, arg, sizeof(want));
		gwsim_transform(want, sizeof(want));
		if (lab_transform(fd, arg, sizeof(arg)) || memcmp(arg, want, sizeof(want)))
			__atomic_fetch_add(&shared->wrong, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&shared->calls, 1, __ATOMIC_RELAXED);
		/* Most of the time is spent inside the driver, asleep. */
		if (seq % 8 == 7) {
			if (ioctl(fd, GWSIM_BLOCK, &block))
				__atomic_fetch_add(&shared->wrong, 1, __ATOMIC_RELAXED);
			__atomic_fetch_add(&shared->calls, 1, __ATOMIC_RELAXED);
		}
		/* Now and then a file opened while hooks come and go. */
		if (seq % 64 == 63) {
			close(fd);
			fd = lab_node(node);
		}
	}
	_exit(0);
}

void lab_busy_start(struct lab_busy *busy, const char *const *nodes, unsigned int nr)
{
	unsigned int i;

	busy->shared = mmap(NULL, sizeof(*busy->shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (busy->shared == MAP_FAILED)
		give_up("mmap");
	busy->nr = nr;
	fflush(stdout);
	for (i = 0; i < nr; i++) {
		busy->pids[i] = fork();
		if (busy->pids[i] < 0)
			give_up("fork");
		if (busy->pids[i] == 0) {
			/* A test that fails or hangs must not leave them behind. */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			busy_process(busy->shared, nodes[i], i);
		}
	}
}

void lab_busy_wait(struct lab_busy *busy, unsigned long long more)
{
	unsigned long long until = __atomic_load_n(&busy->shared->calls, __ATOMIC_RELAXED) + more;

	while (__atomic_load_n(&busy->shared->calls, __ATOMIC_RELAXED) < until)
		usleep(2000);
}

void lab_busy_stop(struct lab_busy *busy, unsigned long long *calls, unsigned long long *wrong)
{
	unsigned int i;
	int status;

	busy->shared->stop = 1;
	for (i = 0; i < busy->nr; i++)
		if (waitpid(busy->pids[i], &status, 0) != busy->pids[i] || status)
			__atomic_fetch_add(&busy->shared->wrong, 1, __ATOMIC_RELAXED);
	*calls = busy->shared->calls;
	*wrong = busy->shared->wrong;
	munmap((void *)busy->shared, sizeof(*busy->shared));
}

static int witness_fd(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = open("/dev/gwsim", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		give_up("/dev/gwsim");
	return fd;
}

void lab_witness_reset(void)
{
	if (ioctl(witness_fd(), GWSIM_IOC_RESET))
		give_up("reset the witness");
}

struct gwsim_totals lab_witness(void)
{
	struct gwsim_totals t;

	if (ioctl(witness_fd(), GWSIM_IOC_TOTALS, &t))
		give_up("ask the witness");
	return t;
}

unsigned long long lab_witness_op(const struct gwsim_totals *t, int op)
{
	unsigned long long n = 0;
	int kind;

	for (kind = 0; kind < GWSIM_NODE_MAX; kind++)
		n += t->counts.n[kind][op];
	return n;
}

unsigned long long lab_witness_calls(const struct gwsim_totals *t)
{
	unsigned long long n = 0;
	int op;

	for (op = 0; op < GWSIM_OP_MAX; op++)
		n += lab_witness_op(t, op);
	return n;
}

struct gwsim_log_entry *lab_witness_log(size_t *nr)
{
	struct gwsim_totals t = lab_witness();
	struct gwsim_log_entry *log = calloc(t.log_used + 1, sizeof(*log));
	struct gwsim_log req = { .room = 4096 };

	if (!log)
		give_up("calloc");
	for (*nr = 0; *nr < t.log_used; *nr += req.count) {
		req.entries = (uintptr_t)(log + *nr);
		req.first = *nr;
		if (req.room > t.log_used - *nr)
			req.room = t.log_used - *nr;
		if (ioctl(witness_fd(), GWSIM_IOC_LOG, &req) || !req.count)
			give_up("read the witness's log");
	}
	return log;
}

void lab_pin(int cpu)
{
	cpu_set_t set;
	int i;

	CPU_ZERO(&set);
	for (i = 0; i < 64; i++)
		if (cpu < 0 || cpu == i)
			CPU_SET(i, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		give_up("sched_setaffinity");
}

int lab_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

long long lab_read_number(const char *path)
{
	char text[64] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	return n > 0 ? strtoll(text, NULL, 10) : -1;
}

long lab_meminfo_kb(const char *key)
{
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];
	long kb = -1;

	if (!file)
		give_up("/proc/meminfo");
	while (kb < 0 && fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':')
			kb = strtol(line + strlen(key) + 1, NULL, 10);
	fclose(file);
	return kb;
}

void lab_mark(const char *text)
{
	lab_write("/dev/kmsg", text);
}

bool lab_debug_kernel(void)
{
	struct utsname name;

	uname(&name);
	return strstr(name.release, "dbg");
}

unsigned long lab_scaled(unsigned long n)
{
	return lab_debug_kernel() ? (n + 9) / 10 : n;
}
