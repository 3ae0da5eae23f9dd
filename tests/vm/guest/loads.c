// SPDX-License-Identifier: Apache-2.0
/*
 * gw-loads: loads GPU modules as programs do, through the libcuda it is linked
 * to or one it opens, and says in a log what it handed over. Each image is
 * overwritten as soon as the call is back. It knows nothing of who watches.
 * --image FILE: just that one, by cuModuleLoadData, as a program does at its start.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loads.h"

#define IMAGES "/lab/images/"
enum { FATBIN = 1, ELF, TEXT, PATH, CALL };	/* as the records name them */
enum shape { PLAIN, WRAPPED, LINKED };
enum place { IN_FILE, IN_MEMFD, IN_HEAP };

struct wrapper {
	uint32_t magic, version;
	const void *container;
	const void *more;
};

static const struct image {
	const char *name;
	int kind;
	enum shape shape;
} images[] = {
	{ "d_90a.fatbin", FATBIN, PLAIN }, { "fb13speed.fatbin", FATBIN, WRAPPED },
	{ "d_90a.fatbin", FATBIN, LINKED }, { "abi_13_80.cubin", ELF, PLAIN },
	{ "abi_12_90a.cubin", ELF, PLAIN }, { "add.ptx", TEXT, PLAIN },
};

/* How a loader takes its image. */
static const struct loader {
	const char *name;
	enum { ONE, SIZED, BY_PATH, LINK_PATH, COMPLETE } how;
} loaders[] = {
	{ "cuModuleLoadData", ONE }, { "cuModuleLoadDataEx", ONE }, { "cuModuleLoadFatBinary", ONE },
	{ "cuLibraryLoadData", ONE }, { "cuLinkAddData_v2", SIZED }, { "cuModuleLoad", BY_PATH },
	{ "cuLibraryLoadFromFile", BY_PATH }, { "cuLinkAddFile_v2", LINK_PATH },
	{ "cuLinkComplete", COMPLETE },
};

static int log_fd = -1;
static void *library;
static unsigned int rounds = 1, made_count, pause_us;
static uint64_t made_bytes;
static const char *only;	/* the one image to load */

static void die(const char *what)
{
	fprintf(stderr, "gw-loads: %s: %s\n", what, errno ? strerror(errno) : dlerror());
	_exit(3);
}

typedef int (*loader_fn)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static loader_fn find(const char *name)
{
	loader_fn fn = (loader_fn)dlsym(library ? library : RTLD_DEFAULT, name);

	if (!fn) {
		errno = 0;
		die(name);
	}
	return fn;
}

static void call(const struct loader *loader, const void *image, size_t bytes)
{
	static const uintptr_t junk = 0x6a756e6b;
	loader_fn fn = find(loader->name);
	uintptr_t a = (uintptr_t)image;

	switch (loader->how) {
	case ONE:
	case BY_PATH:
		fn(junk, a, junk, junk, junk, junk);
		break;
	case SIZED:
		fn(junk, 1, a, bytes, junk, junk);
		break;
	case LINK_PATH:
		fn(junk, 1, a, junk, junk, junk);
		break;
	case COMPLETE:
		fn(a, junk, junk, junk, junk, junk);
		break;
	}
}

static void note(const struct loader *loader, const char *file, int kind, unsigned int parts,
		 const void *address, uint64_t made, uint64_t seed)
{
	struct loads_entry entry = { .kind = kind, .parts = parts, .made_bytes = made, .seed = seed,
				     .address = (uintptr_t)address };

	prctl(PR_GET_NAME, entry.comm);
	snprintf(entry.symbol, sizeof(entry.symbol), "%s", loader->name);
	snprintf(entry.file, sizeof(entry.file), "%s", file);
	if (log_fd >= 0 && write(log_fd, &entry, sizeof(entry)) != sizeof(entry))
		die("log");
}

