// SPDX-License-Identifier: Apache-2.0
// Tells NVIDIA device nodes from everything else, by the name under which the
// kernel lists a char-major and by the minor. Never looks at a path's spelling.
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "raw.h"
#include "recorder.h"

enum { kMajors = 512, kUnlisted = 0, kForeign = 1, kFrontend = 2, kUvm = 3, kFixedKind = 16 };

// One byte per major: a constant above, or kFixedKind + gpuwatch_node_kind.
static uint8_t majors[kMajors];
static uint8_t majors_loaded;
char gw_majors_file[GPUWATCH_PATH_MAX] = "/proc/devices";

static uint8_t family_of(const char* name, size_t len) {
  static const struct {
    const char* name;
    uint8_t family;
  } known[] = {
      {"nvidia", kFrontend},
      {"nvidia-frontend", kFrontend},
      {"nvidiactl", kFrontend},
      {"nvidia-modeset", kFrontend},
      {"nvidia-uvm", kUvm},
      {"nvidia-caps", kFixedKind + GPUWATCH_NODE_CAPS},
      {"nvidia-caps-imex-channels", kFixedKind + GPUWATCH_NODE_IMEX},
      {"nvidia-nvswitch", kFixedKind + GPUWATCH_NODE_NVSWITCH},
      {"nvidia-nvlink", kFixedKind + GPUWATCH_NODE_NVLINK},
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (strlen(known[i].name) == len && memcmp(known[i].name, name, len) == 0) return known[i].family;
  return len >= 6 && memcmp(name, "nvidia", 6) == 0 ? kFixedKind + GPUWATCH_NODE_OTHER : kForeign;
}

// Lines are "195 nvidia"; the list of block devices that follows is left out.
static void parse_line(const char* line, size_t len) {
  size_t i = 0, major = 0;
  while (i < len && line[i] == ' ') i++;
  size_t digits = i;
  for (; i < len && line[i] >= '0' && line[i] <= '9' && major < 100000; i++)
    major = major * 10 + (size_t)(line[i] - '0');
  if (i == digits || i == len || line[i] != ' ' || major >= kMajors) return;
  uint8_t family = family_of(line + i + 1, len - i - 1);
  // Several names may share a major: an NVIDIA one wins.
  if (majors[major] <= kForeign) majors[major] = family;
}

static void load_majors(void) {
  char buffer[256];
  size_t have = 0;
  long fd = GW_SYS_4(SYS_openat, AT_FDCWD, gw_majors_file, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return;
  for (;;) {
    long got = GW_SYS_3(SYS_read, fd, buffer + have, sizeof buffer - have);
    if (got <= 0) break;
    have += (size_t)got;
    size_t start = 0;
    for (size_t i = 0; i < have; i++) {
      if (buffer[i] != '\n') continue;
      if (i - start >= 5 && memcmp(buffer + start, "Block", 5) == 0) goto out;
      parse_line(buffer + start, i - start);
      start = i + 1;
    }
    if (start == 0 && have == sizeof buffer) start = have;  // no driver has such a name
    memmove(buffer, buffer + start, have - start);
    have -= start;
  }
out:
  GW_SYS_1(SYS_close, fd);
  __atomic_store_n(&majors_loaded, 1, __ATOMIC_RELEASE);
}

static bool node_of_rdev(dev_t dev, struct gw_node* out) {
  unsigned major = gnu_dev_major(dev), minor = gnu_dev_minor(dev);
  if (major >= kMajors) return false;
  // A driver may be loaded after us: an unlisted major is looked up again.
  if (!__atomic_load_n(&majors_loaded, __ATOMIC_ACQUIRE) || majors[major] == kUnlisted) load_majors();
  uint8_t family = majors[major];
  if (family <= kForeign) return false;
  out->rdev = (major << 20) | minor;
  if (family == kFrontend)
    out->kind = minor == 255 ? GPUWATCH_NODE_CTL : minor == 254 ? GPUWATCH_NODE_MODESET : GPUWATCH_NODE_GPU;
  else if (family == kUvm)
    out->kind = minor == 0 ? GPUWATCH_NODE_UVM : minor == 1 ? GPUWATCH_NODE_UVM_TOOLS : GPUWATCH_NODE_OTHER;
  else
    out->kind = (uint8_t)(family - kFixedKind);
  return true;
}

static bool node_at(int dirfd, const char* path, int flags, struct gw_node* out) {
  struct stat st;
#if defined(SYS_newfstatat)
  long ret = GW_SYS_4(SYS_newfstatat, dirfd, path, &st, flags);
#else
  long ret = GW_SYS_4(SYS_fstatat, dirfd, path, &st, flags);
#endif
  return ret == 0 && S_ISCHR(st.st_mode) && node_of_rdev(st.st_rdev, out);
}

bool gw_node_of_fd(int fd, struct gw_node* out) {
  struct stat st;
  return fd >= 0 && GW_SYS_2(SYS_fstat, fd, &st) == 0 && S_ISCHR(st.st_mode) && node_of_rdev(st.st_rdev, out);
}

bool gw_node_of_path(int dirfd, const char* path, struct gw_node* out) {
  return node_at(dirfd, path, 0, out);
}
