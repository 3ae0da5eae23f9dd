// SPDX-License-Identifier: Apache-2.0
// gw-container: runs a command as a container runtime would, as far as an
// observer can tell: its own cgroup with the path asked for, its own pid and
// mount namespaces, an own /proc, and no privileges if asked. It isolates for
// tests only: files and network stay the host's.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <dirent.h>
#include <unistd.h>

static const char cgroup_root[] = "/sys/fs/cgroup";

struct options {
	const char *name;
	const char *cgroup;
	int flags;	/* of unshare */
	long uid, gid;	/* -1: as the caller */
	int keep;	/* leave the cgroup */
};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
	int error = errno;
	va_list args;

	va_start(args, format);
	fputs("gw-container: ", stderr);
	vfprintf(stderr, format, args);
	fprintf(stderr, ": %s\n", strerror(error));
	va_end(args);
	exit(125);
}

/* mkdir -p below a hierarchy; `path` begins with a slash. */
static void make_cgroup(const char *hierarchy, const char *path, char *full, size_t size)
{
	char *slash;
	size_t root = strlen(hierarchy);

	if ((size_t)snprintf(full, size, "%s%s", hierarchy, path) >= size) {
		errno = ENAMETOOLONG;
		die("cgroup %s", path);
	}
	for (slash = strchr(full + root + 1, '/');; slash = strchr(slash + 1, '/')) {
		if (slash)
			*slash = '\0';
		if (mkdir(full, 0755) && errno != EEXIST)
			die("mkdir %s", full);
		if (!slash)
			return;
		*slash = '/';
	}
}

static void join_cgroup(const char *hierarchy, const char *path)
{
	char full[PATH_MAX], procs[PATH_MAX + 16];
	int fd;

	make_cgroup(hierarchy, path, full, sizeof(full));
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", full);
	fd = open(procs, O_WRONLY | O_CLOEXEC);
	/* A v1 cpuset without CPUs takes nobody: it is not what tests look at. */
	if (fd < 0 || (write(fd, "0", 1) != 1 && errno != ENOSPC))
		die("join %s", full);
	close(fd);
}

static int has_procs(const char *directory)
{
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/cgroup.procs", directory);
	return access(path, F_OK) == 0;
}

/* Every hierarchy that is mounted: cgroup2 alone, v1 controllers, or both. */
static int each_hierarchy(const char *path, void (*action)(const char *, const char *))
{
	char hierarchy[PATH_MAX];
	struct dirent *entry;
	int n = 0;
	DIR *dir;

	if (has_procs(cgroup_root)) {
		action(cgroup_root, path);
		return 1;
	}
	dir = opendir(cgroup_root);
	if (!dir)
		die("%s", cgroup_root);
	while ((entry = readdir(dir))) {
		snprintf(hierarchy, sizeof(hierarchy), "%s/%s", cgroup_root, entry->d_name);
		if (entry->d_name[0] == '.' || !has_procs(hierarchy))
			continue;
		action(hierarchy, path);
		n++;
	}
	closedir(dir);
	return n;
}

/* Removes the leaf; parents that are empty by then go too. */
static void leave_no_cgroup(const char *hierarchy, const char *path)
{
	char full[PATH_MAX];
	size_t root = strlen(hierarchy);

	if ((size_t)snprintf(full, sizeof(full), "%s%s", hierarchy, path) >= sizeof(full))
		return;
	while (strlen(full) > root + 1 && rmdir(full) == 0)
		*strrchr(full, '/') = '\0';
}

static void enter(const struct options *o, char **command)
{
	if (o->flags & CLONE_NEWNS) {
		if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
			die("make mounts private");
		if ((o->flags & CLONE_NEWPID) && mount("proc", "/proc", "proc", 0, NULL))
			die("mount /proc");
	}
	if ((o->flags & CLONE_NEWUTS) && sethostname(o->name, strlen(o->name)))
		die("set the host name");
	if (o->gid >= 0 && (setgroups(0, NULL) || setresgid(o->gid, o->gid, o->gid)))
		die("become group %ld", o->gid);
	if (o->uid >= 0 && setresuid(o->uid, o->uid, o->uid))
		die("become user %ld", o->uid);
	execvp(command[0], command);
	die("%s", command[0]);
}

static long id(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (*end || !*text || n < 0 || n > INT_MAX) {
		fprintf(stderr, "gw-container: '%s' is no id\n", text);
		exit(125);
	}
	return n;
}

static void usage(FILE *to)
{
	fputs("usage: gw-container NAME --cgroup PATH [options] -- COMMAND...\n"
	      "  --pidns --mntns --cgroupns   only these namespaces; without any of them all but\n"
	      "                               the cgroup one, and uts and ipc\n"
	      "  --uid N --gid N              drop to these\n"
	      "  --keep                       leave the cgroup there at the end\n"
	      "Exit status: the command's, 128 + signal, or 125 for trouble of its own.\n", to);
}

static char **parse(int argc, char **argv, struct options *o)
{
	static const struct option names[] = {
		{ "cgroup", 1, 0, 'c' }, { "pidns", 0, 0, 'p' }, { "mntns", 0, 0, 'm' },
		{ "cgroupns", 0, 0, 'C' }, { "uid", 1, 0, 'u' }, { "gid", 1, 0, 'g' },
		{ "keep", 0, 0, 'k' }, { "help", 0, 0, 'h' }, { 0, 0, 0, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "-", names, NULL)) != -1) {
		switch (c) {
		case 1: o->name = optarg; break;
		case 'c': o->cgroup = optarg; break;
		case 'p': o->flags |= CLONE_NEWPID; break;
		case 'm': o->flags |= CLONE_NEWNS; break;
		case 'C': o->flags |= CLONE_NEWCGROUP; break;
		case 'u': o->uid = id(optarg); break;
		case 'g': o->gid = id(optarg); break;
		case 'k': o->keep = 1; break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			usage(stderr);
			exit(125);
		}
	}
	if (!o->name || !o->cgroup || o->cgroup[0] != '/' || strstr(o->cgroup, "..") || optind == argc) {
		usage(stderr);
		exit(125);
	}
	if (!(o->flags & ~CLONE_NEWCGROUP))
		o->flags |= CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC;
	return argv + optind;
}

int main(int argc, char **argv)
{
	struct options o = { .uid = -1, .gid = -1 };
	char **command = parse(argc, argv, &o);
	int status;
	pid_t pid, runner;

	/* A process of its own goes in, so that this one can remove the cgroup. */
	runner = fork();
	if (runner < 0)
		die("fork");
	if (runner == 0) {
		if (each_hierarchy(o.cgroup, join_cgroup) == 0) {
			errno = ENOENT;
			die("no cgroup hierarchy below %s", cgroup_root);
		}
		if (unshare(o.flags))
			die("unshare");
		pid = fork();
		if (pid < 0)
			die("fork");
		if (pid == 0)
			enter(&o, command);
		if (waitpid(pid, &status, 0) != pid)
			die("wait");
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	}
	if (waitpid(runner, &status, 0) != runner)
		die("wait");
	if (!o.keep)
		each_hierarchy(o.cgroup, leave_no_cgroup);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