/* Bytes of @path, which may be overwritten, followed by a NUL. */
static uint8_t *place(const char *path, enum place where, size_t *bytes, size_t *mapped)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), mem = -1;
	struct stat st;
	uint8_t *at;

	if (fd < 0 || fstat(fd, &st))
		die(path);
	*bytes = st.st_size;
	*mapped = *bytes + 1;
	if (where == IN_HEAP) {
		at = malloc(*mapped);
		if (!at || read(fd, at, *bytes) != (ssize_t)*bytes)
			die(path);
		at[*bytes] = '\0';
		close(fd);
		return at;
	}
	if (where == IN_MEMFD) {
		uint8_t *copy = malloc(*bytes);

		mem = memfd_create("module", MFD_CLOEXEC);
		if (mem < 0 || !copy || read(fd, copy, *bytes) != (ssize_t)*bytes ||
		    write(mem, copy, *bytes) != (ssize_t)*bytes || ftruncate(mem, *mapped))
			die("memfd");
		free(copy);
	}
	/* What is behind the end of the file reads as zero. */
	at = mmap(NULL, *mapped, PROT_READ | PROT_WRITE, mem < 0 ? MAP_PRIVATE : MAP_SHARED,
		  mem < 0 ? fd : mem, 0);
	if (at == MAP_FAILED)
		die(path);
	close(fd);
	if (mem >= 0)
		close(mem);
	return at;
}

static void load_one(const struct loader *loader, const struct image *image, enum place where)
{
	char path[128];
	size_t bytes, mapped;
	uint8_t *at;
	const void *list[3];
	struct wrapper wrapper = { 0x466243b1, 1, NULL, NULL };
	bool wrapped = image->shape != PLAIN && loader->how == ONE;

	snprintf(path, sizeof(path), IMAGES "%s", image->name);
	at = place(path, where, &bytes, &mapped);
	wrapper.container = at;
	if (image->shape == LINKED) {
		list[0] = list[1] = at;
		list[2] = NULL;
		wrapper.version = 2;
		wrapper.more = list;
	}
	note(loader, path, image->kind, wrapped && image->shape == LINKED ? 3 : 1,
	     wrapped ? (void *)&wrapper : at, 0, 0);
	call(loader, wrapped ? (void *)&wrapper : at, bytes);
	memset(at, 0xaa, bytes);
	memset(&wrapper, 0xaa, sizeof(wrapper));
	if (where == IN_HEAP)
		free(at);
	else
		munmap(at, mapped);
}

static void load_all(void)
{
	unsigned int i, j, where;
	char path[64];

	for (i = 0; i < sizeof(loaders) / sizeof(loaders[0]); i++) {
		const struct loader *loader = &loaders[i];

		if (loader->how == COMPLETE) {
			note(loader, "", CALL, 0, loader, 0, 0);
			call(loader, loader, 0);
		} else if (loader->how == BY_PATH || loader->how == LINK_PATH) {
			snprintf(path, sizeof(path), IMAGES "no such \n%u.cubin", i);
			note(loader, path, PATH, 1, path, 0, 0);
			call(loader, path, 0);
			memset(path, 'x', sizeof(path));
		} else {
			for (j = 0; j < sizeof(images) / sizeof(images[0]); j++)
				for (where = IN_FILE; where <= IN_HEAP; where++)
					load_one(loader, &images[j], where);
		}
	}
}

/* The mapping stays: who looks at it later still finds the file's name. */
static void load_only(void)
{
	size_t bytes, mapped;
	uint8_t *at = place(only, IN_FILE, &bytes, &mapped);
	int kind = TEXT;

	if (bytes >= 4 && !memcmp(at, "\x7f" "ELF", 4))
		kind = ELF;
	else if (bytes >= 4 && !memcmp(at, "\x50\xed\x55\xba", 4))
		kind = FATBIN;
	note(&loaders[0], only, kind, 1, at, 0, 0);
	call(&loaders[0], at, bytes);
	memset(at, 0xaa, bytes);
}

