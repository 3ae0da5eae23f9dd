// SPDX-License-Identifier: Apache-2.0
/*
 * gw-channel [--map FILE] [--heap FILE] [-- PROGRAM [ARG...]]: a process that
 * has a channel on GPU 0, as far as its driver calls tell, and GPU code at hand
 * in a mapped file or in its heap, without handing any to libcuda. Prints
 * "ready" and stays until its standard input ends, or becomes PROGRAM.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* NVOS64_PARAMETERS: a call of RM_ALLOC, in the layout of driver 535 and later. */
struct rm_alloc {
	uint32_t root, parent, object, class;
	uint64_t params, rights;
	uint32_t params_bytes, flags, status, pad;
};
#define RM_ALLOC _IOWR('F', 0x2b, struct rm_alloc)
enum { CLIENT = 0x41, DEVICE = 0x80, CHANNEL = 0xc86f };

static void die(const char *what)
{
	fprintf(stderr, "gw-channel: %s: %s\n", what, strerror(errno));
	exit(3);
}

static void make(int fd, uint32_t parent, uint32_t object, uint32_t class)
{
	struct rm_alloc call = { .root = 0xc1d00001, .parent = parent, .object = object, .class = class };

	if (ioctl(fd, RM_ALLOC, &call) < 0 || call.status)
		die("RM_ALLOC");
}

/* The bytes of @path, mapped or in the heap, for as long as the process lives. */
static void hold(const char *path, int in_heap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *at;

	if (fd < 0 || fstat(fd, &st))
		die(path);
	at = in_heap ? malloc(st.st_size) : mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (!at || at == MAP_FAILED || (in_heap && read(fd, at, st.st_size) != st.st_size))
		die(path);
	close(fd);
}

int main(int argc, char **argv)
{
	int control, node, i;
	char byte;

	/* Kept over exec: the descriptors are the channel's life. */
	control = open("/dev/nvidiactl", O_RDWR);
	node = open("/dev/nvidia0", O_RDWR);
	if (control < 0 || node < 0)
		die("/dev/nvidia*");
	make(control, 0, 0xc1d00001, CLIENT);
	make(control, 0xc1d00001, 0xc1d00002, DEVICE);
	make(control, 0xc1d00002, 0xc1d00003, CHANNEL);
	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--") && argv[i + 1]) {
			execvp(argv[i + 1], argv + i + 1);
			die(argv[i + 1]);
		} else if (i + 1 < argc && (!strcmp(argv[i], "--map") || !strcmp(argv[i], "--heap"))) {
			hold(argv[i + 1], argv[i][2] == 'h');
			i++;
		} else {
			fputs("usage: gw-channel [--map FILE] [--heap FILE] [-- PROGRAM [ARG...]]\n", stderr);
			return 2;
		}
	}
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
