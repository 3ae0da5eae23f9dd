// SPDX-License-Identifier: Apache-2.0
// gw-bench: what a traced call costs, in guest instructions, without the module
// and with it in each of its states. Loads and unloads gpuwatch.ko itself; the
// simulated driver is there already, with its witness off. Results go to stdout,
// one line each; what they must be is the host's business.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../vm/simdrv/gwsim.h"
#include "measure.h"
#include "peers.h"
#include "reader.h"

enum { kDrainRecords = 10000, kDrainRounds = 5, kLiveCalls = 20000 };

/* --- the calls ------------------------------------------------------------ */

/* RM_CONTROL's argument: the pointer at 16, its length at 24. */
struct control {
	uint32_t client, object, cmd, flags;
	uint64_t params;
	uint32_t params_bytes, status;
};

#define RM_CONTROL	_IOWR('F', 0x2a, struct control)

struct ioctl_call {
	long fd;
	unsigned long cmd;
	void *arg;
};

static uint8_t argument[64] __attribute__((aligned(64)));
static uint8_t params[64] __attribute__((aligned(64)));
static struct control plain_control;
static struct control nested_control;
static struct ioctl_call nop = { .cmd = GWSIM_NOP, .arg = argument };
static struct ioctl_call echo64 = { .cmd = GWSIM_ECHO(64), .arg = argument };
static struct ioctl_call echo32 = { .cmd = GWSIM_ECHO(32), .arg = argument };
static struct ioctl_call control32 = { .cmd = RM_CONTROL, .arg = &plain_control };
static struct ioctl_call control_nested = { .cmd = RM_CONTROL, .arg = &nested_control };

static long do_ioctl(void *context)
{
	const struct ioctl_call *c = context;

	return bench_syscall(SYS_ioctl, c->fd, (long)c->cmd, (long)c->arg);
}

static long do_getppid(void *context)
{
	(void)context;
	return bench_syscall(SYS_getppid, 0, 0, 0);
}

static long do_open_null(void *context)
{
	long fd = bench_syscall(SYS_open, (long)"/dev/null", O_RDWR, 0);

	(void)context;
	if (fd < 0)
		return fd;
	return bench_syscall(SYS_close, fd, 0, 0);
}

static struct bench_call nop_call = { .call = do_ioctl, .context = &nop };
static struct bench_call echo64_call = { .call = do_ioctl, .context = &echo64 };
static struct bench_call echo32_call = { .call = do_ioctl, .context = &echo32 };
static struct bench_call control_call = { .call = do_ioctl, .context = &control32 };
static struct bench_call nested_call = { .call = do_ioctl, .context = &control_nested };
static struct bench_call getppid_call = { .call = do_getppid };
static struct bench_call null_call = { .call = do_open_null };

static double bare_nop, bare_echo64, bare_echo32, bare_control, bare_nested, bare_getppid, bare_null;

static void added(const char *name, const struct bench_call *call, double bare)
{
	bench_report("added", name, bench_measure(call) - bare);
}

static void read_by(struct reader *reader)
{
	struct bench_call *calls[] = { &nop_call, &echo64_call, &echo32_call, &control_call,
				       &nested_call, &getppid_call, &null_call };
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		calls[i]->between = reader ? reader_drain_between : NULL;
		calls[i]->between_context = reader;
	}
}

static void drain_two(void *context)
{
	struct reader **both = context;

	reader_drain(both[0]);
	reader_drain(both[1]);
}

/* --- the module ----------------------------------------------------------- */

static void load(const char *path, const char *parameters)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || syscall(SYS_finit_module, fd, parameters, 0))
		bench_die("load %s: %s", path, strerror(errno));
	close(fd);
}

static void unload(const char *name)
{
	if (syscall(SYS_delete_module, name, O_NONBLOCK))
		bench_die("unload %s: %s", name, strerror(errno));
}

static void module_ioctl(const char *what, unsigned long cmd, void *arg)
{
	int fd = open("/dev/gpuwatch", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, cmd, arg))
		bench_die("%s: %s", what, strerror(errno));
	close(fd);
}

static void detach(void)
{
	struct gpuwatch_detach wait = { .timeout_ms = 5000 };

	module_ioctl("detach", GPUWATCH_IOC_DETACH, &wait);
}

/* Every call must have gone through the hook, by the method meant. */
static void check_hooked(uint32_t method)
{
	struct gpuwatch_target target = { 0 };
	int fd = open("/dev/gpuwatch", O_RDONLY | O_CLOEXEC);

	for (; !ioctl(fd, GPUWATCH_IOC_GET_TARGET, &target); target.index++)
		if (target.op == GPUWATCH_OP_IOCTL && target.method == method &&
		    !strcmp(target.module, "nvidia")) {
			close(fd);
			return;
		}
	bench_die("nvidia's ioctl is not hooked by method %u", method);
}

