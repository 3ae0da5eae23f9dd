// SPDX-License-Identifier: Apache-2.0
// ioctl() of a kernel that grants what is asked of files named as the driver's
// nodes. Preloaded behind the agent, or alone.
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int ioctl(int fd, unsigned long request, ...);
int ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  char link[64], path[256];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length > 0) {
    path[length] = 0;
    if (strstr(path, "/nvidia")) return 0;
  }
  return (int)syscall(SYS_ioctl, fd, request, argument);
}
