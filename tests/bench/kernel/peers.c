// SPDX-License-Identifier: Apache-2.0
// See peers.h. Every peer has to prove that it saw the calls.

#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "peers.h"

enum { kLeastRecords = 1000 };

static const char kHooked[] = "nvidia_unlocked_ioctl";

static void skip(const char *name, const char *reason)
{
	printf("skip\t%s\t%s\n", name, reason);
}

/* --- fprobe --------------------------------------------------------------- */

static unsigned long fprobe_records(void)
{
	FILE *file = fopen("/sys/module/peer/parameters/records", "r");
	unsigned long records = 0;

	if (!file || fscanf(file, "%lu", &records) != 1)
		bench_die("peer.ko does not tell its records");
	fclose(file);
	return records;
}

void peer_fprobe(struct bench_call *call, double bare)
{
	static const char name[] = "peer: fprobe in a module, 64 + 64 bytes";
	int fd = open("peer.ko", O_RDONLY | O_CLOEXEC);
	double cost;

	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0)) {
		if (errno != EOPNOTSUPP)
			bench_die("load peer.ko: %s", strerror(errno));
		close(fd);
		skip(name, "the kernel has no CONFIG_FPROBE");
		return;
	}
	close(fd);
	cost = bench_measure(call) - bare;
	if (fprobe_records() < kLeastRecords)
		bench_die("peer.ko saw %lu calls only", fprobe_records());
	bench_report("added", name, cost);
	if (syscall(SYS_delete_module, "peer", O_NONBLOCK))
		bench_die("unload peer.ko: %s", strerror(errno));
}

/* --- BPF ------------------------------------------------------------------ */

/* The verifier's words come as one text of many lines. */
static int complain(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

static unsigned long bpf_records;

static int take_record(void *context, void *data, size_t bytes)
{
	(void)context;
	(void)data;
	(void)bytes;
	bpf_records++;
	return 0;
}

static void drain_bpf(void *ring)
{
	ring_buffer__consume(ring);
}

struct pair {
	const char *enter, *leave;
	const char *unused_map;
	int trampoline;
	int task_storage;
};

/* Newer kernels allocate task storage by a compare and swap of 16 bytes. */
static int cpu_has_cx16(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && c & bit_CMPXCHG16B;
}

static struct bpf_link *attach(struct bpf_object *object, const char *name,
			       const struct pair *pair, int retprobe)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object, name);

	if (pair->trampoline)
		return bpf_program__attach(program);
	return bpf_program__attach_kprobe(program, retprobe, kHooked);
}

static int load_pair(struct bpf_object *object, const struct pair *pair)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, object) {
		const char *name = bpf_program__name(program);

		bpf_program__set_autoload(program, !strcmp(name, pair->enter) ||
						   !strcmp(name, pair->leave));
	}
	bpf_map__set_autocreate(bpf_object__find_map_by_name(object, pair->unused_map), false);
	return bpf_object__load(object);
}

static void measure_attached(const char *name, struct bpf_object *object,
			     int task_storage, struct bench_call *call, double bare)
{
	struct ring_buffer *ring;
	double cost;

	ring = ring_buffer__new(bpf_object__find_map_fd_by_name(object, "ring"), take_record,
				NULL, NULL);
	if (!ring)
		bench_die("BPF ring buffer: %s", strerror(errno));
	bpf_records = 0;
	call->between = drain_bpf;
	call->between_context = ring;
	cost = bench_measure(call) - bare;
	call->between = NULL;
	if (!bpf_records && task_storage && !cpu_has_cx16())
		skip(name, "the kernel has no task storage on a CPU without cmpxchg16b");
	else if (bpf_records < kLeastRecords)
		bench_die("%s: saw %lu calls only", name, bpf_records);
	else
		bench_report("added", name, cost);
	ring_buffer__free(ring);
}

static void measure_pair(const char *name, const struct pair *pair, struct bench_call *call,
			 double bare)
{
	struct bpf_link *enter = NULL, *leave = NULL;
	struct bpf_object *object;

	libbpf_set_print(complain);
	object = bpf_object__open_file("peer.bpf.o", NULL);
	if (!object)
		bench_die("peer.bpf.o: %s", strerror(errno));
	if (load_pair(object, pair))
		bench_die("%s: the kernel refuses the programs", name);
	enter = attach(object, pair->enter, pair, 0);
	leave = attach(object, pair->leave, pair, 1);
	if (!enter || !leave)
		bench_die("%s: attach: %s", name, strerror(errno));
	measure_attached(name, object, pair->task_storage, call, bare);
	bpf_link__destroy(enter);
	bpf_link__destroy(leave);
	bpf_object__close(object);
}

void peer_bpf(struct bench_call *call, double bare)
{
	static const struct {
		const char *name;
		struct pair pair;
	} all[] = {
		{ "peer: BPF fentry + fexit, task storage, 64 + 64 bytes",
		  { "trampoline_enter", "trampoline_leave", "by_id", 1, 1 } },
		{ "peer: BPF fentry + fexit, hash map, 64 + 64 bytes",
		  { "hashed_enter", "hashed_leave", "by_task", 1, 0 } },
		{ "peer: BPF kprobe + kretprobe, 64 + 64 bytes",
		  { "probe_enter", "probe_leave", "by_task", 0, 0 } },
	};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].pair.trampoline && access("/sys/kernel/btf/nvidia", R_OK))
			skip(all[i].name, "the kernel knows no BTF of modules");
		else
			measure_pair(all[i].name, &all[i].pair, call, bare);
}