/* Has the module copy `bytes` before and after the no-op, which declares none. */
static void plan_nop(uint16_t bytes)
{
	struct gpuwatch_plan_entry entry = {
		.cmd = GWSIM_NOP, .cmd_mask = 0xffffffff,
		.node_mask = 1U << GPUWATCH_NODE_CTL,
		.in_bytes = bytes, .out_bytes = bytes,
	};
	struct gpuwatch_plan plan = {
		.entries = (uintptr_t)&entry, .nr_entries = 1, .default_bytes = 64,
	};

	module_ioctl("plan", GPUWATCH_IOC_SET_PLAN, &plan);
}

/* --- the cases ------------------------------------------------------------ */

static void measure_bare(void)
{
	struct {
		const char *name;
		const struct bench_call *call;
		double *to;
	} all[] = {
		{ "bare: no-op", &nop_call, &bare_nop },
		{ "bare: echo, 64 bytes", &echo64_call, &bare_echo64 },
		{ "bare: echo, 32 bytes", &echo32_call, &bare_echo32 },
		{ "bare: RM_CONTROL, 32 bytes", &control_call, &bare_control },
		{ "bare: RM_CONTROL, 32 + 64 nested bytes", &nested_call, &bare_nested },
		{ "bare: getppid", &getppid_call, &bare_getppid },
		{ "bare: open and close /dev/null", &null_call, &bare_null },
	};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		*all[i].to = bench_measure(all[i].call);
		bench_report("bare", all[i].name, *all[i].to);
	}
}

static void measure_unread(void)
{
	added("loaded, not attached", &nop_call, bare_nop);
	module_ioctl("attach", GPUWATCH_IOC_ATTACH, NULL);
	check_hooked(GPUWATCH_METHOD_REDIRECT);
	added("attached, no consumer", &nop_call, bare_nop);
	added("attached, no consumer: getppid", &getppid_call, bare_getppid);
	added("attached, no consumer: open and close /dev/null", &null_call, bare_null);
	detach();
	added("detached again", &nop_call, bare_nop);
}

static void measure_filters(void)
{
	struct gpuwatch_filter nodes = { .node_mask = 1U << GPUWATCH_NODE_UVM, .cgroup_fd = -1 };
	struct gpuwatch_filter pids = { .cgroup_fd = -1, .nr_pids = 1, .pids = { 0x7ffffff0 } };
	struct reader reader;

	reader_open(&reader, &nodes);
	added("filter rejects all: node kind", &nop_call, bare_nop);
	reader_close(&reader);
	reader_open(&reader, &pids);
	added("filter rejects all: process", &nop_call, bare_nop);
	reader_close(&reader);
}

/* Instructions to take one record out of the ring, over large batches. */
static void measure_drain(struct reader *reader)
{
	uint64_t spent, least = UINT64_MAX;
	int round, i;

	for (round = 0; round < kDrainRounds; round++) {
		reader_drain(reader);
		for (i = 0; i < kDrainRecords; i++)
			do_ioctl(&nop);
		spent = bench_instructions();
		if (reader_drain(reader) < kDrainRecords)
			bench_die("fewer records than calls");
		spent = bench_instructions() - spent;
		if (spent < least)
			least = spent;
	}
	bench_report("added", "reader: take one record", (double)least / kDrainRecords);
}

/* A reader of its own process, woken by the module, while a thread keeps calling:
 * all that recording costs the machine, per call. */
static void measure_live(void)
{
	struct bench_call live = { .call = do_ioctl, .context = &nop };
	double bare = bench_total(&live, kLiveCalls);
	struct gpuwatch_stats stats;
	struct reader reader;
	pid_t pid;

	reader_open(&reader, NULL);
	pid = fork();
	if (pid == 0)
		reader_follow(&reader);
	plan_nop(64);
	bench_report("added", "with a live reader, all included", bench_total(&live, kLiveCalls) - bare);
	stats = reader_stats(&reader);
	if (stats.records != stats.seq || stats.records < kLiveCalls)
		bench_die("a live reader lost %llu of %llu records",
			  (unsigned long long)(stats.seq - stats.records), (unsigned long long)stats.seq);
	bench_report("value", "wake-ups per 1000 records",
		     1000.0 * (double)stats.wakeups / (double)stats.records);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	reader_close(&reader);
}

static void measure_two(struct reader *first)
{
	struct reader second;
	struct reader *both[] = { first, &second };

	reader_open(&second, NULL);
	nop_call.between = drain_two;
	nop_call.between_context = both;
	added("2 consumers, 64 + 64 bytes", &nop_call, bare_nop);
	read_by(first);
	reader_close(&second);
}

