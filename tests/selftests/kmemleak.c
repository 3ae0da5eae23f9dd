// SPDX-License-Identifier: Apache-2.0
/*
 * kmemleak - what all tests before left behind on a debug kernel: nothing. Runs
 * last, with the module loaded, so that its name is in the back traces, and once
 * more when it is gone.
 */
#include <kselftest_harness.h>
#include <errno.h>
#include <fcntl.h>

#include "lib/lab.h"

#define KMEMLEAK "/sys/kernel/debug/kmemleak"

/* Number of unreferenced objects after two scans; prints them. */
static int leaks(void)
{
	static char text[1 << 20];
	int fd, found = 0;
	ssize_t n = 0, got;
	char *p;

	/* Reported is what two scans find, and what is older than 5 seconds. */
	if (lab_write(KMEMLEAK, "scan"))
		return -1;
	sleep(6);
	if (lab_write(KMEMLEAK, "scan"))
		return -1;
	fd = open(KMEMLEAK, O_RDONLY);
	if (fd < 0)
		return -errno;
	while ((got = read(fd, text + n, sizeof(text) - 1 - n)) > 0)
		n += got;
	close(fd);
	text[n] = '\0';
	for (p = text; (p = strstr(p, "unreferenced object")); p++)
		found++;
	if (found)
		printf("%.6000s\n", text);
	return found;
}

FIXTURE(kmemleak) {
};

FIXTURE_SETUP(kmemleak)
{
	/* It switches itself off when it fails to get memory of its own. */
	ASSERT_EQ(0, lab_write(KMEMLEAK, "scan=off"));
}

FIXTURE_TEARDOWN(kmemleak)
{
}

TEST_F_TIMEOUT(kmemleak, loaded, 600)
{
	lab_fresh(false, "");
	EXPECT_EQ(0, leaks());
	lab_write(KMEMLEAK, "clear");
}

TEST_F_TIMEOUT(kmemleak, unloaded, 600)
{
	lab_gpuwatch_unload();
	EXPECT_EQ(0, leaks());
}

TEST_HARNESS_MAIN
