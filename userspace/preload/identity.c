// SPDX-License-Identifier: Apache-2.0
// Who calls: header fields and the TASK and CGROUP definitions, read from /proc
// as the process itself sees it. Inside a pid namespace that means the pids of
// that namespace: a process cannot know others.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "raw.h"
#include "recorder.h"

void gw_who_am_i(struct gw_who* who) {
  unsigned cpu = 0;
  int got = sched_getcpu();  // vDSO
  if (got >= 0) cpu = (unsigned)got;
  who->cpu = cpu;
  who->tgid = (uint32_t)GW_SYS_0(SYS_getpid);
  who->tid = (uint32_t)GW_SYS_0(SYS_gettid);
  who->uid = (uint32_t)GW_SYS_0(SYS_getuid);
  memset(who->comm, 0, sizeof who->comm);
  GW_SYS_2(SYS_prctl, PR_GET_NAME, who->comm);
}

void gw_fill_head(struct gw_proc* p, struct gpuwatch_rec* rec, uint16_t type, uint32_t len, uint64_t time_ns) {
  struct gw_who who;
  gw_who_am_i(&who);
  memset(rec, 0, sizeof *rec);
  rec->len = len;
  rec->type = type;
  rec->flags = (uint16_t)(GPUWATCH_F_PRELOAD | p->cgroup_flags);
  rec->time_ns = time_ns;
  rec->cpu = who.cpu;
  rec->tgid = who.tgid;
  rec->tid = who.tid;
  rec->uid = who.uid;
  rec->start_ns = p->start_ns;
  rec->cgroup_id = p->cgroup_id;
  memcpy(rec->comm, who.comm, sizeof rec->comm);
}

void gw_fill_file(struct gpuwatch_rec* rec, uint64_t file_id, const struct gw_node* node) {
  rec->file_id = file_id;
  rec->rdev = node->rdev;
  rec->node_kind = node->kind;
}

// No stdio: it allocates, and a signal handler may be the caller.
static size_t read_file(const char* path, char* out, size_t size) {
  size_t have = 0;
  long fd = GW_SYS_4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return 0;
  while (have < size - 1) {
    long got = GW_SYS_3(SYS_read, fd, out + have, size - 1 - have);
    if (got <= 0) break;
    have += (size_t)got;
  }
  GW_SYS_1(SYS_close, fd);
  out[have] = 0;
  return have;
}

static uint64_t number_at(const char* text) {
  uint64_t value = 0;
  while (*text >= '0' && *text <= '9') value = value * 10 + (uint64_t)(*text++ - '0');
  return value;
}

// CLOCK_BOOTTIME of a process's start, in steps of a clock tick; 0 when /proc
// does not show it.
uint64_t gw_start_ns(uint32_t pid, uint32_t* parent) {
  char text[768], path[32] = "/proc/", *at = path + 6;
  char digits[10];
  int n = 0;
  uint32_t rest = pid;
  do digits[n++] = (char)('0' + rest % 10);
  while ((rest /= 10) != 0);
  while (n) *at++ = digits[--n];
  memcpy(at, "/stat", 6);
  *parent = 0;
  if (!read_file(path, text, sizeof text)) return 0;
  // comm may hold anything, so count fields from the last ')': state is field 3.
  const char* field = strrchr(text, ')');
  if (!field) return 0;
  uint64_t ticks = 0;
  for (int i = 2; i < 22 && field; i++) {
    field = strchr(field + 1, ' ');
    if (field && i + 1 == 4) *parent = (uint32_t)number_at(field + 1);
    if (field && i + 1 == 22) ticks = number_at(field + 1);
  }
  unsigned long hz = getauxval(AT_CLKTCK);
  if (hz == 0) hz = 100;
  return ticks / hz * 1000000000ull + ticks % hz * (1000000000ull / hz);
}

// Pids of this process in all pid namespaces from the procfs mount's down; the
// count minus one is the depth below that mount.
static uint32_t namespace_level(void) {
  char text[2048];
  read_file("/proc/self/status", text, sizeof text);
  const char* line = strstr(text, "\nNSpid:");
  uint32_t tabs = 0;
  if (line)
    for (line += 7; *line && *line != '\n'; line++) tabs += *line == '\t';
  return tabs ? tabs - 1 : 0;
}

static bool stat_path(const char* path, struct stat* st) {
#if defined(SYS_newfstatat)
  return GW_SYS_4(SYS_newfstatat, AT_FDCWD, path, st, 0) == 0;
#else
  return GW_SYS_4(SYS_fstatat, AT_FDCWD, path, st, 0) == 0;
#endif
}

