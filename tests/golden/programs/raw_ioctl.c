// SPDX-License-Identifier: Apache-2.0
// Drives the driver without libcuda, as an evasion would: a client made through
// the XFER wrapper, a control that needs privileges asked for without them, an
// escape that does not exist. Nothing here changes the GPU.
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct xfer {
  uint32_t cmd, size;
  uint64_t ptr;
};
struct rm_alloc {  // NVOS64_PARAMETERS
  uint32_t root, parent, object, rm_class;
  uint64_t params, rights;
  uint32_t params_size, flags, status, pad;
};
struct rm_control {  // NVOS54_PARAMETERS
  uint32_t client, object, cmd, flags;
  uint64_t params;
  uint32_t params_size, status;
};
struct rm_free {  // NVOS00_PARAMETERS
  uint32_t root, parent, object, status;
};

int main(void) {
  uint32_t ids[32] = {0}, lock_times[10] = {0};
  struct rm_alloc alloc = {.rm_class = 0};  // NV01_ROOT: a client
  struct xfer wrapped = {0x2b, sizeof alloc, (uintptr_t)&alloc};
  if (getuid() == 0 && setuid(65534) != 0) return 1;
  int fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
  if (fd < 0 || ioctl(fd, 0xc01046d3, &wrapped) != 0 || alloc.status != 0) return 1;

  struct rm_control control = {.client = alloc.object,
                               .object = alloc.object,
                               .cmd = 0x201,  // GPU_GET_ATTACHED_IDS
                               .params = (uintptr_t)ids,
                               .params_size = sizeof ids};
  wrapped = (struct xfer){0x2a, sizeof control, (uintptr_t)&control};
  if (ioctl(fd, 0xc01046d3, &wrapped) != 0 || control.status != 0) return 2;

  control.cmd = 0x109;  // SYSTEM_GET_LOCK_TIMES: for administrators
  control.params = (uintptr_t)lock_times;
  control.params_size = sizeof lock_times;
  if (ioctl(fd, 0xc020462a, &control) != 0) return 3;
  printf("privileged control: status 0x%x\n", control.status);
  if (control.status == 0) return 3;

  uint64_t nothing = 0;
  int ret = ioctl(fd, 0xc008467f, &nothing);
  printf("unknown escape: %d (%s)\n", ret, strerror(errno));

  struct rm_free release = {alloc.object, alloc.object, alloc.object, 0};
  if (ioctl(fd, 0xc0104629, &release) != 0 || release.status != 0) return 4;
  return close(fd);
}
