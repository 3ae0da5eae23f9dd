// SPDX-License-Identifier: Apache-2.0
// gw-witness: shows what the simulated driver counted, as JSON lines: totals,
// processes, log. It only reads and resets; it compares with nothing.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../simdrv/gwsim.h"

static const char *const kinds[GWSIM_NODE_MAX] = {
	"other", "ctl", "gpu", "uvm", "uvm_tools", "modeset", "caps", "imex", "nvswitch", "nvlink",
};
static const char *const ops[GWSIM_OP_MAX] = { "open", "ioctl", "compat_ioctl", "mmap", "release" };

static void die(const char *what)
{
	fprintf(stderr, "gw-witness: %s: %s\n", what, strerror(errno));
	exit(2);
}

static unsigned long long sum(const struct gwsim_counts *counts, int op)
{
	unsigned long long n = 0;
	int kind;

	for (kind = 0; kind < GWSIM_NODE_MAX; kind++)
		n += counts->n[kind][op];
	return n;
}

static void print_ops(const struct gwsim_counts *counts)
{
	unsigned long long all = 0;
	int op;

	for (op = 0; op < GWSIM_OP_MAX; op++) {
		printf("\"%s\":%llu,", ops[op], sum(counts, op));
		all += sum(counts, op);
	}
	printf("\"calls\":%llu", all);
}

static void print_nodes(const struct gwsim_counts *counts)
{
	const char *comma = "";
	int kind, op;

	printf(",\"nodes\":{");
	for (kind = 0; kind < GWSIM_NODE_MAX; kind++) {
		unsigned long long n = 0;

		for (op = 0; op < GWSIM_OP_MAX; op++)
			n += counts->n[kind][op];
		if (!n)
			continue;
		printf("%s\"%s\":%llu", comma, kinds[kind], n);
		comma = ",";
	}
	printf("}");
}

static void totals(int fd)
{
	struct gwsim_totals t;

	if (ioctl(fd, GWSIM_IOC_TOTALS, &t))
		die("totals");
	printf("{");
	print_ops(&t.counts);
	print_nodes(&t.counts);
	printf(",\"log_used\":%llu,\"log_dropped\":%llu,\"untracked\":%llu,\"mismatches\":%llu}\n",
	       (unsigned long long)t.log_used, (unsigned long long)t.log_dropped,
	       (unsigned long long)t.untracked, (unsigned long long)t.mismatches);
}

/* comm is the process's own choice: only plain characters are printed. */
static void print_comm(const char *comm)
{
	int i;

	for (i = 0; i < 16 && comm[i]; i++)
		putchar(comm[i] >= ' ' && comm[i] <= '~' && !strchr("\"\\", comm[i]) ? comm[i] : '?');
}

static void tasks(int fd)
{
	struct gwsim_tasks req = { 0, 0, 0 };
	struct gwsim_task *list;
	unsigned i, n;

	if (ioctl(fd, GWSIM_IOC_TASKS, &req))
		die("tasks");
	req.room = req.count + 64;
	list = calloc(req.room, sizeof(*list));
	if (!list)
		die("tasks");
	req.tasks = (uintptr_t)list;
	if (ioctl(fd, GWSIM_IOC_TASKS, &req))
		die("tasks");
	n = req.count < req.room ? req.count : req.room;
	for (i = 0; i < n; i++) {
		printf("{\"tgid\":%u,\"start_ns\":%llu,\"cgroup_id\":%llu,\"comm\":\"", list[i].tgid,
		       (unsigned long long)list[i].start_ns, (unsigned long long)list[i].cgroup_id);
		print_comm(list[i].comm);
		printf("\",");
		print_ops(&list[i].counts);
		printf("}\n");
	}
	free(list);
}

static void show_log(int fd)
{
	static struct gwsim_log_entry e[1024];
	struct gwsim_log req = { (uintptr_t)e, 0, 1024, 0 };
	unsigned i;

	for (;;) {
		if (ioctl(fd, GWSIM_IOC_LOG, &req))
			die("log");
		if (!req.count)
			return;
		for (i = 0; i < req.count; i++)
			printf("{\"tgid\":%u,\"tid\":%u,\"cmd\":%u,\"kind\":%u,\"op\":%u,\"xfer\":%u,"
			       "\"ret\":%lld,\"in\":[%u,\"%016llx\"],\"out\":[%u,\"%016llx\"],"
			       "\"nested_in\":[%u,\"%016llx\"],\"nested_out\":[%u,\"%016llx\"]}\n",
			       e[i].tgid, e[i].tid, e[i].cmd, e[i].kind, e[i].op, e[i].xfer,
			       (long long)e[i].ret, e[i].in_len, (unsigned long long)e[i].in_hash,
			       e[i].out_len, (unsigned long long)e[i].out_hash, e[i].nested_in_len,
			       (unsigned long long)e[i].nested_in_hash, e[i].nested_out_len,
			       (unsigned long long)e[i].nested_out_hash);
		req.first += req.count;
	}
}

int main(int argc, char **argv)
{
	int fd, i;

	if (argc < 2) {
		fputs("usage: gw-witness totals|tasks|log|reset...\n", stderr);
		return 2;
	}
	fd = open("/dev/gwsim", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die("/dev/gwsim (is gwsim.ko loaded?)");
	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "totals"))
			totals(fd);
		else if (!strcmp(argv[i], "tasks"))
			tasks(fd);
		else if (!strcmp(argv[i], "log"))
			show_log(fd);
		else if (!strcmp(argv[i], "reset")) {
			if (ioctl(fd, GWSIM_IOC_RESET))
				die("reset");
		} else {
			fprintf(stderr, "gw-witness: unknown command '%s'\n", argv[i]);
			return 2;
		}
	}
	return fflush(stdout) ? 2 : 0;
}
