// SPDX-License-Identifier: Apache-2.0
// Loaded by dlopen(), as programs load libcuda: calls the node on its own.
#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <unistd.h>

int subject_library_call(uint32_t value);

int subject_library_call(uint32_t value) {
  uint32_t argument[8] = {1, value};
  int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd < 0 || ioctl(fd, 0xc020462a, argument) != -1) return 1;
  return close(fd);
}
