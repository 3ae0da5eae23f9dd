// SPDX-License-Identifier: Apache-2.0
// The wrapped functions: open, ioctl, mmap, close and their relatives. Each
// calls the next definition of its name and returns exactly what that returned,
// errno included; recording happens around it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "raw.h"
#include "recorder.h"

// Resolved by the constructor; code that runs earlier gets the system call.
static int (*next_openat)(int, const char*, int, ...);
static int (*next_ioctl)(int, unsigned long, ...);
static void* (*next_mmap)(void*, size_t, int, int, int, off_t);
static int (*next_close)(int);
static int (*next_dup)(int);
static int (*next_dup2)(int, int);
static int (*next_dup3)(int, int, int);
static int (*next_fcntl)(int, int, ...);
static int (*next_close_range)(unsigned, unsigned, int);
long (*gw_next_syscall)(long, ...);

void gw_wrap_resolve(void) {
  GW_RESOLVE(next_openat, "openat");
  GW_RESOLVE(next_ioctl, "ioctl");
  GW_RESOLVE(next_mmap, "mmap");
  GW_RESOLVE(next_close, "close");
  GW_RESOLVE(next_dup, "dup");
  GW_RESOLVE(next_dup2, "dup2");
  GW_RESOLVE(next_dup3, "dup3");
  GW_RESOLVE(next_fcntl, "fcntl");
  GW_RESOLVE(next_close_range, "close_range");
  GW_RESOLVE(gw_next_syscall, "syscall");
}

static long with_errno(long ret) {
  if (ret < 0 && ret > -4096) {
    errno = (int)-ret;
    return -1;
  }
  return ret;
}

// Errors that come from the path walk, permissions or limits: the driver was
// not asked, and the kernel module would not see the call either.
static bool before_driver(int error) {
  switch (error) {
    case ENOENT:
    case EACCES:
    case EPERM:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case EMFILE:
    case ENFILE:
    case EFAULT:
    case EINVAL:
    case EEXIST:
    case EISDIR:
    case EROFS:
    case ENXIO:
      return true;
    default:
      return false;
  }
}

// Runs after the call: an OPEN has a fixed size, so nothing needs reserving
// before it, and a thread cancelled in open() leaves no half record.
static void record_open(int dirfd, const char* path, int flags, int ret, int error, uint64_t begin, uint64_t end) {
  enum { kLen = sizeof(struct gpuwatch_rec) + sizeof(struct gpuwatch_rec_open) };
  struct gw_node node;
  if (flags & O_PATH) return;
  if (ret >= 0 ? !gw_node_of_fd(ret, &node) : before_driver(error) || !gw_node_of_path(dirfd, path, &node)) return;
  bool foreign;
  struct gw_proc* p = gw_proc_get(&foreign);
  if (!p) return;
  if (!foreign) gw_refresh_cgroup(p);
  uint64_t id = gw_file_new(p);
  struct gw_shard_entry* entry = gw_reserve(p, GW_ENTRY_RECORD, kLen);
  if (entry) {
    struct gpuwatch_rec* rec = (struct gpuwatch_rec*)(entry + 1);
    struct gpuwatch_rec_open* open = (struct gpuwatch_rec_open*)(rec + 1);
    long kept = ret >= 0 ? GW_SYS_2(SYS_fcntl, ret, F_GETFL) : -1;
    gw_fill_head(p, rec, GPUWATCH_REC_OPEN, kLen, end);
    gw_fill_file(rec, id, &node);
    open->ret = ret >= 0 ? 0 : -error;
    open->duration_ns = end - begin;
    open->f_flags = (uint32_t)(kept >= 0 ? kept : flags & ~O_CLOEXEC);
    open->pad = 0;
    gw_commit(entry);
  }
  if (ret >= 0 && !foreign) gw_file_opened(p, ret, id);
}

static int open_common(int dirfd, const char* path, int flags, mode_t mode) {
  if (!next_openat) return (int)with_errno(GW_SYS_4(SYS_openat, dirfd, path, flags, mode));
  if (!gw_active) return next_openat(dirfd, path, flags, mode);
  uint64_t begin = gw_now_ns();
  int ret = next_openat(dirfd, path, flags, mode), error = errno;
  record_open(dirfd, path, flags, ret, error, begin, gw_now_ns());
  errno = error;
  return ret;
}

#define OPEN_MODE(last)                 \
  mode_t mode = 0;                      \
  if (last & (O_CREAT | __O_TMPFILE)) { \
    va_list args;                       \
    va_start(args, last);               \
    mode = va_arg(args, mode_t);        \
    va_end(args);                       \
  }

