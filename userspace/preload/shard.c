// SPDX-License-Identifier: Apache-2.0
// The shard of a process: a file mapped shared, so that what is committed
// outlives any kind of death. Space is reserved by one compare-and-swap; disk
// space is allocated ahead of use, since touching a page of a full disk would
// kill the program. Keeps no descriptor: programs close what they do not know.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "raw.h"
#include "recorder.h"

enum { kStep = 1 << 20, kFallbackMax = 8 << 20, kImages = 1000000 };

uint64_t gw_shard_max = 256ull << 20;

static char* put_text(char* at, const char* text) {
  while (*text) *at++ = *text++;
  return at;
}

static char* put_number(char* at, uint32_t value) {
  char digits[10];
  int n = 0;
  do digits[n++] = (char)('0' + value % 10);
  while ((value /= 10) != 0);
  while (n) *at++ = digits[--n];
  return at;
}

static void shard_path(char* out, const struct gw_proc* p) {
  char* at = put_text(out, gw_dir);
  *at++ = '/';
  at = put_number(at, p->pid);
  *at++ = '.';
  at = put_number(at, p->image);
  *put_text(at, GW_SHARD_SUFFIX) = 0;
}

// Path buffers are large for foreign stacks, so there is one; gw_lock guards it.
static char path_buffer[GPUWATCH_PATH_MAX + 64];

// Beyond RLIMIT_FSIZE the kernel would send SIGXFSZ, which kills.
static bool may_grow_to(uint64_t bytes) {
  struct rlimit limit;
  return GW_SYS_4(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) == 0 && bytes <= limit.rlim_cur;
}

static bool allocate(long fd, uint64_t from, uint64_t to) {
  return may_grow_to(to) && GW_SYS_4(SYS_fallocate, fd, 0, from, to - from) == 0;
}

static bool fill_with_zeros(long fd, uint64_t bytes) {
  static const char zeros[4096];
  if (!may_grow_to(bytes)) return false;
  for (uint64_t at = 0; at < bytes; at += sizeof zeros)
    if (GW_SYS_4(SYS_pwrite64, fd, zeros, sizeof zeros, at) != sizeof zeros) return false;
  return true;
}

int gw_shard_create(struct gw_proc* p) {
  uint64_t max = gw_shard_max, limit = kStep;
  long fd = -EEXIST;
  for (p->image = 0; p->image < kImages && fd == -EEXIST; p->image++) {
    shard_path(path_buffer, p);
    fd = GW_SYS_4(SYS_openat, AT_FDCWD, path_buffer, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  }
  if (fd < 0) return (int)fd;
  p->image--;
  if (!allocate(fd, 0, limit)) {
    // No allocation on this file system: one small shard, written out now.
    max = limit = max < kFallbackMax ? max : kFallbackMax;
    if (!fill_with_zeros(fd, limit)) {
      GW_SYS_1(SYS_close, fd);
      GW_SYS_3(SYS_unlinkat, AT_FDCWD, path_buffer, 0);
      return -ENOSPC;
    }
  }
  long base = GW_SYS_6(SYS_mmap, 0, max, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  GW_SYS_1(SYS_close, fd);
  if (base < 0 && base > -4096) {
    GW_SYS_3(SYS_unlinkat, AT_FDCWD, path_buffer, 0);
    return (int)base;
  }
  GW_SYS_3(SYS_madvise, base, max, MADV_DONTFORK);
  GW_SYS_3(SYS_madvise, base, max, MADV_DONTDUMP);
  struct gw_shard_head* head = (struct gw_shard_head*)base;
  head->version = GW_SHARD_VERSION;
  head->head_bytes = GW_SHARD_HEAD_BYTES;
  if (GW_SYS_3(SYS_getrandom, &head->cookie, sizeof head->cookie, 1 /* GRND_NONBLOCK */) != sizeof head->cookie)
    head->cookie = gw_now_ns() * 0x9e3779b97f4a7c15ull + p->pid;
  head->cookie |= 1;  // never 0, which is what unwritten space holds
  head->max = max;
  head->limit = limit;
  head->tail = GW_SHARD_HEAD_BYTES;
  head->start_ns = p->start_ns;
  head->created_ns = gw_now_ns();
  head->tgid = p->pid;
  head->image = p->image;
  head->plan_error = gw_plan_error;
  __atomic_store_n(&head->magic, GW_SHARD_MAGIC, __ATOMIC_RELEASE);
  p->shard = head;
  return 0;
}

static bool grow(struct gw_proc* p, uint64_t need) {
  struct gw_shard_head* head = p->shard;
  uint64_t mask;
  gw_lock(p, &mask);
  uint64_t limit = __atomic_load_n(&head->limit, __ATOMIC_RELAXED);
  bool ok = need <= limit;
  if (!ok && need <= __atomic_load_n(&head->max, __ATOMIC_RELAXED)) {
    uint64_t to = (need + kStep - 1) / kStep * kStep;
    if (to > head->max) to = head->max;
    shard_path(path_buffer, p);
    long fd = GW_SYS_4(SYS_openat, AT_FDCWD, path_buffer, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
    if (fd >= 0) {
      ok = allocate(fd, limit, to);
      GW_SYS_1(SYS_close, fd);
      if (ok) __atomic_store_n(&head->limit, to, __ATOMIC_RELEASE);
    }
    if (!ok) __atomic_store_n(&head->max, limit, __ATOMIC_RELAXED);  // do not try again
  }
  gw_unlock(p, mask);
  return ok;
}

struct gw_shard_entry* gw_reserve(struct gw_proc* p, uint16_t kind, uint32_t content) {
  struct gw_shard_head* head = p->shard;
  uint32_t bytes = (uint32_t)sizeof(struct gw_shard_entry) + ((content + 7u) & ~7u);
  if (content > GPUWATCH_REC_MAX) {
    __atomic_add_fetch(&head->dropped[GW_DROP_TOO_BIG], 1, __ATOMIC_RELAXED);
    return NULL;
  }
  __u64 tail = __atomic_load_n(&head->tail, __ATOMIC_RELAXED);
  do {
    // Acquire pairs with the release in grow(): the space is there.
    while (tail + bytes > __atomic_load_n(&head->limit, __ATOMIC_ACQUIRE)) {
      if (tail + bytes > __atomic_load_n(&head->max, __ATOMIC_RELAXED) || !grow(p, tail + bytes)) {
        __atomic_add_fetch(&head->dropped[GW_DROP_FULL], 1, __ATOMIC_RELAXED);
        return NULL;
      }
    }
  } while (!__atomic_compare_exchange_n(&head->tail, &tail, tail + bytes, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  struct gw_shard_entry* entry = (struct gw_shard_entry*)((char*)head + tail);
  entry->bytes = bytes;
  entry->kind = kind;
  entry->state = GW_ENTRY_OPEN;
  // Release: who sees the cookie sees the length. A process killed before this
  // leaves a hole, and the reader looks for the next cookie.
  __atomic_store_n(&entry->cookie, head->cookie, __ATOMIC_RELEASE);
  return entry;
}

void gw_commit(struct gw_shard_entry* entry) {
  __atomic_store_n(&entry->state, GW_ENTRY_COMMITTED, __ATOMIC_RELEASE);
}