static void measure_full(void)
{
	struct reader reader;

	reader_open(&reader, NULL);
	check_hooked(GPUWATCH_METHOD_REDIRECT);
	read_by(&reader);
	added("no captures", &nop_call, bare_nop);
	added("echo, 64 + 64 bytes", &echo64_call, bare_echo64);
	added("echo, 32 + 32 bytes", &echo32_call, bare_echo32);
	added("RM_CONTROL, 32 + 32 bytes", &control_call, bare_control);
	added("RM_CONTROL, 32 + 32 and nested 64 + 64 bytes", &nested_call, bare_nested);
	plan_nop(32);
	added("full record, 32 + 32 bytes", &nop_call, bare_nop);
	plan_nop(64);
	added("full record, 64 + 64 bytes", &nop_call, bare_nop);
	bench_report("value", "bytes of that record", reader.last_bytes);
	added("full record: getppid", &getppid_call, bare_getppid);
	added("full record: open and close /dev/null", &null_call, bare_null);
	measure_drain(&reader);
	measure_two(&reader);
	reader_close(&reader);
	read_by(NULL);
	detach();
	measure_live();
	detach();
}

static void measure_kretprobe(void)
{
	struct reader reader;

	module_ioctl("attach", GPUWATCH_IOC_ATTACH, NULL);
	check_hooked(GPUWATCH_METHOD_KRETPROBE);
	added("kretprobe, no consumer", &nop_call, bare_nop);
	reader_open(&reader, NULL);
	read_by(&reader);
	plan_nop(64);
	added("kretprobe, 64 + 64 bytes", &nop_call, bare_nop);
	reader_close(&reader);
	read_by(NULL);
	detach();
}

/* --- one call, for a debugger that watches from outside ------------------- */

/* Stops at gw_bench_point, then steps until the call is back. */
static __attribute__((noinline)) long profiled_ioctl(const struct ioctl_call *c)
{
	long ret;

	__asm__ volatile(".globl gw_bench_point\n"
			 "gw_bench_point: syscall"
			 : "=a"(ret)
			 : "a"((long)SYS_ioctl), "D"(c->fd), "S"(c->cmd), "d"(c->arg)
			 : "rcx", "r11", "memory");
	return ret;
}

static void profile(const char *name)
{
	struct {
		const char *name;
		const struct bench_call *call;
		struct ioctl_call *ioctl;
		const char *parameters;
	} all[] = {
		{ "nop64", &nop_call, &nop, "" },
		{ "echo64", &echo64_call, &echo64, "" },
		{ "control", &control_call, &control32, "" },
		{ "nested", &nested_call, &control_nested, "" },
		{ "kretprobe", &nop_call, &nop, "kretprobe=1" },
	};
	struct reader reader;
	size_t i = 0;

	while (i < sizeof(all) / sizeof(all[0]) && strcmp(all[i].name, name))
		i++;
	if (i == sizeof(all) / sizeof(all[0]))
		bench_die("no case '%s'; there are nop64, echo64, control, nested, kretprobe", name);
	bench_measure(all[i].call);
	profiled_ioctl(all[i].ioctl);
	load("gpuwatch.ko", all[i].parameters);
	reader_open(&reader, NULL);
	if (all[i].ioctl == &nop)
		plan_nop(64);
	read_by(&reader);
	bench_measure(all[i].call);
	profiled_ioctl(all[i].ioctl);
	/* While the hooks are in: ftrace's trampolines have names only so long. */
	if (system("cat /proc/kallsyms >/out/kallsyms"))
		bench_die("can't keep /proc/kallsyms");
}

int main(int argc, char **argv)
{
	int fd;

	if (argc < 2)
		bench_die("usage: gw-bench DIRECTORY-OF-GPUWATCH.KO [CASE-TO-PROFILE]");
	if (chdir(argv[1]))
		bench_die("%s: %s", argv[1], strerror(errno));
	fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		bench_die("/dev/nvidiactl: %s", strerror(errno));
	nop.fd = echo64.fd = echo32.fd = control32.fd = control_nested.fd = fd;
	nested_control.params = (uintptr_t)params;
	nested_control.params_bytes = sizeof(params);
	getppid_call.expected = getppid();
	bench_prepare();
	if (argc > 2) {
		profile(argv[2]);
		return 0;
	}

	measure_bare();
	load("gpuwatch.ko", "");
	measure_unread();
	measure_filters();
	measure_full();
	unload("gpuwatch");
	load("gpuwatch.ko", "kretprobe=1");
	measure_kretprobe();
	unload("gpuwatch");
	peer_fprobe(&nop_call, bare_nop);
	peer_bpf(&nop_call, bare_nop);
	return 0;
}
