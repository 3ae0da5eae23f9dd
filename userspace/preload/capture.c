// SPDX-License-Identifier: Apache-2.0
// The capture plan at work: which bytes of an ioctl's argument, and of buffers
// it points to, are copied before and after the call. Same plan format and
// meaning as in the kernel module. Copies go straight into the reserved record,
// so a call costs no stack; memory that cannot be read marks a capture only.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "raw.h"
#include "recorder.h"

enum { kBefore = 1, kAfter = 2, kDefaultBytes = 256, kNestedCap = 512, kXferBytes = 16, kHead = 256 };

#define FRONTEND (1u << GPUWATCH_NODE_CTL | 1u << GPUWATCH_NODE_GPU)
#define SIZE_AND_NR 0x3fff00ffu  // as an inner command of an XFER is compared

// The plan without a plan file, the same as the kernel module's: both forms of
// RM_ALLOC, RM_CONTROL, the XFER wrapper.
static const struct gpuwatch_plan_entry builtin_entries[] = {
    {.cmd = 0x0030002b,
     .cmd_mask = SIZE_AND_NR,
     .node_mask = FRONTEND,
     .in_bytes = 48,
     .out_bytes = 48,
     .nested = {{.ptr_offset = 16, .len_value = 32, .cap = kNestedCap, .len_kind = GPUWATCH_LEN_AT, .directions = 3}}},
    {.cmd = 0x0020002b,
     .cmd_mask = SIZE_AND_NR,
     .node_mask = FRONTEND,
     .in_bytes = 32,
     .out_bytes = 32,
     .nested = {{.ptr_offset = 16, .len_value = 24, .cap = kNestedCap, .len_kind = GPUWATCH_LEN_AT, .directions = 3}}},
    {.cmd = 0x0020002a,
     .cmd_mask = SIZE_AND_NR,
     .node_mask = FRONTEND,
     .in_bytes = 32,
     .out_bytes = 32,
     .nested = {{.ptr_offset = 16, .len_value = 24, .cap = kNestedCap, .len_kind = GPUWATCH_LEN_AT, .directions = 3}}},
    {.cmd = 0xd3, .cmd_mask = 0xff, .node_mask = FRONTEND, .flags = GPUWATCH_PLAN_XFER, .in_bytes = kXferBytes},
};

static const struct gpuwatch_plan_entry* entries = builtin_entries;
static const struct gpuwatch_plan_size* sizes;
static uint32_t nr_entries = sizeof builtin_entries / sizeof builtin_entries[0], nr_sizes,
                default_bytes = kDefaultBytes;
uint32_t gw_plan_error;

static bool nested_valid(const struct gpuwatch_plan_nested* n, uint32_t in_bytes) {
  if (n->len_kind > GPUWATCH_LEN_BY_KEY) return false;
  if (n->len_kind == GPUWATCH_LEN_NONE) return true;
  return n->cap <= GPUWATCH_PLAN_CAP_MAX && n->directions >= 1 && n->directions <= 3 &&
         n->ptr_offset + 8u <= in_bytes && (n->len_kind == GPUWATCH_LEN_FIXED || n->len_value + 4u <= in_bytes) &&
         (n->len_kind != GPUWATCH_LEN_BY_KEY || n->key_offset + 4u <= in_bytes);
}

static bool entry_valid(const struct gpuwatch_plan_entry* e) {
  if ((e->cmd_mask & 0xff) != 0xff || e->in_bytes > GPUWATCH_PLAN_CAP_MAX || e->out_bytes > GPUWATCH_PLAN_CAP_MAX ||
      e->out_offset > GPUWATCH_PLAN_CAP_MAX)
    return false;
  if ((e->flags & ~GPUWATCH_PLAN_XFER) || !e->node_mask || e->node_mask >> GPUWATCH_NODE_MAX) return false;
  if ((e->flags & GPUWATCH_PLAN_XFER) && e->in_bytes != kXferBytes) return false;
  return nested_valid(&e->nested[0], e->in_bytes) && nested_valid(&e->nested[1], e->in_bytes);
}

