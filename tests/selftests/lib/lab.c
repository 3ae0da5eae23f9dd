// SPDX-License-Identifier: Apache-2.0
/*
 * lab.c - modules and nodes, see lab.h. Trouble with what is not under test
 * ends the program, so that no test passes without its ground.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lab.h"

static void give_up(const char *what, const char *about)
{
	printf("# lab: %s %s: %s\n", what, about, strerror(errno));
	fflush(stdout);
	abort();
}

/* Tests end by _exit(): what they say must not stay in a buffer. */
__attribute__((constructor)) static void unbuffered(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
}

int lab_load(const char *file, const char *params)
{
	char path[256];
	int fd, err = 0;

	snprintf(path, sizeof(path), LAB_DIR "/%s", file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (syscall(SYS_finit_module, fd, params, 0))
		err = -errno;
	close(fd);
	return err;
}

int lab_unload(const char *module)
{
	return syscall(SYS_delete_module, module, O_NONBLOCK) ? -errno : 0;
}

bool lab_loaded(const char *module)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/module/%s", module);
	return access(path, F_OK) == 0;
}

int lab_refcount(const char *module)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/module/%s/refcnt", module);
	return lab_read_number(path);
}

const char *lab_param(const char *module, const char *name)
{
	static char text[64];
	char path[128];
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", module, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return text;
}

/* Unloads, waiting for the last user to go: a file is closed some time after
 * its process was waited for, and hooks go out in the background. */
static void unload_soon(const char *module)
{
	unsigned int tries;
	int err = 0;

	for (tries = 0; tries < 3000 && lab_loaded(module); tries++) {
		err = lab_unload(module);
		if (!err)
			return;
		usleep(10000);
	}
	if (lab_loaded(module)) {
		errno = -err;
		give_up("cannot unload", module);
	}
}

static void load_or_die(const char *file, const char *params)
{
	int err = lab_load(file, params);

	if (err) {
		errno = -err;
		give_up("cannot load", file);
	}
}

void lab_driver_load(const char *params)
{
	if (!lab_loaded("gwsim"))
		load_or_die("sim/gwsim.ko", lab_debug_kernel() ? "witness=2 log_entries=40000"
							       : "witness=2 log_entries=150000");
	load_or_die("sim/nvidia.ko", params);
	load_or_die("sim/nvidia-uvm.ko", "");
	load_or_die("sim/nvidia-modeset.ko", "");
	lab_nodes();
}

void lab_driver_unload(void)
{
	unload_soon("nvidia_modeset");
	unload_soon("nvidia_uvm");
	unload_soon("nvidia");
}

static unsigned int major_of(const char *devices, const char *name)
{
	char line[128], found[64];
	unsigned int major;
	const char *p;

	for (p = devices; p && *p && strncmp(p, "Block", 5); p = strchr(p, '\n')) {
		p += *p == '\n';
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(p, "\n"), p);
		if (sscanf(line, "%u %63s", &major, found) == 2 && !strcmp(found, name))
			return major;
	}
	return 0;
}

static void make_node(const char *path, unsigned int major, unsigned int minor)
{
	struct stat st;

	if (!major)
		return;
	if (!stat(path, &st) && S_ISCHR(st.st_mode) && st.st_rdev == makedev(major, minor))
		return;
	unlink(path);
	if (mknod(path, S_IFCHR | 0666, makedev(major, minor)) || chmod(path, 0666))
		give_up("mknod", path);
}

void lab_nodes(void)
{
	static char devices[8192];
	unsigned int major, i;
	char path[64];
	int fd = open("/proc/devices", O_RDONLY | O_CLOEXEC);
	ssize_t n = 0, got;

	while (fd >= 0 && (got = read(fd, devices + n, sizeof(devices) - 1 - n)) > 0)
		n += got;
	devices[n] = '\0';
	close(fd);

	major = major_of(devices, "nvidia-frontend");
	if (!major)
		major = major_of(devices, "nvidia");
	if (!major)
		give_up("no nvidia in", "/proc/devices");
	for (i = 0; i < 8; i++) {
		snprintf(path, sizeof(path), "/dev/nvidia%u", i);
		make_node(path, major, i);
	}
	make_node("/dev/nvidiactl", major, 255);
	make_node("/dev/nvidia-modeset", major, 254);
	major = major_of(devices, "nvidia-uvm");
	make_node("/dev/nvidia-uvm", major, 0);
	make_node("/dev/nvidia-uvm-tools", major, 1);
	mkdir("/dev/nvidia-caps", 0755);
	mkdir("/dev/nvidia-caps-imex-channels", 0755);
	make_node("/dev/nvidia-caps/nvidia-cap1", major_of(devices, "nvidia-caps"), 1);
	make_node("/dev/nvidia-caps-imex-channels/channel0",
		  major_of(devices, "nvidia-caps-imex-channels"), 0);
	major = major_of(devices, "nvidia-nvswitch");
	make_node("/dev/nvidia-nvswitch0", major, 0);
	make_node("/dev/nvidia-nvswitchctl", major, 255);
	make_node("/dev/nvidia-nvlink", major_of(devices, "nvidia-nvlink"), 0);
}

void lab_wait_detached(void)
{
	struct gpuwatch_detach d = { .timeout_ms = 20000 };
	int fd = gw_open();

	if (fd < 0) {
		errno = -fd;
		give_up("open", "/dev/gpuwatch");
	}
	if (ioctl(fd, GPUWATCH_IOC_DETACH, &d))
		give_up("cannot detach", "gpuwatch");
	close(fd);
}

void lab_gpuwatch_unload(void)
{
	if (lab_loaded("gpuwatch"))
		unload_soon("gpuwatch");
}

void lab_gpuwatch(bool kretprobe)
{
	const char *wanted = kretprobe ? "Y" : "N";

	if (lab_loaded("gpuwatch")) {
		lab_wait_detached();
		if (!strcmp(lab_param("gpuwatch", "kretprobe"), wanted))
			return;
		lab_gpuwatch_unload();
	}
	load_or_die("gpuwatch.ko", kretprobe ? "kretprobe=1" : "");
}

void lab_fresh(bool kretprobe, const char *params)
{
	static char loaded[64];
	char is[160];

	lab_gpuwatch(kretprobe);
	/* The driver's own parameters tell what is loaded: tests run in children. */
	snprintf(loaded, sizeof(loaded), "shape=%s", lab_param("nvidia", "shape"));
	snprintf(is, sizeof(is), "%s compat=%s", loaded, lab_param("nvidia", "compat"));
	if (lab_loaded("nvidia") && lab_loaded("nvidia_uvm") && lab_loaded("nvidia_modeset") &&
	    !strcmp(is, *params ? params : "shape=split compat=")) {
		lab_nodes();
	} else {
		lab_driver_unload();
		lab_driver_load(params);
	}
	lab_witness_reset();
}

int lab_node(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		give_up("open", path);
	return fd;
}

long lab_transform(int fd, uint8_t *arg, uint32_t bytes)
{
	long ret = ioctl(fd, GWSIM_TRANSFORM(bytes), arg);

	return ret < 0 ? -errno : ret;
}