static void load_made(uint64_t seed)
{
	uint8_t *at = mmap(NULL, made_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int i;

	if (at == MAP_FAILED)
		die("mmap");
	for (i = 0; i < made_count; i++) {
		loads_make(at, made_bytes, seed + i);
		note(&loaders[3], "", FATBIN, 1, at, made_bytes, seed + i);
		call(&loaders[3], at, 0);
		if (pause_us && i % 4 == 3)
			usleep(pause_us);
	}
	munmap(at, made_bytes);
}

static void *work(void *name)
{
	unsigned int i;

	prctl(PR_SET_NAME, name);
	for (i = 0; i < rounds; i++) {
		if (only)
			load_only();
		else if (made_count)
			load_made((uintptr_t)name % 1009 + i * 100003ULL);
		else
			load_all();
	}
	return NULL;
}

/* Waits until somebody has put a breakpoint on a loader. */
static void wait_for_probe(void)
{
	const volatile uint8_t *code = (const uint8_t *)(uintptr_t)find("cuLinkComplete");
	struct timespec pause = { .tv_nsec = 5000000 };
	unsigned int tries;

	for (tries = 0; tries < 6000 && *code != 0xcc; tries++)
		nanosleep(&pause, NULL);
	if (*code != 0xcc) {
		errno = ETIMEDOUT;
		die("nobody watches");
	}
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{ "name", 1, 0, 'n' }, { "log", 1, 0, 'l' }, { "lib", 1, 0, 'L' },
		{ "threads", 1, 0, 't' }, { "forks", 1, 0, 'f' }, { "rounds", 1, 0, 'r' },
		{ "made", 1, 0, 'm' }, { "count", 1, 0, 'c' }, { "open", 1, 0, 'o' },
		{ "wait-for-probe", 0, 0, 'w' }, { "pause", 1, 0, 'p' },
		{ "stay", 0, 0, 's' }, { "image", 1, 0, 'i' }, { 0, 0, 0, 0 },
	};
	const char *name = "loads", *lib = NULL, *node = NULL;
	unsigned int threads = 1, forks = 0, i;
	static char labels[64][16];
	char byte;
	pthread_t ids[64];
	bool wait = false, stay = false;
	int c, status, bad = 0;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case 'n': name = optarg; break;
		case 'l':
			log_fd = open(optarg, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
			if (log_fd < 0)
				die(optarg);
			break;
		case 'L': lib = optarg; break;
		case 't': threads = atoi(optarg); break;
		case 'f': forks = atoi(optarg); break;
		case 'r': rounds = atoi(optarg); break;
		case 'm': made_bytes = strtoull(optarg, NULL, 10); break;
		case 'c': made_count = atoi(optarg); break;
		case 'o': node = optarg; break;
		case 'p': pause_us = atoi(optarg); break;
		case 'w': wait = true; break;
		case 's': stay = true; break;
		case 'i': only = optarg; break;
		default: return 2;
		}
	}
	if (threads > 64 || forks > 64)
		return 2;
	if (lib) {
		library = dlopen(lib, RTLD_NOW | RTLD_LOCAL);
		if (!library) {
			errno = 0;
			die(lib);
		}
	}
	if (node && open(node, O_RDWR | O_CLOEXEC) < 0)
		die(node);
	if (wait)
		wait_for_probe();
	for (i = 0; i < forks; i++) {
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			snprintf(labels[0], sizeof(labels[0]), "%.10s.f%u", name, i);
			work(labels[0]);
			_exit(0);
		}
	}
	for (i = 0; i < threads; i++) {
		snprintf(labels[i], sizeof(labels[i]), "%.10s.%u", name, i);
		if (pthread_create(&ids[i], NULL, work, labels[i]))
			die("pthread_create");
	}
	for (i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	while (forks && waitpid(-1, &status, 0) > 0)
		bad |= status;
	/* Until standard input ends. */
	while (stay && read(STDIN_FILENO, &byte, 1) > 0)
		;
	return bad ? 1 : 0;
}