static uint32_t load_plan(long fd) {
  struct stat st;
  struct gw_plan_head head;
  if (GW_SYS_2(SYS_fstat, fd, &st) != 0) return EIO;
  if (GW_SYS_4(SYS_pread64, fd, &head, sizeof head, 0) != sizeof head || head.magic != GW_PLAN_MAGIC) return EBADMSG;
  if (head.nr_entries > GPUWATCH_PLAN_ENTRIES || head.nr_sizes > GPUWATCH_PLAN_SIZES ||
      head.default_bytes > GPUWATCH_PLAN_CAP_MAX)
    return E2BIG;
  size_t entry_bytes = head.nr_entries * sizeof(struct gpuwatch_plan_entry);
  size_t size_bytes = head.nr_sizes * sizeof(struct gpuwatch_plan_size);
  size_t bytes = sizeof head + entry_bytes + size_bytes;
  if ((uint64_t)st.st_size != bytes) return EBADMSG;
  // A private copy: the file may change under a mapping.
  long base = GW_SYS_6(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base < 0 && base > -4096) return ENOMEM;
  if (GW_SYS_4(SYS_pread64, fd, base, bytes, 0) != (long)bytes) return EIO;
  const struct gpuwatch_plan_entry* e = (void*)(base + (long)sizeof head);
  const struct gpuwatch_plan_size* s = (void*)(base + (long)(sizeof head + entry_bytes));
  for (uint32_t i = 0; i < head.nr_entries; i++)
    if (!entry_valid(&e[i])) return EINVAL;
  for (uint32_t i = 1; i < head.nr_sizes; i++)
    if (s[i].key <= s[i - 1].key) return EINVAL;
  entries = e;
  sizes = s;
  nr_entries = head.nr_entries;
  nr_sizes = head.nr_sizes;
  default_bytes = head.default_bytes;
  return 0;
}

void gw_plan_load(const char* path) {
  if (!path) return;
  long fd = GW_SYS_4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  gw_plan_error = fd < 0 ? (uint32_t)-fd : load_plan(fd);
  if (fd >= 0) GW_SYS_1(SYS_close, fd);
}

static const struct gpuwatch_plan_entry* find(uint32_t word, uint8_t kind) {
  for (uint32_t i = 0; i < nr_entries; i++)
    if (((word ^ entries[i].cmd) & entries[i].cmd_mask) == 0 && (entries[i].node_mask >> kind & 1)) return &entries[i];
  return NULL;
}

static bool size_by_key(uint32_t key, uint32_t* bytes) {
  uint32_t low = 0, high = nr_sizes;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (sizes[middle].key < key)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == nr_sizes || sizes[low].key != key) return false;
  *bytes = sizes[low].bytes;
  return true;
}

