// SPDX-License-Identifier: Apache-2.0
// gw-storm: load generator for the kernel tests. Processes and threads issue
// calls whose bytes tell who made them and in which order (storm.h), along with
// the disturbances asked for; the counts of what was issued go to stdout as JSON.
// It checks what the driver hands back, and judges no observer.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../simdrv/gwsim.h"
#include "storm.h"

enum { kThreadsMax = 256, kNodesMax = 8 };

struct options {
	const char *nodes[kNodesMax];
	unsigned nr_nodes;
	unsigned procs, threads;
	unsigned long calls;
	unsigned bytes;
	unsigned long long seed;
	unsigned open_every, mmap_every, fork_every, nested_every;
	unsigned bad_pointers, lengths, unknown;
	unsigned blockers, block_ms;
};

static struct options opt = {
	.procs = 1, .threads = 1, .calls = 1000, .bytes = 64, .seed = 1, .block_ms = 1000,
};

/* Lives in shared memory: all processes add to it. */
struct shared {
	unsigned long long opens, ioctls, mmaps, releases, forks;
	unsigned long long transforms, nested, refused, wrong;
	int go;
};

static struct shared *shared;

static void add(unsigned long long *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static void wrong(const char *what, long ret)
{
	if (__atomic_fetch_add(&shared->wrong, 1, __ATOMIC_RELAXED) < 10)
		fprintf(stderr, "gw-storm: %s: returned %ld, errno %d (%s)\n", what, ret, errno,
			strerror(errno));
}

static int open_node(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		fprintf(stderr, "gw-storm: open %s: %s\n", path, strerror(errno));
		exit(2);
	}
	add(&shared->opens);
	return fd;
}

static void close_node(int fd)
{
	close(fd);
	add(&shared->releases);
}

static long call(int fd, unsigned cmd, void *arg)
{
	add(&shared->ioctls);
	return ioctl(fd, cmd, arg);
}

/* One call with its own bytes, whose answer is known. */
static void transform(int fd, unsigned proc, unsigned thread, unsigned long seq)
{
	uint8_t arg[GWSIM_COPY_MAX], want[GWSIM_COPY_MAX];
	long ret;

	storm_fill(arg, opt.bytes, opt.seed, proc, thread, seq);
	memcpy(want, arg, opt.bytes);
	gwsim_transform(want, opt.bytes);
	ret = call(fd, GWSIM_TRANSFORM(opt.bytes), arg);
	if (ret || memcmp(arg, want, opt.bytes))
		wrong("transform", ret);
	add(&shared->transforms);
}

/* The two calls that carry a pointer, plain or wrapped: RM_CONTROL's layout. */
struct control {
	uint32_t client, object, cmd, flags;
	uint64_t params;
	uint32_t params_bytes, status;
};

struct xfer {
	uint32_t cmd, size;
	uint64_t ptr;
};

#define RM_CONTROL	_IOWR('F', 0x2a, struct control)
#define XFER		_IOWR('F', 211, struct xfer)