GW_EXPORT int open(const char* path, int flags, ...) {
  OPEN_MODE(flags)
  return open_common(AT_FDCWD, path, flags, mode);
}
GW_EXPORT int open64(const char* path, int flags, ...) {
  OPEN_MODE(flags)
  return open_common(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}
GW_EXPORT int openat(int dirfd, const char* path, int flags, ...) {
  OPEN_MODE(flags)
  return open_common(dirfd, path, flags, mode);
}
GW_EXPORT int openat64(int dirfd, const char* path, int flags, ...) {
  OPEN_MODE(flags)
  return open_common(dirfd, path, flags | O_LARGEFILE, mode);
}
// What _FORTIFY_SOURCE calls; and names that libraries use among themselves.
int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
int __openat_2(int dirfd, const char* path, int flags);
int __openat64_2(int dirfd, const char* path, int flags);
int __open(const char* path, int flags, ...);
int __open64(const char* path, int flags, ...);
int __close(int fd);
GW_EXPORT int __open_2(const char* path, int flags) {
  return open_common(AT_FDCWD, path, flags, 0);
}
GW_EXPORT int __open64_2(const char* path, int flags) {
  return open_common(AT_FDCWD, path, flags | O_LARGEFILE, 0);
}
GW_EXPORT int __openat_2(int dirfd, const char* path, int flags) {
  return open_common(dirfd, path, flags, 0);
}
GW_EXPORT int __openat64_2(int dirfd, const char* path, int flags) {
  return open_common(dirfd, path, flags | O_LARGEFILE, 0);
}
GW_EXPORT int __open(const char* path, int flags, ...) {
  OPEN_MODE(flags)
  return open_common(AT_FDCWD, path, flags, mode);
}
GW_EXPORT int __open64(const char* path, int flags, ...) {
  OPEN_MODE(flags)
  return open_common(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

// The node is asked for per call, not remembered: a descriptor may be closed and
// reused by ways we do not see, and a record of a foreign file would be a lie.
GW_EXPORT int ioctl(int fd, unsigned long request, ...) {
  va_list args;
  va_start(args, request);
  void* arg = va_arg(args, void*);
  va_end(args);
  if (!next_ioctl) return (int)with_errno(GW_SYS_3(SYS_ioctl, fd, request, arg));
  struct gw_ioctl_call call;
  if (!gw_active || !gw_node_of_fd(fd, &call.node)) return next_ioctl(fd, request, arg);
  bool foreign;
  int saved = errno;
  struct gw_proc* p = gw_proc_get(&foreign);
  if (!p) return next_ioctl(fd, request, arg);
  call.file_id = gw_file_of_fd(p, fd, foreign);
  gw_ioctl_begin(&call, p, (uint32_t)request, (uint64_t)(uintptr_t)arg);
  errno = saved;
  uint64_t begin = gw_now_ns();
  int ret = next_ioctl(fd, request, arg);
  uint64_t end = gw_now_ns();
  int error = errno;
  gw_ioctl_end(&call, ret == -1 ? -error : ret, begin, end);
  errno = error;
  return ret;
}

static void record_mmap(int fd, const struct gw_node* node, void* ret, size_t length, int prot, int flags, off_t offset,
                        int error, uint64_t begin, uint64_t end) {
  enum { kLen = sizeof(struct gpuwatch_rec) + sizeof(struct gpuwatch_rec_mmap) };
  bool foreign;
  struct gw_proc* p = gw_proc_get(&foreign);
  if (!p) return;
  uint64_t id = gw_file_of_fd(p, fd, foreign), page = (uint64_t)sysconf(_SC_PAGESIZE);
  struct gw_shard_entry* entry = gw_reserve(p, GW_ENTRY_RECORD, kLen);
  if (!entry) return;
  struct gpuwatch_rec* rec = (struct gpuwatch_rec*)(entry + 1);
  struct gpuwatch_rec_mmap* map = (struct gpuwatch_rec_mmap*)(rec + 1);
  gw_fill_head(p, rec, GPUWATCH_REC_MMAP, kLen, end);
  gw_fill_file(rec, id, node);
  map->ret = ret == MAP_FAILED ? -error : 0;
  map->duration_ns = end - begin;
  map->addr = ret == MAP_FAILED ? 0 : (uint64_t)(uintptr_t)ret;
  map->length = (length + page - 1) & ~(page - 1);
  map->offset = (uint64_t)offset;
  map->prot = (uint32_t)prot & (PROT_READ | PROT_WRITE | PROT_EXEC);
  map->shared = (flags & MAP_TYPE) == MAP_SHARED || (flags & MAP_TYPE) == MAP_SHARED_VALIDATE;
  gw_commit(entry);
}

// Most mappings are anonymous: those cost one test and no system call.
static void* mmap_common(void* addr, size_t length, int prot, int flags, int fd, off_t offset) {
  if (!next_mmap) return (void*)with_errno(GW_SYS_6(SYS_mmap, addr, length, prot, flags, fd, offset));
  struct gw_node node;
  if (!gw_active || (flags & MAP_ANONYMOUS) || !gw_node_of_fd(fd, &node))
    return next_mmap(addr, length, prot, flags, fd, offset);
  uint64_t begin = gw_now_ns();
  void* ret = next_mmap(addr, length, prot, flags, fd, offset);
  uint64_t end = gw_now_ns();
  int error = errno;
  record_mmap(fd, &node, ret, length, prot, flags, offset, error, begin, end);
  errno = error;
  return ret;
}

GW_EXPORT void* mmap(void* addr, size_t length, int prot, int flags, int fd, off_t offset) {
  return mmap_common(addr, length, prot, flags, fd, offset);
}
GW_EXPORT void* mmap64(void* addr, size_t length, int prot, int flags, int fd, off64_t offset) {
  return mmap_common(addr, length, prot, flags, fd, offset);
}

// The table is changed before the call: afterwards another thread may have got
// the same number for a file of its own.
GW_EXPORT int close(int fd) {
  bool foreign = false;
  uint64_t id = gw_active ? gw_fd_take(fd, &foreign) : 0;
  uint64_t begin = id ? gw_now_ns() : 0;
  int ret = next_close ? next_close(fd) : (int)with_errno(GW_SYS_1(SYS_close, fd));
  if (id) {
    int saved = errno;
    gw_fd_dropped(fd, id, gw_now_ns() - begin);
    errno = saved;
  }
  return ret;
}
GW_EXPORT int __close(int fd) {
  return close(fd);
}

// To be called with what the call returned; a failed one changes nothing.
static int dup_done(int from, int to) {
  if (gw_active && to >= 0) {
    int saved = errno;
    gw_fd_dup(from, to);
    errno = saved;
  }
  return to;
}

GW_EXPORT int dup(int fd) {
  return dup_done(fd, next_dup ? next_dup(fd) : (int)with_errno(GW_SYS_1(SYS_dup, fd)));
}
GW_EXPORT int dup2(int from, int to) {
  if (next_dup2) return dup_done(from, next_dup2(from, to));
  if (from == to) return GW_SYS_2(SYS_fcntl, from, F_GETFD) < 0 ? (int)with_errno(-EBADF) : to;
  return (int)with_errno(GW_SYS_3(SYS_dup3, from, to, 0));
}
GW_EXPORT int dup3(int from, int to, int flags) {
  return dup_done(from, next_dup3 ? next_dup3(from, to, flags) : (int)with_errno(GW_SYS_3(SYS_dup3, from, to, flags)));
}

// Passed on as a pointer: int arguments travel in the same register.
static int fcntl_common(int fd, int command, void* arg) {
  int ret = next_fcntl ? next_fcntl(fd, command, arg) : (int)with_errno(GW_SYS_3(SYS_fcntl, fd, command, arg));
  return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? dup_done(fd, ret) : ret;
}
GW_EXPORT int fcntl(int fd, int command, ...) {
  va_list args;
  va_start(args, command);
  void* arg = va_arg(args, void*);
  va_end(args);
  return fcntl_common(fd, command, arg);
}
GW_EXPORT int fcntl64(int fd, int command, ...) {
  va_list args;
  va_start(args, command);
  void* arg = va_arg(args, void*);
  va_end(args);
  return fcntl_common(fd, command, arg);
}

GW_EXPORT int close_range(unsigned first, unsigned last, int flags) {
  int ret = next_close_range ? next_close_range(first, last, flags)
                             : (int)with_errno(GW_SYS_3(SYS_close_range, first, last, flags));
  if (gw_active && ret == 0 && !(flags & 4 /* CLOSE_RANGE_CLOEXEC */)) {
    int saved = errno;
    gw_fd_range_closed(first, last);
    errno = saved;
  }
  return ret;
}

// libc's own would call close_range() past us.
GW_EXPORT void closefrom(int lowest) {
  close_range(lowest < 0 ? 0u : (unsigned)lowest, ~0u, 0);
}

// Leaves without destructors: the end of the process is noted here.
GW_EXPORT __attribute__((noreturn)) void _exit(int status) {
  gw_mark_end();
  for (;;) GW_SYS_1(SYS_exit_group, status);
}
GW_EXPORT __attribute__((noreturn)) void _Exit(int status) {
  _exit(status);
}