// Where a sandbox forbids process_vm_readv, a pipe tells bad memory from good.
// It is not kept open: programs close, or replace, descriptors they do not know.
static bool copy_by_pipe(void* to, uint64_t from, uint32_t len) {
  int ends[2];
  if (GW_SYS_2(SYS_pipe2, ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  bool ok = GW_SYS_3(SYS_write, ends[1], from, len) == (long)len && GW_SYS_3(SYS_read, ends[0], to, len) == (long)len;
  GW_SYS_1(SYS_close, ends[0]);
  GW_SYS_1(SYS_close, ends[1]);
  return ok;
}

static uint8_t vm_readv_refused;

bool gw_copy_user(void* to, uint64_t from, uint32_t len) {
  struct iovec local = {to, len}, remote = {(void*)(uintptr_t)from, len};
  if (!__atomic_load_n(&vm_readv_refused, __ATOMIC_RELAXED)) {
    long got = GW_SYS_6(SYS_process_vm_readv, GW_SYS_0(SYS_getpid), &local, 1, &remote, 1, 0);
    if (got == (long)len) return true;
    if (got != -ENOSYS && got != -EPERM) return false;
    __atomic_store_n(&vm_readv_refused, 1, __ATOMIC_RELAXED);
  }
  return copy_by_pipe(to, from, len);
}

// Bytes of a capture at most, as reserved.
static uint32_t room(uint32_t len) {
  return (uint32_t)sizeof(struct gpuwatch_capture) + ((len + 7u) & ~7u);
}

static void capture(struct gw_ioctl_call* call, uint16_t what, const void* copy, uint64_t from, uint32_t want,
                    uint32_t len, uint32_t offset) {
  struct gpuwatch_capture* head = (struct gpuwatch_capture*)((char*)call->rec + call->used);
  uint32_t padded = (len + 7u) & ~7u;
  head->what = what;
  head->flags = want > len ? GPUWATCH_CAPF_CAPPED : 0;
  head->want = want;
  head->offset = offset;
  if (copy) {
    memcpy(head + 1, copy, len);
  } else if (!gw_copy_user(head + 1, from, len)) {
    head->flags |= GPUWATCH_CAPF_FAULT;
    len = padded = 0;
  }
  head->len = len;
  memset((char*)(head + 1) + len, 0, padded - len);
  call->used += (uint32_t)sizeof *head + padded;
  call->io->nr_captures++;
}

struct wanted {
  uint16_t what;
  uint64_t from;
  uint32_t want, len, offset;  // offset: of `from` in the argument
};

// Several captures by one system call, which costs most of a copy. False, and
// nothing written, when not all bytes can be read: then each is tried alone.
static bool capture_together(struct gw_ioctl_call* call, const struct wanted* list, int n) {
  struct iovec local[3], remote[3];
  uint32_t at = call->used;
  long total = 0;
  if (__atomic_load_n(&vm_readv_refused, __ATOMIC_RELAXED)) return false;
  for (int i = 0; i < n; i++) {
    local[i] = (struct iovec){(char*)call->rec + at + sizeof(struct gpuwatch_capture), list[i].len};
    remote[i] = (struct iovec){(void*)(uintptr_t)list[i].from, list[i].len};
    at += room(list[i].len);
    total += list[i].len;
  }
  if (GW_SYS_6(SYS_process_vm_readv, GW_SYS_0(SYS_getpid), local, n, remote, n, 0) != total) return false;
  for (int i = 0; i < n; i++) {
    struct gpuwatch_capture* head = (struct gpuwatch_capture*)((char*)call->rec + call->used);
    *head = (struct gpuwatch_capture){.what = list[i].what,
                                      .flags = list[i].want > list[i].len ? GPUWATCH_CAPF_CAPPED : 0,
                                      .want = list[i].want,
                                      .len = list[i].len,
                                      .offset = list[i].offset};
    memset((char*)(head + 1) + list[i].len, 0, room(list[i].len) - sizeof *head - list[i].len);
    call->used += room(list[i].len);
    call->io->nr_captures++;
  }
  return true;
}

static uint32_t u32_at(const unsigned char* bytes, uint32_t len, uint32_t offset, bool* ok) {
  uint32_t value = 0;
  if (offset > len || len - offset < sizeof value)
    *ok = false;
  else
    memcpy(&value, bytes + offset, sizeof value);
  return value;
}

// Reads one nested pointer and its length from the argument as it was before
// the call; false when there is none.
static bool nested_of(const struct gpuwatch_plan_nested* n, const unsigned char* arg, uint32_t arg_len, uint64_t* ptr,
                      uint32_t* want) {
  bool ok = n->len_kind != GPUWATCH_LEN_NONE && n->directions != 0;
  if (!ok || n->ptr_offset > arg_len || arg_len - n->ptr_offset < sizeof *ptr) return false;
  memcpy(ptr, arg + n->ptr_offset, sizeof *ptr);
  *want = n->len_value;
  if (n->len_kind == GPUWATCH_LEN_BY_KEY) {
    uint32_t key = u32_at(arg, arg_len, n->key_offset, &ok);
    if (!ok || !size_by_key(key, want) || *want == 0) {
      ok = true;
      *want = u32_at(arg, arg_len, n->len_value, &ok);
    }
  } else if (n->len_kind == GPUWATCH_LEN_AT) {
    *want = u32_at(arg, arg_len, n->len_value, &ok);
  }
  return ok && *ptr != 0 && *want != 0;
}

static uint32_t least(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

static uint32_t most(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}

struct argument {
  const struct gpuwatch_plan_entry* entry;
  uint32_t want, in, out, out_offset;
};

// What to copy for a command whose word declares so many bytes.
static struct argument argument_of(uint32_t word, uint32_t declared, uint8_t kind) {
  struct argument a = {.entry = find(word, kind), .want = declared, .in = default_bytes, .out = default_bytes};
  if (a.entry) {
    a.in = a.entry->in_bytes;
    a.out = a.entry->out_bytes;
    a.out_offset = a.entry->out_offset;
    if (!declared) a.want = most(a.in, a.out + a.out_offset);
  }
  a.in = least(a.in, a.want);
  a.out = a.want > a.out_offset ? least(a.out, a.want - a.out_offset) : 0;
  return a;
}

static bool is_xfer(const struct gpuwatch_plan_entry* e) {
  return e && (e->flags & GPUWATCH_PLAN_XFER);
}

// Must decide as the kernel module's record/ioctl.c does, so that both ways
// give the same records of the same calls.
void gw_ioctl_begin(struct gw_ioctl_call* call, struct gw_proc* p, uint32_t cmd, uint64_t arg) {
  struct {
    uint32_t cmd, size;
    uint64_t ptr;
  } xfer = {0, 0, 0};
  bool xfer_ok = false;
  uint64_t from = arg;
  struct argument a = argument_of(cmd, _IOC_DIR(cmd) == _IOC_NONE ? 0 : _IOC_SIZE(cmd), call->node.kind);
  const bool wrapped = is_xfer(a.entry);
  if (wrapped) {
    xfer_ok = gw_copy_user(&xfer, arg, sizeof xfer);
    if (!xfer_ok) memset(&xfer, 0, sizeof xfer);
    from = xfer.ptr;
    a = argument_of(least(xfer.size, _IOC_SIZEMASK) << _IOC_SIZESHIFT | (xfer.cmd & 0xff), xfer.size, call->node.kind);
    if (!xfer.size || is_xfer(a.entry)) a = (struct argument){0};
  }
  const struct gpuwatch_plan_entry* e = a.entry;

  // What nested pointers need is known only from the argument, so its head is
  // copied before space is reserved. Pointers beyond the head are not followed.
  unsigned char head[kHead];
  uint32_t head_len = least(a.in, sizeof head);
  bool nested = e && (e->nested[0].len_kind || e->nested[1].len_kind) && head_len && gw_copy_user(head, from, head_len);
  uint32_t total = (uint32_t)(sizeof *call->rec + sizeof *call->io) + (wrapped ? room(sizeof xfer) : 0);
  if (a.in) total += room(a.in);
  if (a.out) total += room(a.out);
  for (int i = 0; i < 2; i++) {
    call->nested[i] = 0;
    call->nested_dirs[i] = 0;
    if (!nested || !nested_of(&e->nested[i], head, head_len, &call->nested[i], &call->want[i + 1])) continue;
    call->len[i + 1] = least(call->want[i + 1], e->nested[i].cap);
    if (call->len[i + 1]) call->nested_dirs[i] = (uint8_t)e->nested[i].directions;
    if (call->nested_dirs[i] & kBefore) total += room(call->len[i + 1]);
    if (call->nested_dirs[i] & kAfter) total += room(call->len[i + 1]);
  }
  call->entry = gw_reserve(p, GW_ENTRY_RECORD, total);
  if (!call->entry) return;
  call->proc = p;
  call->rec = (struct gpuwatch_rec*)(call->entry + 1);
  call->io = (struct gpuwatch_rec_ioctl*)(call->rec + 1);
  memset(call->io, 0, sizeof *call->io);
  call->used = sizeof *call->rec + sizeof *call->io;
  call->arg = from;
  call->want[0] = a.want;
  call->arg_out = a.out;
  call->out_offset = a.out_offset;
  call->io->cmd = cmd;
  call->io->arg = arg;
  call->rec->flags = 0;
  if (wrapped) {
    call->rec->flags = GPUWATCH_F_XFER;
    call->io->inner_cmd = xfer.cmd;
    call->io->inner_size = xfer.size;
    capture(call, GPUWATCH_CAP_XFER_IN, xfer_ok ? &xfer : NULL, arg, sizeof xfer, sizeof xfer, 0);
  }
  if (a.in) capture(call, GPUWATCH_CAP_ARG_IN, nested && a.in <= sizeof head ? head : NULL, from, a.want, a.in, 0);
  for (int i = 0; i < 2; i++)
    if (call->nested_dirs[i] & kBefore)
      capture(call, (uint16_t)(GPUWATCH_CAP_NESTED0_IN + 2 * i), NULL, call->nested[i], call->want[i + 1],
              call->len[i + 1], 0);
}

void gw_ioctl_end(struct gw_ioctl_call* call, int64_t ret, uint64_t begin_ns, uint64_t end_ns) {
  if (!call->entry) return;
  struct wanted after[3];
  int n = 0;
  if (call->arg_out)
    after[n++] = (struct wanted){GPUWATCH_CAP_ARG_OUT, call->arg + call->out_offset, call->want[0], call->arg_out,
                                 call->out_offset};
  for (int i = 0; i < 2; i++)
    if (call->nested_dirs[i] & kAfter)
      after[n++] = (struct wanted){(uint16_t)(GPUWATCH_CAP_NESTED0_OUT + 2 * i), call->nested[i], call->want[i + 1],
                                   call->len[i + 1], 0};
  if (n < 2 || !capture_together(call, after, n))
    for (int i = 0; i < n; i++)
      capture(call, after[i].what, NULL, after[i].from, after[i].want, after[i].len, after[i].offset);
  uint16_t flags = call->rec->flags;
  gw_fill_head(call->proc, call->rec, GPUWATCH_REC_IOCTL, call->used, end_ns);
  call->rec->flags |= flags;
  gw_fill_file(call->rec, call->file_id, &call->node);
  call->io->ret = ret;
  call->io->duration_ns = end_ns - begin_ns;
  gw_commit(call->entry);
}
