// SPDX-License-Identifier: Apache-2.0
// Process 1 of a test guest: mounts what programs expect, runs the one command
// in /lab/argv, carries its output to the host as it comes, sends back /out and
// ends the machine. It must not judge anything: that is boot's work, outside.
//
// Talks to the host over four virtio-serial ports: stdout and stderr of the
// command, "out" for a tar of /out, "ctl" for lines of text that say how far the
// guest got. A port takes bytes and delivers them later, so the last line on ctl
// tells how many went into each, and the machine ends only when the host has them
// all and says so. Without that line the host takes the guest for dead.

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kDebugExitPort = 0xf4, kExitMark = 0x40, kArgvBytes = 65536, kArgvMax = 1024 };

struct port {
	int fd;
	unsigned long long bytes;
};

static struct port ctl = { .fd = -1 }, out_port, stdout_port, stderr_port;

// Says on the console why the guest cannot go on, and ends process 1: the kernel
// panics, and the host sees a dead guest with these words before it.
__attribute__((format(printf, 1, 2), noreturn)) static void give_up(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "lab-init: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(1);
}

// Writes all of it: a port takes what the host reads, no faster.
static void write_all(struct port *port, const char *bytes, size_t length)
{
	port->bytes += length;
	while (length > 0) {
		ssize_t done = write(port->fd, bytes, length);

		if (done < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (done <= 0)
			give_up("write to the host: %s", strerror(errno));
		bytes += done;
		length -= (size_t)done;
	}
}

__attribute__((format(printf, 1, 2))) static void tell_host(const char *format, ...)
{
	char line[256];
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	write_all(&ctl, line, (size_t)length);
}

// Reads a small file into buffer and returns its length, or -1.
static ssize_t slurp(const char *path, char *buffer, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return -1;
	length = read(fd, buffer, size - 1);
	close(fd);
	if (length >= 0)
		buffer[length] = '\0';
	return length;
}

static void spit(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		fprintf(stderr, "lab-init: %s: %s\n", path, strerror(errno));
	close(fd);
}

// A file system that this kernel does not have is left out: kernels differ.
static int mount_at(const char *type, const char *target, const char *options)
{
	mkdir(target, 0755);
	return mount(type, target, type, 0, options);
}

static void mount_cgroup2(const char *target)
{
	char controllers[512], path[128], enable[128], *name, *rest = controllers;

	if (mount_at("cgroup2", target, NULL))
		give_up("mount cgroup2: %s", strerror(errno));
	snprintf(path, sizeof(path), "%s/cgroup.controllers", target);
	if (slurp(path, controllers, sizeof(controllers)) < 0)
		return;
	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", target);
	while ((name = strsep(&rest, " \n"))) {
		if (!*name)
			continue;
		snprintf(enable, sizeof(enable), "+%s", name);
		spit(path, enable);
	}
}

static void mount_cgroups(const char *mode)
{
	static const char *const v1[] = { "memory", "devices", "pids", "freezer", "cpuset", "cpu,cpuacct" };
	char target[128];
	size_t i;

	if (strcmp(mode, "v2") == 0) {
		mount_cgroup2("/sys/fs/cgroup");
		return;
	}
	mount("tmpfs", "/sys/fs/cgroup", "tmpfs", 0, "mode=755");
	for (i = 0; i < sizeof(v1) / sizeof(v1[0]); i++) {
		snprintf(target, sizeof(target), "/sys/fs/cgroup/%s", v1[i]);
		if (mount_at("cgroup", target, v1[i])) {
			fprintf(stderr, "lab-init: no cgroup v1 %s: %s\n", v1[i], strerror(errno));
			rmdir(target);
		}
	}
	if (strcmp(mode, "hybrid") == 0)
		mount_cgroup2("/sys/fs/cgroup/unified");
}

static void mount_all(void)
{
	char mode[16] = "v2";

	mount_at("proc", "/proc", NULL);
	mount_at("sysfs", "/sys", NULL);
	mount_at("devtmpfs", "/dev", NULL);
	mount_at("devpts", "/dev/pts", NULL);
	mount_at("tmpfs", "/dev/shm", NULL);
	mount_at("tmpfs", "/tmp", NULL);
	mount_at("tmpfs", "/run", NULL);
	mount_at("debugfs", "/sys/kernel/debug", NULL);
	mount_at("tracefs", "/sys/kernel/tracing", NULL);
	mount_at("bpf", "/sys/fs/bpf", NULL);
	if (symlink("/proc/self/fd", "/dev/fd") || symlink("/proc/self/fd/0", "/dev/stdin") ||
	    symlink("/proc/self/fd/1", "/dev/stdout") || symlink("/proc/self/fd/2", "/dev/stderr"))
		fprintf(stderr, "lab-init: links in /dev: %s\n", strerror(errno));
	slurp("/lab/cgroup", mode, sizeof(mode));
	mount_cgroups(mode);
	mkdir("/out", 0755);
}

// Loads the modules the host chose, in the host's order.
static void load_modules(void)
{
	char list[4096], *rest = list, *path;

	if (slurp("/lab/modules", list, sizeof(list)) < 0)
		return;
	while ((path = strsep(&rest, "\n"))) {
		int fd;

		if (!*path)
			continue;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST))
			give_up("load %s: %s", path, strerror(errno));
		close(fd);
	}
}

