// SPDX-License-Identifier: Apache-2.0
// GPU module images: how long the image at an address is, and its bytes into a
// file of their own beside the shard. Same measure and same record as the
// kernel module's. The image is never touched directly: system calls copy it,
// so a bad pointer shortens the copy and does nothing else.
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>

#include "raw.h"
#include "recorder.h"

enum { kChunk = 1 << 20, kTextStep = 4096, kPathMax = GPUWATCH_PATH_MAX, kFilePathMax = 1024 };

#define WRAPPER_MAGIC 0x466243b1u
#define CONTAINER_MAGIC 0xba55ed50u
#define CONTAINER_HEAD 16

uint64_t gw_image_max = 64ull << 20;    // bytes of one image
uint64_t gw_images_max = 256ull << 20;  // bytes of all images of one process

struct measure {
  uint64_t start, bytes;
  uint16_t kind, flags, parts;
};

static uint16_t half_at(const unsigned char* bytes) {
  uint16_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}
static uint32_t word_at(const unsigned char* bytes) {
  uint32_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}
static uint64_t long_at(const unsigned char* bytes) {
  uint64_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

static void measure_container(struct measure* m) {
  unsigned char head[CONTAINER_HEAD];
  m->kind = GPUWATCH_IMAGE_FATBIN;
  m->parts = 1;
  if (!gw_copy_user(head, m->start, sizeof head)) {
    m->flags |= GPUWATCH_IMAGEF_FAULT;
    return;
  }
  uint64_t body = long_at(head + 8), size = half_at(head + 6);
  if (word_at(head) != CONTAINER_MAGIC || size < CONTAINER_HEAD || body > 1ull << 47) {
    m->flags |= GPUWATCH_IMAGEF_MALFORMED;
    m->bytes = CONTAINER_HEAD;
  } else {
    m->bytes = size + body;
  }
}

static void measure_elf(struct measure* m) {
  Elf64_Ehdr head;
  m->kind = GPUWATCH_IMAGE_ELF;
  m->parts = 1;
  if (!gw_copy_user(&head, m->start, sizeof head)) {
    m->flags |= GPUWATCH_IMAGEF_FAULT;
    return;
  }
  uint64_t sections = head.e_shnum;
  if (sections == 0 && head.e_shoff != 0) {  // the count lies in section 0
    Elf64_Shdr first;
    if (head.e_shoff < 1ull << 47 && gw_copy_user(&first, m->start + head.e_shoff, sizeof first))
      sections = first.sh_size;
  }
  uint64_t a = head.e_shoff + sections * sizeof(Elf64_Shdr);
  uint64_t b = head.e_phoff + head.e_phnum * (uint64_t)sizeof(Elf64_Phdr);
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || sections > 1 << 24 || head.e_shoff > 1ull << 47 ||
      head.e_phoff > 1ull << 47) {
    m->flags |= GPUWATCH_IMAGEF_MALFORMED;
    m->bytes = sizeof head;
    return;
  }
  m->bytes = a > b ? a : b;
  if (m->bytes < sizeof head) m->bytes = sizeof head;
}

// Steps never cross a page before its end is known to be readable.
static void measure_text(struct measure* m) {
  char step[kTextStep];
  m->kind = GPUWATCH_IMAGE_TEXT;
  m->parts = 1;
  for (uint64_t at = m->start; at - m->start <= gw_image_max;) {
    uint32_t len = kTextStep - (uint32_t)(at % kTextStep);
    if (!gw_copy_user(step, at, len)) {
      m->flags |= GPUWATCH_IMAGEF_FAULT;
      break;
    }
    const char* end = memchr(step, 0, len);
    at += end ? (uint64_t)(end - step) : len;
    m->bytes = at - m->start;
    if (end) return;
  }
  if (!(m->flags & GPUWATCH_IMAGEF_FAULT)) m->flags |= GPUWATCH_IMAGEF_TOO_BIG;
}

