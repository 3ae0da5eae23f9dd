// SPDX-License-Identifier: Apache-2.0
// gw-brief N [NODE [MS]]: N processes, one after the other, that open the node,
// make one call and end, MS milliseconds after it if given. Prints how many did
// both; with MS also "lived" and the milliseconds of the longest life. They live
// for a moment only, so that whoever wants to know them must have known them
// inside of the call.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../simdrv/gwsim.h"

static int one_call(const char *node)
{
	unsigned char argument[64] = { 0 };
	int fd = open(node, O_RDWR | O_CLOEXEC);

	return fd >= 0 && ioctl(fd, GWSIM_TRANSFORM(sizeof(argument)), argument) >= 0;
}

/* As cheap as a process can be: it shares this one's memory. */
static pid_t brief(const char *node, long ms)
{
	pid_t pid = vfork();

	if (pid == 0) {
		struct timespec rest = { ms / 1000, ms % 1000 * 1000000 };
		int good = one_call(node);

		if (ms > 0)
			nanosleep(&rest, NULL);
		_exit(good ? 0 : 1);
	}
	return pid;
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	const char *node = argc > 2 ? argv[2] : "/dev/nvidiactl";
	long wanted = argc > 1 ? strtol(argv[1], NULL, 10) : 0, good = 0, longest = 0, i;
	long ms = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
	int status;

	if (wanted <= 0) {
		fputs("usage: gw-brief N [NODE [MS]]\n", stderr);
		return 2;
	}
	for (i = 0; i < wanted; i++) {
		long begin = now_ms(), life;
		pid_t pid = brief(node, ms);

		if (pid < 0 || waitpid(pid, &status, 0) != pid) {
			perror("gw-brief");
			return 2;
		}
		good += status == 0;
		life = now_ms() - begin;
		longest = life > longest ? life : longest;
	}
	printf("%ld\n", good);
	if (ms > 0)
		printf("lived %ld\n", longest);
	return good == wanted ? 0 : 1;
}