static uint64_t address(void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static void nested(int fd, unsigned proc, unsigned thread, unsigned long seq, int wrapped)
{
	uint8_t params[96], want[96];
	struct control c = { 1, 2, 0x20800101, 0, address(params), sizeof(params), 0xff };
	struct xfer x = { 0x2a, sizeof(c), address(&c) };
	long ret;

	storm_fill(params, sizeof(params), opt.seed, proc, thread, seq);
	memcpy(want, params, sizeof(want));
	gwsim_transform(want, sizeof(want));
	ret = wrapped ? call(fd, XFER, &x) : call(fd, RM_CONTROL, &c);
	if (ret || c.status || memcmp(params, want, sizeof(want)))
		wrong(wrapped ? "wrapped control" : "control", ret);
	add(&shared->nested);
}

static void refused(const char *what, long ret, int want)
{
	if (ret != -1 || errno != want)
		wrong(what, ret);
	add(&shared->refused);
}

static void bad_pointers(int fd)
{
	void *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct control c = { 1, 2, 3, 0, 8, 64, 0xff };
	struct xfer x = { 0x2a, sizeof(c), 16 };

	refused("null argument", call(fd, GWSIM_TRANSFORM(64), NULL), EFAULT);
	refused("argument in a hole", call(fd, GWSIM_TRANSFORM(64), hole), EFAULT);
	refused("argument at the end of memory", call(fd, GWSIM_TRANSFORM(64), (void *)-32L), EFAULT);
	refused("nested pointer to nowhere", call(fd, RM_CONTROL, &c), EFAULT);
	c.params = address(hole);
	refused("nested pointer in a hole", call(fd, RM_CONTROL, &c), EFAULT);
	refused("wrapper to nowhere", call(fd, XFER, &x), EFAULT);
	munmap(hole, 4096);
}

/* Lengths that lie: nothing, and all that 32 bits can say. */
static void lengths(int fd)
{
	uint8_t params[64] = { 0 };
	struct control c = { 1, 2, 3, 0, address(params), 0, 0xff };
	struct xfer x = { 0x2a, 0, address(&c) };

	if (call(fd, RM_CONTROL, &c) || c.status)
		wrong("control of 0 bytes", 0);
	c.params_bytes = 0xffffffff;
	if (call(fd, RM_CONTROL, &c) || !c.status)
		wrong("control of 4 GiB", 0);
	refused("wrapper of 0 bytes", call(fd, XFER, &x), EINVAL);
	x.size = 0xffffffff;
	refused("wrapper of 4 GiB", call(fd, XFER, &x), EINVAL);
	x.size = sizeof(c);
	x.ptr = 0;
	refused("wrapper of nothing", call(fd, XFER, &x), EINVAL);
}

static void unknown(int fd, unsigned i)
{
	uint8_t arg[64] = { 0 };

	refused("unknown escape", call(fd, _IOC(3, 'F', 0x90 + i % 32, 64), arg), EINVAL);
	refused("unknown word", call(fd, 0x12345600 + i % 256, arg), EINVAL);
}

static void map_and_unmap(int fd)
{
	volatile unsigned char *p = mmap(NULL, 65536, PROT_READ, MAP_SHARED, fd, 0);

	add(&shared->mmaps);
	if (p == MAP_FAILED) {
		wrong("mmap", -1);
		return;
	}
	if (p[4096])
		wrong("mapped page", p[4096]);
	munmap((void *)p, 65536);
}

static void short_lived(const char *path, unsigned proc, unsigned thread, unsigned long seq)
{
	pid_t pid = fork();
	int fd;

	if (pid < 0) {
		wrong("fork", pid);
		return;
	}
	if (pid == 0) {
		fd = open_node(path);
		/* Above every thread number of the storm, so order stays per thread. */
		transform(fd, proc, kThreadsMax + thread, seq);
		close_node(fd);
		_exit(0);
	}
	add(&shared->forks);
	waitpid(pid, NULL, 0);
}

struct thread {
	pthread_t id;
	unsigned proc, thread;
};

static int due(unsigned every, unsigned long i)
{
	return every && i % every == every - 1;
}

static void *run_thread(void *p)
{
	const struct thread *t = p;
	const char *path = opt.nodes[(t->proc * opt.threads + t->thread) % opt.nr_nodes];
	int fd = open_node(path);
	unsigned long i;

	while (!__atomic_load_n(&shared->go, __ATOMIC_ACQUIRE))
		usleep(1000);
	for (i = 0; i < opt.calls; i++) {
		transform(fd, t->proc, t->thread, i);
		if (due(opt.nested_every, i))
			nested(fd, t->proc, t->thread, i, i % 2);
		if (due(opt.open_every, i)) {
			close_node(fd);
			fd = open_node(path);
		}
		if (due(opt.mmap_every, i))
			map_and_unmap(fd);
		if (due(opt.fork_every, i))
			short_lived(path, t->proc, t->thread, i);
		if (i < opt.bad_pointers)
			bad_pointers(fd);
		if (i < opt.lengths)
			lengths(fd);
		if (i < opt.unknown)
			unknown(fd, (unsigned)i);
	}
	close_node(fd);
	return NULL;
}

static void *run_blocker(void *p)
{
	struct gwsim_block b = { opt.block_ms, 1 };
	int fd = open_node(opt.nodes[0]);
	long ret = call(fd, GWSIM_BLOCK, &b);

	(void)p;
	if (ret)
		wrong("block", ret);
	close_node(fd);
	return NULL;
}

static void run_process(unsigned proc)
{
	struct thread threads[kThreadsMax];
	pthread_t blockers[kThreadsMax];
	unsigned i;

	for (i = 0; proc == 0 && i < opt.blockers; i++)
		if (pthread_create(&blockers[i], NULL, run_blocker, NULL))
			exit(2);
	for (i = 0; i < opt.threads; i++) {
		threads[i].proc = proc;
		threads[i].thread = i;
		if (pthread_create(&threads[i].id, NULL, run_thread, &threads[i]))
			exit(2);
	}
	for (i = 0; i < opt.threads; i++)
		pthread_join(threads[i].id, NULL);
	for (i = 0; proc == 0 && i < opt.blockers; i++)
		pthread_join(blockers[i], NULL);
}

static void usage(FILE *to)
{
	fputs("usage: gw-storm [options]\n"
	      "  --node PATH        may be given several times; default /dev/nvidiactl\n"
	      "  --procs N --threads N --calls N   calls per thread\n"
	      "  --bytes N          of an argument, 32 to 8192\n"
	      "  --seed N           of the argument bytes\n"
	      "  --nested-every N   RM_CONTROL with parameters, every other one wrapped\n"
	      "  --open-every N --mmap-every N --fork-every N   churn, in calls\n"
	      "  --bad-pointers N --lengths N --unknown N       rounds per thread\n"
	      "  --blockers N --block-ms N          calls that sleep in the driver\n", to);
}

static unsigned long number(const char *text, unsigned long max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 0);

	if (*end || !*text || n > max) {
		fprintf(stderr, "gw-storm: '%s' is no number from 0 to %lu\n", text, max);
		exit(2);
	}
	return n;
}

