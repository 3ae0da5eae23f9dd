// SPDX-License-Identifier: Apache-2.0
// Calls made through libc's syscall() that touch device nodes, descriptors or
// programs: they take the same way as the functions of the same name. Only
// those; see syscall_x86_64.S.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "raw.h"
#include "recorder.h"

extern const unsigned char gw_syscall_watched[512];
const unsigned char gw_syscall_watched[512] = {
    [SYS_open] = 1, [SYS_openat] = 1, [SYS_ioctl] = 1, [SYS_mmap] = 1,  [SYS_close] = 1,  [SYS_close_range] = 1,
    [SYS_dup] = 1,  [SYS_dup2] = 1,   [SYS_dup3] = 1,  [SYS_fcntl] = 1, [SYS_execve] = 1, [SYS_execveat] = 1,
};

long gw_syscall(long number, long a, long b, long c, long d, long e, long f);

// The seventh argument lies on the stack, where syscall()'s caller put it; for
// calls with fewer it is whatever was there, and is not used.
long gw_syscall(long number, long a, long b, long c, long d, long e, long f) {
  switch (number) {
    case SYS_open:
      return openat(AT_FDCWD, (const char*)a, (int)b, (mode_t)c);
    case SYS_openat:
      return openat((int)a, (const char*)b, (int)c, (mode_t)d);
    case SYS_ioctl:
      return ioctl((int)a, (unsigned long)b, c);
    case SYS_mmap:
      return (long)mmap((void*)a, (size_t)b, (int)c, (int)d, (int)e, (off_t)f);
    case SYS_close:
      return close((int)a);
    case SYS_close_range:
      return close_range((unsigned)a, (unsigned)b, (int)c);
    case SYS_dup:
      return dup((int)a);
    case SYS_dup2:
      return dup2((int)a, (int)b);
    case SYS_dup3:
      return dup3((int)a, (int)b, (int)c);
    case SYS_fcntl:
      return fcntl((int)a, (int)b, c);
    case SYS_execve:
      return execve((const char*)a, (char* const*)b, (char* const*)c);
    default:
      return execveat((int)a, (const char*)b, (char* const*)c, (char* const*)d, (int)e);
  }
}