void gw_write_task(struct gw_proc* p) {
  enum { kFixed = sizeof(struct gpuwatch_rec) + sizeof(struct gpuwatch_rec_task) };
  struct gw_shard_entry* entry = gw_reserve(p, GW_ENTRY_RECORD, kFixed + GPUWATCH_PATH_MAX);
  if (!entry) return;
  struct gpuwatch_rec* rec = (struct gpuwatch_rec*)(entry + 1);
  struct gpuwatch_rec_task* task = (struct gpuwatch_rec_task*)(rec + 1);
  struct stat st;
  uint32_t parent = 0, grandparent;
  memset(task, 0, sizeof *task);
  gw_start_ns(p->pid, &parent);
  task->parent_tgid = parent;
  task->parent_start_ns = parent ? gw_start_ns(parent, &grandparent) : 0;
  if (stat_path("/proc/self/exe", &st)) {
    task->exe_ino = st.st_ino;
    task->exe_dev = (gnu_dev_major(st.st_dev) << 20) | (gnu_dev_minor(st.st_dev) & 0xfffff);
  }
  task->ns_tgid = p->pid;
  task->ns_level = namespace_level();
  if (stat_path("/proc/self/ns/pid", &st)) task->pid_ns = (uint32_t)st.st_ino;
  long got = GW_SYS_4(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", task + 1, GPUWATCH_PATH_MAX);
  task->path_len = got > 0 ? (uint32_t)got : 0;
  gw_fill_head(p, rec, GPUWATCH_REC_TASK, kFixed + ((task->path_len + 7u) & ~7u), gw_now_ns());
  gw_commit(entry);
}

// Guarded by gw_lock.
static char cgroup_text[8192];
static char cgroup_path[GPUWATCH_PATH_MAX];

// Finds the line of the hierarchy we report: v2, else v1 memory.
static const char* cgroup_line(uint32_t* version) {
  const char* v1 = NULL;
  for (const char* line = cgroup_text; line && *line;) {
    const char* controllers = strchr(line, ':');
    const char* path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path) break;
    if (path == controllers + 1) {
      *version = 2;
      // A v2 mount without controllers beside v1 ones still names the cgroup.
      return path + 1;
    }
    size_t len = (size_t)(path - controllers - 1);
    for (const char* at = controllers + 1; at < controllers + 1 + len;) {
      const char* end = memchr(at, ',', (size_t)(path - at));
      if (!end) end = path;
      if (end - at == 6 && memcmp(at, "memory", 6) == 0) v1 = path + 1;
      at = end + 1;
    }
    line = strchr(path, '\n');
    if (line) line++;
  }
  *version = 1;
  return v1;
}

static uint64_t cgroup_inode(const char* path, size_t len, uint32_t version) {
  static const char* const mounts[2][2] = {{"/sys/fs/cgroup/memory", NULL},
                                           {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}};
  struct stat st;
  for (int i = 0; i < 2 && mounts[version - 1][i]; i++) {
    size_t prefix = strlen(mounts[version - 1][i]);
    if (prefix + len >= sizeof cgroup_path) continue;
    memcpy(cgroup_path, mounts[version - 1][i], prefix);
    memcpy(cgroup_path + prefix, path, len);
    cgroup_path[prefix + len] = 0;
    if (stat_path(cgroup_path, &st)) return st.st_ino;
  }
  // Not mounted here: a name of our own, told from an inode by the top bit.
  uint64_t hash = 0xcbf29ce484222325ull;
  for (size_t i = 0; i < len; i++) hash = (hash ^ (unsigned char)path[i]) * 0x100000001b3ull;
  return hash | 1ull << 63;
}

// The caller's cgroup now, 0 when it cannot be told; *path stays valid as long
// as gw_lock is held.
static uint64_t cgroup_now(const char** path, size_t* len, uint32_t* version) {
  read_file("/proc/self/cgroup", cgroup_text, sizeof cgroup_text);
  *path = cgroup_line(version);
  *len = *path ? strcspn(*path, "\n") : 0;
  return *path && *len < GPUWATCH_PATH_MAX ? cgroup_inode(*path, *len, *version) : 0;
}

// Under gw_lock, for a process that is being set up.
uint64_t gw_first_cgroup(uint16_t* flags) {
  const char* path;
  size_t len;
  uint32_t version = 2;
  uint64_t id = cgroup_now(&path, &len, &version);
  *flags = version == 1 ? GPUWATCH_F_CGROUP_V1 : 0;
  return id;
}

// Writes the definition when the cgroup is new or was not defined yet.
void gw_refresh_cgroup(struct gw_proc* p) {
  enum { kFixed = sizeof(struct gpuwatch_rec) + sizeof(struct gpuwatch_rec_cgroup) };
  uint64_t mask, id;
  uint32_t version = 2;
  size_t len;
  const char* path;
  struct gw_shard_entry* entry;
  gw_lock(p, &mask);
  id = cgroup_now(&path, &len, &version);
  bool changed = id != 0 && (id != p->cgroup_id || !p->cgroup_defined);
  gw_unlock(p, mask);
  if (!changed) return;
  p->cgroup_defined = 1;
  p->cgroup_id = id;
  p->cgroup_flags = version == 1 ? GPUWATCH_F_CGROUP_V1 : 0;
  entry = gw_reserve(p, GW_ENTRY_RECORD, (uint32_t)(kFixed + len));
  if (!entry) return;
  struct gpuwatch_rec* rec = (struct gpuwatch_rec*)(entry + 1);
  struct gpuwatch_rec_cgroup* cgroup = (struct gpuwatch_rec_cgroup*)(rec + 1);
  uint32_t padded = ((uint32_t)len + 7u) & ~7u;
  cgroup->version = version;
  cgroup->path_len = (uint32_t)len;
  memset(cgroup + 1, 0, padded);
  gw_lock(p, &mask);
  memcpy(cgroup + 1, path, len);
  gw_unlock(p, mask);
  gw_fill_head(p, rec, GPUWATCH_REC_CGROUP, kFixed + padded, gw_now_ns());
  gw_commit(entry);
}
