// SPDX-License-Identifier: Apache-2.0
// Layout of the files that the LD_PRELOAD recorder shares with the program that
// started it: shards (written through a shared mapping by each recorded
// process) and the capture plan. C and C++ read it; it holds no code. The files
// live only while one recording is made, so there is one version and no
// promise beyond it.
#pragma once

#include <linux/gpuwatch.h>
#include <linux/types.h>

#define GW_SHARD_MAGIC 0x3130445248535747ULL /* "GWSHRD01" */
#define GW_SHARD_VERSION 1
#define GW_SHARD_HEAD_BYTES 4096
#define GW_SHARD_SUFFIX ".gwshard"
#define GW_BLOB_SUFFIX ".gwimage"  // after the 16 hexadecimal digits of a gpuwatch_rec_image's id

// Environment of a recorded process. DIR switches the recorder on.
#define GW_ENV_DIR "GPUWATCH_RECORD_DIR"           // directory of the shards
#define GW_ENV_PLAN "GPUWATCH_RECORD_PLAN"         // capture plan file, optional
#define GW_ENV_MAX "GPUWATCH_RECORD_MAX_MB"        // MiB of one shard at most
#define GW_ENV_IMAGES "GPUWATCH_RECORD_IMAGES_MB"  // MiB of module images of one process at most
#define GW_ENV_MAJORS "GPUWATCH_RECORD_MAJORS"     // instead of /proc/devices: tests
#define GW_ENV_FDS "GPUWATCH_RECORD_FDS"           // set by the recorder across exec
#define GW_RECORDER_NAME "libgpuwatch-record.so"

enum gw_drop {
  GW_DROP_FULL = 0,     // shard at its maximum, or no disk space
  GW_DROP_TOO_BIG = 1,  // record over GPUWATCH_REC_MAX
  GW_DROP_MAX = 4,
};

// First page of a shard. Counters are changed with atomic operations.
struct gw_shard_head {
  __u64 magic;
  __u32 version;
  __u32 head_bytes;
  __u64 cookie;  // starts every entry: lets a reader find the next one
  __u64 max;     // the file never grows beyond
  __u64 limit;   // bytes of the file that have disk space behind them
  __u64 tail;    // end of the last reserved entry
  __u64 dropped[GW_DROP_MAX];
  __u64 start_ns;    // as gpuwatch_rec.start_ns
  __u64 created_ns;  // CLOCK_MONOTONIC
  __u64 ended_ns;    // CLOCK_MONOTONIC at exit() or exec, 0 when it got no chance
  __u64 adopted;     // descriptors first seen in use: received or inherited
  __u32 tgid;
  __u32 image;       // 0, 1, ... program images of one process id
  __u32 plan_error;  // errno that made the recorder fall back to its own plan
  __u32 pad;
};

enum gw_entry_kind {
  GW_ENTRY_RECORD = 1,        // struct gpuwatch_rec and payload
  GW_ENTRY_REF = 2,           // struct gw_shard_ref
  GW_ENTRY_NOT_FOLLOWED = 3,  // struct gw_shard_not_followed and path
};

enum gw_entry_state {
  GW_ENTRY_OPEN = 0,  // call has not returned: contents are void
  GW_ENTRY_COMMITTED = 1,
};

// Head of an entry. `bytes` is what was reserved, head included; the contents
// may be shorter.
struct gw_shard_entry {
  __u64 cookie;
  __u32 bytes;
  __u16 kind;
  __u16 state;
};

enum gw_ref_op {
  GW_REF_HOLD = 1,  // a descriptor of the process names the open file
  GW_REF_DROP = 2,  // that descriptor went
};

// What a process does to its references of open files. From all of them the
// reader of the shards finds the last one, which is the release.
struct gw_shard_ref {
  __u64 time_ns;
  __u64 file_id;
  __u64 duration_ns;
  __u32 op;
  __s32 fd;
  __u32 tgid;
  __u32 tid;
  __u32 uid;
  __u32 rdev;
  __u32 node_kind;
  __u32 cpu;
  __u64 cgroup_id;
  char comm[GPUWATCH_COMM_LEN];
};

enum gw_not_followed_reason {
  GW_NOT_STATIC = 1,       // no program interpreter, so nothing is preloaded
  GW_NOT_WRONG_CLASS = 2,  // other word size or machine than the recorder
  GW_NOT_SETUID = 3,       // gains privileges, the loader ignores LD_PRELOAD
};

struct gw_shard_not_followed {
  __u64 time_ns;
  __u32 reason;
  __u32 tgid;
  __u32 path_len;  // bytes of path that follow
  __u32 pad;
};

// What the recorder puts behind the head of an image and its padding, at the
// end of a GPUWATCH_REC_IMAGE: the file that is mapped where the image lies.
// Nobody can ask the process later. It stays in recordings. An image in memory
// of no file has ino 0 and no path: it was made at run time, or unpacked.
struct gw_image_file {
  __u64 ino;
  __u64 offset;    // of the image in the file, in bytes
  __u32 dev;       // (major << 20) | minor
  __u32 path_len;  // bytes of path that follow, padded with 0 to 8; a hint only
};

#define GW_PLAN_MAGIC 0x31304e414c505747ULL /* "GWPLAN01" */

// Capture plan file: this head, nr_entries of struct gpuwatch_plan_entry,
// nr_sizes of struct gpuwatch_plan_size sorted by key.
struct gw_plan_head {
  __u64 magic;
  __u32 nr_entries;
  __u32 nr_sizes;
  __u32 default_bytes;
  __u32 pad;
};
