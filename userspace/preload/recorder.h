// SPDX-License-Identifier: Apache-2.0
// Inner interface of libgpuwatch-record.so. The library lives inside foreign
// programs: it allocates nothing from the heap, calls only raw system calls
// and the functions it wraps, leaves errno alone, and never fails a call. All
// of it may run in a signal handler or in the child of vfork().
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard_format.h"

#define GW_EXPORT __attribute__((visibility("default")))
// The next definition of a wrapped function. dlsym() gives an object pointer,
// which ISO C does not convert to a function's: it is copied.
#define GW_RESOLVE(slot, name)               \
  do {                                       \
    void* symbol = dlsym(RTLD_NEXT, name);   \
    memcpy(&(slot), &symbol, sizeof symbol); \
  } while (0)

#define GW_FD_TABLE (1 << 20)  // descriptors with identity; higher ones have none

// State of one process, on a page that fork() zeroes in the child: pid 0 means
// "not set up in this process". The child of vfork() sees its parent's page.
struct gw_proc {
  uint32_t pid;
  uint32_t lock;
  uint32_t broken;  // set-up failed: record nothing in this process
  uint32_t serial;  // of open files first seen by this process
  struct gw_shard_head* shard;
  uint64_t start_ns;
  uint64_t cgroup_id;
  uint32_t image;
  uint16_t cgroup_flags;
  uint16_t cgroup_defined;
  uint64_t image_bytes;  // of module images stored so far
};

struct gw_node {
  uint32_t rdev;  // (major << 20) | minor
  uint8_t kind;
};

// A caller's identity, read anew for every record: a process may rename its
// threads, change its user and be moved between CPUs.
struct gw_who {
  uint32_t cpu, tgid, tid, uid;
  char comm[GPUWATCH_COMM_LEN];
};

// An ioctl between entry and return.
struct gw_ioctl_call {
  struct gw_proc* proc;
  struct gw_shard_entry* entry;  // NULL: not recorded
  struct gpuwatch_rec* rec;
  struct gpuwatch_rec_ioctl* io;
  uint32_t used;  // bytes of rec written so far
  uint64_t arg, nested[2];
  uint32_t want[3], len[3];      // argument, nested 0 and 1
  uint8_t capped[3];             // bit 0 before the call, bit 1 after it
  uint32_t arg_out, out_offset;  // bytes to copy after the call, and from where
  uint8_t nested_dirs[2];
  uint64_t file_id;
  struct gw_node node;
};

// setup.c
extern bool gw_active;
extern char gw_dir[], gw_library[];
struct gw_proc* gw_proc_get(bool* foreign);
bool gw_started(void);
void gw_mark_end(void);
void gw_lock(struct gw_proc* p, uint64_t* mask);
void gw_unlock(struct gw_proc* p, uint64_t mask);
size_t gw_saved_env(const char** out, size_t max);

// classify.c
bool gw_node_of_fd(int fd, struct gw_node* out);
bool gw_node_of_path(int dirfd, const char* path, struct gw_node* out);

// shard.c
int gw_shard_create(struct gw_proc* p);
struct gw_shard_entry* gw_reserve(struct gw_proc* p, uint16_t kind, uint32_t bytes);
void gw_commit(struct gw_shard_entry* entry);

// identity.c
void gw_who_am_i(struct gw_who* who);
void gw_fill_head(struct gw_proc* p, struct gpuwatch_rec* rec, uint16_t type, uint32_t len, uint64_t time_ns);
void gw_fill_file(struct gpuwatch_rec* rec, uint64_t file_id, const struct gw_node* node);
uint64_t gw_start_ns(uint32_t pid, uint32_t* parent);
void gw_write_task(struct gw_proc* p);
uint64_t gw_first_cgroup(uint16_t* flags);
void gw_refresh_cgroup(struct gw_proc* p);

// files.c
uint64_t gw_file_of_fd(struct gw_proc* p, int fd, bool foreign);
void gw_file_opened(struct gw_proc* p, int fd, uint64_t file_id);
uint64_t gw_file_new(struct gw_proc* p);
void gw_fd_dup(int from, int to);
uint64_t gw_fd_take(int fd, bool* foreign);
void gw_fd_dropped(int fd, uint64_t file_id, uint64_t duration_ns);
void gw_fd_range_closed(unsigned first, unsigned last);
void gw_files_hold_all(struct gw_proc* p);
bool gw_files_any(void);
size_t gw_files_env(char* out, size_t size);
void gw_files_adopt(const char* list);

// capture.c
void gw_plan_load(const char* path);
extern uint32_t gw_plan_error;
bool gw_copy_user(void* to, uint64_t from, uint32_t len);
void gw_ioctl_begin(struct gw_ioctl_call* call, struct gw_proc* p, uint32_t cmd, uint64_t arg);
void gw_ioctl_end(struct gw_ioctl_call* call, int64_t ret, uint64_t begin_ns, uint64_t end_ns);

// image.c
extern uint64_t gw_image_max, gw_images_max;
void gw_image_data(const char* symbol, const void* data, uint64_t size);  // size 0: by its own header
void gw_image_path(const char* symbol, const char* name);

// mapping.c
void gw_file_at(uint64_t address, struct gw_image_file* file, char* path, uint32_t size);

// exec.c
void gw_note_program(int dirfd, const char* path, int flags);

// wrap.c: the next definition of each wrapped function
void gw_wrap_resolve(void);
void gw_exec_resolve(void);
