// SPDX-License-Identifier: Apache-2.0
// gw-brief N [NODE]: N processes, one after the other, that open the node, make
// one call and end. Prints how many did both. They live for a moment only, so
// that whoever wants to know them must have known them inside of the call.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../simdrv/gwsim.h"

static int one_call(const char *node)
{
	unsigned char argument[64] = { 0 };
	int fd = open(node, O_RDWR | O_CLOEXEC);

	return fd >= 0 && ioctl(fd, GWSIM_TRANSFORM(sizeof(argument)), argument) >= 0;
}

/* As cheap as a process can be: it shares this one's memory. */
static pid_t brief(const char *node)
{
	pid_t pid = vfork();

	if (pid == 0)
		_exit(one_call(node) ? 0 : 1);
	return pid;
}

int main(int argc, char **argv)
{
	const char *node = argc > 2 ? argv[2] : "/dev/nvidiactl";
	long wanted = argc > 1 ? strtol(argv[1], NULL, 10) : 0, good = 0, i;
	int status;

	if (wanted <= 0) {
		fputs("usage: gw-brief N [NODE]\n", stderr);
		return 2;
	}
	for (i = 0; i < wanted; i++) {
		pid_t pid = brief(node);

		if (pid < 0 || waitpid(pid, &status, 0) != pid) {
			perror("gw-brief");
			return 2;
		}
		good += status == 0;
	}
	printf("%ld\n", good);
	return good == wanted ? 0 : 1;
}