static struct measure measure_image(uint64_t address, uint64_t size) {
  struct measure m = {.start = address};
  unsigned char head[24];
  if (!gw_copy_user(head, address, 4)) {
    m.flags = GPUWATCH_IMAGEF_FAULT;
    return m;
  }
  uint32_t magic = word_at(head);
  if (magic == WRAPPER_MAGIC) {
    m.flags = GPUWATCH_IMAGEF_WRAPPED;
    if (!gw_copy_user(head, address, sizeof head)) {
      m.flags |= GPUWATCH_IMAGEF_FAULT;
      return m;
    }
    m.start = long_at(head + 8);
    measure_container(&m);
  } else if (magic == CONTAINER_MAGIC) {
    measure_container(&m);
  } else if (memcmp(head, ELFMAG, SELFMAG) == 0) {
    measure_elf(&m);
  } else if (size == 0) {
    measure_text(&m);
  }
  if (size != 0 && !(m.flags & GPUWATCH_IMAGEF_WRAPPED)) {
    m.flags = GPUWATCH_IMAGEF_SIZED;
    m.bytes = size;
    m.parts = 1;
    if (m.kind == GPUWATCH_IMAGE_UNKNOWN && (head[0] == '/' || head[0] == '.' || head[0] == '\n'))
      m.kind = GPUWATCH_IMAGE_TEXT;
  }
  return m;
}

// Guarded by gw_lock: large for a foreign stack.
static char path[kPathMax + 64];

static void blob_path(char* out, uint64_t id) {
  static const char digits[] = "0123456789abcdef";
  size_t n = strlen(gw_dir);
  memcpy(out, gw_dir, n);
  out[n++] = '/';
  for (int shift = 60; shift >= 0; shift -= 4) out[n++] = digits[id >> shift & 15];
  memcpy(out + n, GW_BLOB_SUFFIX, sizeof GW_BLOB_SUFFIX);
}