static void loopback_up(void)
{
	struct ifreq request = { .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	strcpy(request.ifr_name, "lo");
	if (ioctl(fd, SIOCSIFFLAGS, &request))
		fprintf(stderr, "lab-init: lo: %s\n", strerror(errno));
	close(fd);
}

// Opens the port the host calls `wanted`, or returns -1 when it is not there yet.
static int find_port(const char *wanted)
{
	DIR *ports = opendir("/sys/class/virtio-ports");
	struct dirent *entry;
	int fd = -1;

	if (!ports)
		return -1;
	while (fd < 0 && (entry = readdir(ports))) {
		char path[320], name[64];

		snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name", entry->d_name);
		if (slurp(path, name, sizeof(name)) < 0)
			continue;
		name[strcspn(name, "\n")] = '\0';
		if (strcmp(name, wanted))
			continue;
		snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
		fd = open(path, O_RDWR | O_CLOEXEC);
	}
	closedir(ports);
	return fd;
}

// The host announces ports one by one after the driver came up: ask until it
// did. The bound only ends a guest whose host never will.
static struct port wait_port(const char *name)
{
	struct timespec tick = { .tv_nsec = 2000000 };
	struct port port = { .fd = -1 };
	int tries;

	for (tries = 0; tries < 15000; tries++) {
		port.fd = find_port(name);
		if (port.fd >= 0)
			return port;
		nanosleep(&tick, NULL);
	}
	give_up("the host has no port '%s'", name);
}

// Moves what lies in a pipe to its port; false at the end of the pipe.
static int pump(int from, struct port *to)
{
	static char buffer[65536];
	ssize_t length;

	while ((length = read(from, buffer, sizeof(buffer))) > 0)
		write_all(to, buffer, (size_t)length);
	return length < 0 && (errno == EAGAIN || errno == EINTR);
}

static void make_pipe(int ends[2])
{
	if (pipe2(ends, O_CLOEXEC))
		give_up("pipe: %s", strerror(errno));
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

__attribute__((noreturn)) static void run_child(char **argv, int out, int err)
{
	sigset_t none;
	int null = open("/dev/null", O_RDONLY);

	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(null, 0);
	dup2(out, 1);
	dup2(err, 2);
	execvp(argv[0], argv);
	fprintf(stderr, "lab-init: %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

// Runs argv and carries its output until it ends and both pipes are empty. What
// processes it left behind write later is not waited for. Returns its status as
// a shell would.
static int run_command(char **argv)
{
	int out[2], err[2], status = 0, done = 0;
	struct pollfd fds[3];
	struct signalfd_siginfo info;
	sigset_t child;
	pid_t main_pid;

	make_pipe(out);
	make_pipe(err);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	fds[0] = (struct pollfd){ .fd = out[0], .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = err[0], .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = signalfd(-1, &child, SFD_CLOEXEC), .events = POLLIN };
	main_pid = fork();
	if (main_pid < 0)
		give_up("fork: %s", strerror(errno));
	if (main_pid == 0)
		run_child(argv, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	while (!done) {
		int wait_status;
		pid_t pid;

		if (poll(fds, 3, -1) < 0 && errno != EINTR)
			give_up("poll: %s", strerror(errno));
		if (fds[2].revents && read(fds[2].fd, &info, sizeof(info)) < 0)
			give_up("signalfd: %s", strerror(errno));
		// Reap before the last look at the pipes: what the command wrote
		// before it ended is in them by then.
		while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0) {
			if (pid != main_pid)
				continue;
			done = 1;
			status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
		}
		if (fds[0].fd >= 0 && !pump(out[0], &stdout_port))
			fds[0].fd = -1;
		if (fds[1].fd >= 0 && !pump(err[0], &stderr_port))
			fds[1].fd = -1;
	}
	return status;
}

// Sends /out as tar. Returns tar's exit status.
static int send_files(void)
{
	int ends[2], status;
	pid_t pid;

	make_pipe(ends);
	fcntl(ends[0], F_SETFL, 0);
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], 1);
		execl("/bin/busybox", "tar", "-cf", "-", "-C", "/out", ".", (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	pump(ends[0], &out_port);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Tells the host the end of the story and waits until it has every byte.
static void take_leave(int status, int files)
{
	char answer;

	tell_host("files %d\n", files);
	tell_host("bytes stdout=%llu stderr=%llu out=%llu\n", stdout_port.bytes, stderr_port.bytes, out_port.bytes);
	tell_host("status %d\n", status);
	while (read(ctl.fd, &answer, 1) != 1)
		;
}

// QEMU's isa-debug-exit turns a byte written to the port into its own exit
// status, 2 * byte + 1: unlike 0 that cannot come from a crash.
static void end_machine(int status)
{
	if (ioperm(kDebugExitPort, 4, 1))
		give_up("ioperm: %s", strerror(errno));
	outl((unsigned int)(kExitMark | (status & 0x3f)), kDebugExitPort);
	give_up("the machine has no exit device");
}

int main(void)
{
	static char text[kArgvBytes];
	static char *argv[kArgvMax + 1];
	struct timespec now;
	ssize_t length;
	int count = 0, status, at;

	// The host boots with warnings only, which is quicker; from here on the
	// console tells all, for what a module says is part of a test.
	mount_all();
	klogctl(8, NULL, 8);
	load_modules();
	loopback_up();
	ctl = wait_port("ctl");
	stdout_port = wait_port("stdout");
	stderr_port = wait_port("stderr");
	out_port = wait_port("out");
	setenv("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", 1);
	setenv("HOME", "/root", 1);
	setenv("TERM", "dumb", 1);
	setenv("LC_ALL", "C.UTF-8", 1);
	unsetenv("BOOT_IMAGE");

	length = slurp("/lab/argv", text, sizeof(text));
	for (at = 0; at < length && count < kArgvMax; at += (int)strlen(text + at) + 1)
		argv[count++] = text + at;
	if (count == 0)
		give_up("/lab/argv is missing or empty");
	clock_gettime(CLOCK_BOOTTIME, &now);
	tell_host("ready %lld.%03ld\n", (long long)now.tv_sec, now.tv_nsec / 1000000);

	status = run_command(argv);
	take_leave(status, send_files());
	end_machine(status);
}