enum {
	O_NODE = 1, O_PROCS, O_THREADS, O_CALLS, O_BYTES, O_SEED, O_NESTED, O_OPEN, O_MMAP,
	O_FORK, O_BAD, O_LENGTHS, O_UNKNOWN, O_BLOCKERS, O_BLOCK_MS, O_HELP,
};

static void parse(int argc, char **argv)
{
	static const struct option names[] = {
		{ "node", 1, 0, O_NODE }, { "procs", 1, 0, O_PROCS },
		{ "threads", 1, 0, O_THREADS }, { "calls", 1, 0, O_CALLS },
		{ "bytes", 1, 0, O_BYTES }, { "seed", 1, 0, O_SEED },
		{ "nested-every", 1, 0, O_NESTED }, { "open-every", 1, 0, O_OPEN },
		{ "mmap-every", 1, 0, O_MMAP }, { "fork-every", 1, 0, O_FORK },
		{ "bad-pointers", 1, 0, O_BAD }, { "lengths", 1, 0, O_LENGTHS },
		{ "unknown", 1, 0, O_UNKNOWN }, { "blockers", 1, 0, O_BLOCKERS },
		{ "block-ms", 1, 0, O_BLOCK_MS }, { "help", 0, 0, O_HELP }, { 0, 0, 0, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case O_NODE:
			if (opt.nr_nodes < kNodesMax)
				opt.nodes[opt.nr_nodes++] = optarg;
			break;
		case O_PROCS: opt.procs = number(optarg, 1024); break;
		case O_THREADS: opt.threads = number(optarg, kThreadsMax); break;
		case O_CALLS: opt.calls = number(optarg, 100000000); break;
		case O_BYTES: opt.bytes = number(optarg, GWSIM_COPY_MAX); break;
		case O_SEED: opt.seed = number(optarg, -1UL); break;
		case O_NESTED: opt.nested_every = number(optarg, 1000000); break;
		case O_OPEN: opt.open_every = number(optarg, 1000000); break;
		case O_MMAP: opt.mmap_every = number(optarg, 1000000); break;
		case O_FORK: opt.fork_every = number(optarg, 1000000); break;
		case O_BAD: opt.bad_pointers = number(optarg, 1000000); break;
		case O_LENGTHS: opt.lengths = number(optarg, 1000000); break;
		case O_UNKNOWN: opt.unknown = number(optarg, 1000000); break;
		case O_BLOCKERS: opt.blockers = number(optarg, kThreadsMax); break;
		case O_BLOCK_MS: opt.block_ms = number(optarg, 120000); break;
		case O_HELP:
			usage(stdout);
			exit(0);
		default:
			usage(stderr);
			exit(2);
		}
	}
	if (opt.bytes < STORM_ARG_MIN || optind != argc) {
		usage(stderr);
		exit(2);
	}
	if (!opt.nr_nodes)
		opt.nodes[opt.nr_nodes++] = "/dev/nvidiactl";
}

int main(int argc, char **argv)
{
	int failed = 0, status;
	unsigned i;

	parse(argc, argv);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 2;
	for (i = 0; i < opt.procs; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("gw-storm: fork");
			return 2;
		}
		if (pid == 0) {
			run_process(i);
			_exit(0);
		}
	}
	__atomic_store_n(&shared->go, 1, __ATOMIC_RELEASE);
	while (wait(&status) > 0)
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			failed = 1;
	printf("{\"opens\":%llu,\"ioctls\":%llu,\"compat\":%s,\"mmaps\":%llu,\"releases\":%llu,"
	       "\"forks\":%llu,\"transforms\":%llu,\"nested\":%llu,\"refused\":%llu,"
	       "\"seed\":%llu,\"bytes\":%u,\"procs\":%u,\"threads\":%u,\"calls\":%lu,\"wrong\":%llu}\n",
	       shared->opens, shared->ioctls, sizeof(void *) == 4 ? "true" : "false", shared->mmaps,
	       shared->releases, shared->forks, shared->transforms, shared->nested, shared->refused,
	       opt.seed, opt.bytes, opt.procs, opt.threads, opt.calls, shared->wrong);
	return failed ? 2 : shared->wrong ? 1 : 0;
}
