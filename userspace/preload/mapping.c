// SPDX-License-Identifier: Apache-2.0
// Which file lies at an address, from /proc/self/maps. It is read in small
// pieces: large programs have thousands of lines, and there is no heap.
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>

#include "raw.h"
#include "recorder.h"

struct text {
  long fd;
  uint32_t at, have;
  char bytes[2048];
};

// The next character; 0 at the end, and for a NUL, which maps never has.
static char next(struct text* t) {
  if (t->at == t->have) {
    long got = GW_SYS_3(SYS_read, t->fd, t->bytes, sizeof t->bytes);
    if (got <= 0) return 0;
    t->have = (uint32_t)got;
    t->at = 0;
  }
  return t->bytes[t->at++];
}

// A hexadecimal or decimal number; *stop is the character behind it.
static uint64_t number(struct text* t, uint64_t base, char* stop) {
  uint64_t value = 0;
  for (;;) {
    char c = next(t);
    uint64_t digit = c >= '0' && c <= '9' ? (uint64_t)(c - '0') : c >= 'a' && c <= 'f' ? (uint64_t)(c - 'a' + 10) : 16;
    if (digit >= base) {
      *stop = c;
      return value;
    }
    value = value * base + digit;
  }
}

static bool skip_line(struct text* t, char c) {
  while (c && c != '\n') c = next(t);
  return c == '\n';
}

// Leaves *file all 0 where no file is mapped there.
void gw_file_at(uint64_t address, struct gw_image_file* file, char* path, uint32_t size) {
  struct text t = {.fd = GW_SYS_4(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0)};
  memset(file, 0, sizeof *file);
  if (t.fd < 0) return;
  for (;;) {
    char stop = 0;
    uint64_t begin = number(&t, 16, &stop);
    if (stop != '-') break;
    uint64_t end = number(&t, 16, &stop);
    if (address < begin || address >= end) {
      if (skip_line(&t, stop)) continue;
      break;
    }
    for (int i = 0; i < 5; i++) next(&t);  // "r-xp "
    uint64_t offset = number(&t, 16, &stop);
    uint64_t major = number(&t, 16, &stop), minor = number(&t, 16, &stop);
    file->ino = number(&t, 10, &stop);
    if (!file->ino) break;
    file->dev = (uint32_t)(major << 20 | (minor & 0xfffff));
    file->offset = address - begin + offset;
    while (stop == ' ') stop = next(&t);
    while (stop && stop != '\n' && file->path_len < size) {
      path[file->path_len++] = stop;
      stop = next(&t);
    }
    break;
  }
  GW_SYS_1(SYS_close, t.fd);
}
