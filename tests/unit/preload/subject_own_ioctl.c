// SPDX-License-Identifier: Apache-2.0
// A recorded program that puts an ioctl() of its own before libc's, for its
// libraries too, and makes the call by syscall(): some allocators and profilers do.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static int seen;

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  seen++;
  return (int)syscall(SYS_ioctl, fd, request, argument);
}

int main(void) {
  uint32_t argument[8] = {0, 33};
  int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd < 0 || ioctl(fd, 0xc020462au, argument) != -1) return 1;
  return close(fd) == 0 && seen == 1 ? 0 : 2;
}
