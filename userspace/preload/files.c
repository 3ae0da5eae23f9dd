// SPDX-License-Identifier: Apache-2.0
// Which descriptor names which open file. The table maps descriptor to file_id;
// changes are logged as references taken and dropped, and the reader of the
// shards finds the last one. It never decides what is recorded: that is done
// per call from the descriptor itself.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "raw.h"
#include "recorder.h"

// 0 or a file_id. 8 MiB of address space, touched only where used.
static uint64_t table[GW_FD_TABLE];
static int highest = -1;

static uint64_t get(int fd) {
  return fd >= 0 && fd < GW_FD_TABLE ? __atomic_load_n(&table[fd], __ATOMIC_RELAXED) : 0;
}

static uint64_t swap(int fd, uint64_t id) {
  if (fd < 0 || fd >= GW_FD_TABLE) return 0;
  if (id) {
    int seen = __atomic_load_n(&highest, __ATOMIC_RELAXED);
    while (fd > seen && !__atomic_compare_exchange_n(&highest, &seen, fd, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
  }
  return __atomic_exchange_n(&table[fd], id, __ATOMIC_RELAXED);
}

bool gw_files_any(void) {
  int last = __atomic_load_n(&highest, __ATOMIC_RELAXED);
  for (int fd = 0; fd <= last; fd++)
    if (get(fd)) return true;
  return false;
}

// pid, image and a serial make it unique within a recording.
uint64_t gw_file_new(struct gw_proc* p) {
  uint64_t serial = __atomic_add_fetch(&p->serial, 1, __ATOMIC_RELAXED);
  return (uint64_t)p->pid << 42 | (uint64_t)(p->image & 1023) << 32 | serial;
}

static void log_ref(struct gw_proc* p, uint32_t op, int fd, uint64_t id, uint64_t duration_ns) {
  struct gw_shard_entry* entry = gw_reserve(p, GW_ENTRY_REF, sizeof(struct gw_shard_ref));
  if (!entry) return;
  struct gw_shard_ref* ref = (struct gw_shard_ref*)(entry + 1);
  struct gw_who who;
  struct gw_node node = {0, 0};
  gw_who_am_i(&who);
  if (op == GW_REF_HOLD) gw_node_of_fd(fd, &node);
  memset(ref, 0, sizeof *ref);
  ref->time_ns = gw_now_ns();
  ref->file_id = id;
  ref->duration_ns = duration_ns;
  ref->op = op;
  ref->fd = fd;
  ref->tgid = who.tgid;
  ref->tid = who.tid;
  ref->uid = who.uid;
  ref->rdev = node.rdev;
  ref->node_kind = node.kind;
  ref->cpu = who.cpu;
  ref->cgroup_id = p->cgroup_id;
  memcpy(ref->comm, who.comm, sizeof ref->comm);
  gw_commit(entry);
}

static void hold(struct gw_proc* p, int fd, uint64_t id) {
  uint64_t before = swap(fd, id);
  // Closed by a way we do not see (fclose, a raw system call).
  if (before && before != id) log_ref(p, GW_REF_DROP, fd, before, 0);
  if (before != id) log_ref(p, GW_REF_HOLD, fd, id, 0);
}

void gw_file_opened(struct gw_proc* p, int fd, uint64_t id) {
  hold(p, fd, id);
}

uint64_t gw_file_of_fd(struct gw_proc* p, int fd, bool foreign) {
  uint64_t id = get(fd);
  if (id) return id;
  // Received by SCM_RIGHTS, inherited from a program we do not follow, or
  // opened by a way we do not see. Such a file gets a name, but no release:
  // others may hold it.
  __atomic_add_fetch(&p->shard->adopted, 1, __ATOMIC_RELAXED);
  id = gw_file_new(p);
  if (!foreign) swap(fd, id);
  return id;
}

void gw_fd_dup(int from, int to) {
  uint64_t id = get(from), before = get(to);
  if ((!id && !before) || from == to) return;
  bool foreign;
  struct gw_proc* p = gw_proc_get(&foreign);
  if (!p || foreign) return;
  if (id) {
    hold(p, to, id);
  } else {
    swap(to, 0);
    log_ref(p, GW_REF_DROP, to, before, 0);
  }
}

// To be called before the descriptor is closed: once it is, another thread may
// get the same number.
uint64_t gw_fd_take(int fd, bool* foreign) {
  *foreign = false;
  if (!get(fd) || !gw_proc_get(foreign) || *foreign) return 0;
  return swap(fd, 0);
}

void gw_fd_dropped(int fd, uint64_t id, uint64_t duration_ns) {
  struct gw_proc* p = gw_proc_get(NULL);
  if (p && id) log_ref(p, GW_REF_DROP, fd, id, duration_ns);
}

void gw_fd_range_closed(unsigned first, unsigned last) {
  int end = __atomic_load_n(&highest, __ATOMIC_RELAXED);
  if (end < 0) return;
  if (last > (unsigned)end) last = (unsigned)end;
  for (unsigned fd = first; fd <= last; fd++) {
    bool foreign;
    uint64_t id = gw_fd_take((int)fd, &foreign);
    if (foreign) return;
    if (id) gw_fd_dropped((int)fd, id, 0);
  }
}

void gw_files_hold_all(struct gw_proc* p) {
  int last = __atomic_load_n(&highest, __ATOMIC_RELAXED);
  for (int fd = 0; fd <= last; fd++) {
    uint64_t id = get(fd);
    if (id) log_ref(p, GW_REF_HOLD, fd, id, 0);
  }
}

static char* put_hex(char* at, uint64_t value) {
  static const char digits[] = "0123456789abcdef";
  int shift = 60;
  while (shift > 0 && (value >> shift) == 0) shift -= 4;
  for (; shift >= 0; shift -= 4) *at++ = digits[value >> shift & 15];
  return at;
}

// "fd:file_id," in hexadecimal for each descriptor that exec keeps.
size_t gw_files_env(char* out, size_t size) {
  enum { kItem = 8 + 1 + 16 + 1 };
  char* at = out;
  int last = __atomic_load_n(&highest, __ATOMIC_RELAXED);
  for (int fd = 0; fd <= last; fd++) {
    uint64_t id = get(fd);
    if (!id || (size_t)(at - out) + kItem + 1 > size) continue;
    long flags = GW_SYS_2(SYS_fcntl, fd, F_GETFD);
    if (flags < 0 || (flags & FD_CLOEXEC)) continue;
    at = put_hex(at, (uint64_t)fd);
    *at++ = ':';
    at = put_hex(at, id);
    *at++ = ',';
  }
  *at = 0;
  return (size_t)(at - out);
}

static const char* get_hex(const char* at, uint64_t* value) {
  *value = 0;
  for (;; at++) {
    if (*at >= '0' && *at <= '9')
      *value = *value << 4 | (uint64_t)(*at - '0');
    else if (*at >= 'a' && *at <= 'f')
      *value = *value << 4 | (uint64_t)(*at - 'a' + 10);
    else
      return at;
  }
}

void gw_files_adopt(const char* list) {
  while (*list) {
    uint64_t fd, id;
    struct gw_node node;
    list = get_hex(list, &fd);
    if (*list++ != ':') return;
    list = get_hex(list, &id);
    if (*list++ != ',') return;
    // The list tells what the parent had; a spawn may have closed some.
    if (fd < GW_FD_TABLE && gw_node_of_fd((int)fd, &node)) swap((int)fd, id);
  }
}