static long open_blob(struct gw_proc* p, uint64_t id) {
  uint64_t mask;
  gw_lock(p, &mask);
  blob_path(path, id);
  long fd = GW_SYS_4(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  gw_unlock(p, mask);
  return fd;
}

// Bytes of a process's budget, taken before they are written; less is given
// when less is left. RLIMIT_FSIZE bounds them too: beyond it SIGXFSZ would kill.
static uint64_t take_budget(struct gw_proc* p, uint64_t want, uint16_t* flags) {
  struct rlimit limit;
  uint64_t give = want, used = __atomic_load_n(&p->image_bytes, __ATOMIC_RELAXED), left;
  if (give > gw_image_max) {
    give = gw_image_max;
    *flags |= GPUWATCH_IMAGEF_TOO_BIG;
  }
  if (GW_SYS_4(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) != 0 || give > limit.rlim_cur) {
    give = 0;
    *flags |= GPUWATCH_IMAGEF_OVER_BUDGET;
  }
  do {
    left = used < gw_images_max ? gw_images_max - used : 0;
    if (give > left) {
      // Half an image proves nothing: all or none.
      give = 0;
      *flags |= GPUWATCH_IMAGEF_OVER_BUDGET;
    }
  } while (!__atomic_compare_exchange_n(&p->image_bytes, &used, used + give, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return give;
}

// Copies memory of the program into the blob: write() stops at memory that
// cannot be read, and says so.
static uint64_t store_memory(long fd, uint64_t from, uint64_t bytes, uint16_t* flags) {
  uint64_t done = 0;
  while (done < bytes) {
    uint64_t step = bytes - done < kChunk ? bytes - done : kChunk;
    long got = GW_SYS_3(SYS_write, fd, from + done, step);
    if (got == -EINTR) continue;
    if (got <= 0) {
      *flags |= got == -EFAULT ? GPUWATCH_IMAGEF_FAULT : GPUWATCH_IMAGEF_OVER_BUDGET;
      break;
    }
    done += (uint64_t)got;
  }
  return done;
}

static uint64_t store_file(long to, const char* name, uint64_t max, uint16_t* flags) {
  long from = GW_SYS_4(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
  uint64_t done = 0;
  while (from >= 0 && done < max) {
    long got = GW_SYS_4(SYS_sendfile, to, from, NULL, max - done < kChunk ? max - done : kChunk);
    if (got <= 0) break;
    done += (uint64_t)got;
  }
  if (from < 0)
    *flags |= GPUWATCH_IMAGEF_FAULT;
  else
    GW_SYS_1(SYS_close, from);
  return done;
}

static uint64_t file_bytes(const char* name) {
  long fd = GW_SYS_4(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
  if (fd < 0) return 0;
  long end = GW_SYS_3(SYS_lseek, fd, 0, SEEK_END);
  GW_SYS_1(SYS_close, fd);
  return end > 0 ? (uint64_t)end : 0;
}

static uint32_t path_length(uint64_t from) {
  char step[64];
  for (uint32_t len = 0; len < kPathMax; len += sizeof step) {
    uint32_t readable = sizeof step;
    while (readable && !gw_copy_user(step, from + len, readable)) readable /= 2;
    const char* end = memchr(step, 0, readable);
    if (end) return len + (uint32_t)(end - step);
    if (readable < sizeof step) return len + readable;
  }
  return kPathMax;
}

static uint32_t padded(uint32_t bytes) {
  return (bytes + 7u) & ~7u;
}

static void record(struct gw_proc* p, const struct gpuwatch_rec_image* image, uint64_t head_from, uint64_t begin) {
  struct gw_image_file file;
  char name[kFilePathMax];
  gw_file_at(image->kind == GPUWATCH_IMAGE_PATH ? 0 : image->image_address, &file, name, sizeof name);
  uint32_t head = padded(image->head_len);
  uint32_t len = (uint32_t)(sizeof(struct gpuwatch_rec) + sizeof *image + sizeof file) + head + padded(file.path_len);
  struct gw_shard_entry* entry = gw_reserve(p, GW_ENTRY_RECORD, len);
  if (!entry) return;
  struct gpuwatch_rec* rec = (struct gpuwatch_rec*)(entry + 1);
  struct gpuwatch_rec_image* out = (struct gpuwatch_rec_image*)(rec + 1);
  char* at = (char*)(out + 1);
  uint64_t end = gw_now_ns();
  gw_fill_head(p, rec, GPUWATCH_REC_IMAGE, len, end);
  *out = *image;
  out->duration_ns = end - begin;
  memset(at, 0, head + sizeof file + padded(file.path_len));
  if (out->head_len && !gw_copy_user(at, head_from, out->head_len)) out->flags |= GPUWATCH_IMAGEF_FAULT;
  memcpy(at + head, &file, sizeof file);
  memcpy(at + head + sizeof file, name, file.path_len);
  gw_commit(entry);
}

static struct gw_proc* proc_for_images(void) {
  bool foreign;
  if (!gw_active) return NULL;
  struct gw_proc* p = gw_proc_get(&foreign);
  return foreign ? NULL : p;
}

static void name_it(struct gpuwatch_rec_image* image, const char* symbol) {
  size_t n = strlen(symbol);
  memcpy(image->symbol, symbol, n < sizeof image->symbol ? n : sizeof image->symbol - 1);
}

void gw_image_data(const char* symbol, const void* data, uint64_t size) {
  struct gw_proc* p = proc_for_images();
  if (!p || !data) return;
  uint64_t begin = gw_now_ns();
  struct measure m = measure_image((uint64_t)(uintptr_t)data, size);
  struct gpuwatch_rec_image image = {.address = (uint64_t)(uintptr_t)data,
                                     .image_address = m.start,
                                     .bytes = m.bytes,
                                     .kind = m.kind,
                                     .flags = m.flags,
                                     .nr_parts = m.parts};
  name_it(&image, symbol);
  if (m.bytes != 0 && !(m.flags & (GPUWATCH_IMAGEF_MALFORMED | GPUWATCH_IMAGEF_TOO_BIG))) {
    uint64_t give = take_budget(p, m.bytes, &image.flags);
    uint64_t id = gw_file_new(p);
    long fd = give ? open_blob(p, id) : -1;
    if (fd >= 0) {
      image.copied_bytes = store_memory(fd, m.start, give, &image.flags);
      if (image.copied_bytes) image.id = id;
      GW_SYS_1(SYS_close, fd);
    } else if (give) {
      image.flags |= GPUWATCH_IMAGEF_OVER_BUDGET;
    }
  }
  image.head_len = (uint16_t)(image.copied_bytes < GPUWATCH_IMAGE_HEAD ? image.copied_bytes : GPUWATCH_IMAGE_HEAD);
  record(p, &image, m.start, begin);
}

// The kernel module stores nothing for a path. Here the file is copied too: by
// the time a recording is read it may be gone.
void gw_image_path(const char* symbol, const char* name) {
  struct gw_proc* p = proc_for_images();
  if (!p || !name) return;
  uint64_t begin = gw_now_ns();
  struct gpuwatch_rec_image image = {
      .address = (uint64_t)(uintptr_t)name, .image_address = (uint64_t)(uintptr_t)name, .kind = GPUWATCH_IMAGE_PATH};
  name_it(&image, symbol);
  image.head_len = (uint16_t)path_length(image.address);
  image.bytes = file_bytes(name);
  if (image.bytes) {
    uint64_t give = take_budget(p, image.bytes, &image.flags);
    uint64_t id = gw_file_new(p);
    long fd = give ? open_blob(p, id) : -1;
    if (fd >= 0) {
      image.copied_bytes = store_file(fd, name, give, &image.flags);
      if (image.copied_bytes) image.id = id;
      GW_SYS_1(SYS_close, fd);
    }
  }
  record(p, &image, image.address, begin);
}
