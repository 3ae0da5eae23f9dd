/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * gpuwatch.h - the contract between gpuwatch.ko and its readers: records,
 * ring layout, ioctls. It must not name anything of the NVIDIA driver beyond
 * the families of its device nodes: meaning is given in user space.
 *
 * Overview
 * --------
 * open("/dev/gpuwatch") makes a consumer (needs CAP_PERFMON or CAP_SYS_ADMIN
 * in the initial user namespace). GPUWATCH_IOC_SETUP gives it one ring per
 * CPU, GPUWATCH_IOC_SET_FILTER narrows what goes in, GPUWATCH_IOC_ENABLE
 * starts delivery and, when nobody did so before, attaches the hooks. Records
 * are read by mmap() or by read(); poll() reports EPOLLIN when the ring of
 * some CPU holds at least `watermark_bytes`. close() frees everything.
 *
 * mmap layout of one consumer (all offsets and lengths multiples of the page):
 *
 *   offset 0              struct gpuwatch_meta             read-only, 1 page
 *   GPUWATCH_MMAP_CPU(meta, i) for CPU slot i:
 *     + 0                 struct gpuwatch_ring_consumer    writable,  1 page
 *     + page_bytes        struct gpuwatch_ring_producer    read-only, 1 page
 *     + 2 * page_bytes    data, ring_bytes, mapped twice   read-only
 *
 * The consumer page is mapped alone (length page_bytes); the producer page and
 * the two views of the data are mapped together or in parts. Since the data
 * is mapped twice in a row, no record is split at the end of the ring.
 *
 * Order: within one ring records lie in order of rec.time_ns (completion). To
 * merge rings so that every thread's records stay in order: take T =
 * CLOCK_MONOTONIC first, then read every ring's `head`, then emit only records
 * with time_ns <= T. (A record stamped before T whose thread already went on
 * to stamp another one before T was committed before T.)
 *
 * Versions: GPUWATCH_ABI_* covers ioctls and the mmap layout, a reader
 * refuses another major. GPUWATCH_SCHEMA covers records: a type only grows at
 * its end, readers skip unknown types by `len`.
 */
#ifndef _UAPI_LINUX_GPUWATCH_H
#define _UAPI_LINUX_GPUWATCH_H

#include <linux/types.h>
#include <linux/ioctl.h>

#define GPUWATCH_ABI_MAJOR	1
#define GPUWATCH_ABI_MINOR	2
#define GPUWATCH_SCHEMA		2

#define GPUWATCH_COMM_LEN	16	/* bytes of comm, NUL padded */
#define GPUWATCH_PATH_MAX	4096	/* bytes of a path in a record, at most */
#define GPUWATCH_REC_MAX	65536	/* bytes of one record, at most */

/**
 * enum gpuwatch_node_kind - family of a device node
 * @GPUWATCH_NODE_OTHER: owned by an NVIDIA module, family not known
 * @GPUWATCH_NODE_CTL: /dev/nvidiactl
 * @GPUWATCH_NODE_GPU: /dev/nvidiaN
 * @GPUWATCH_NODE_UVM: /dev/nvidia-uvm
 * @GPUWATCH_NODE_UVM_TOOLS: /dev/nvidia-uvm-tools
 * @GPUWATCH_NODE_MODESET: /dev/nvidia-modeset
 * @GPUWATCH_NODE_CAPS: /dev/nvidia-caps/nvidia-capN
 * @GPUWATCH_NODE_IMEX: /dev/nvidia-caps-imex-channels/channelN
 * @GPUWATCH_NODE_NVSWITCH: /dev/nvidia-nvswitch*
 * @GPUWATCH_NODE_NVLINK: /dev/nvidia-nvlink
 * @GPUWATCH_NODE_MAX: number of kinds
 *
 * Known from the char-major's name and the minor, never from a path.
 */
enum gpuwatch_node_kind {
	GPUWATCH_NODE_OTHER = 0,
	GPUWATCH_NODE_CTL = 1,
	GPUWATCH_NODE_GPU = 2,
	GPUWATCH_NODE_UVM = 3,
	GPUWATCH_NODE_UVM_TOOLS = 4,
	GPUWATCH_NODE_MODESET = 5,
	GPUWATCH_NODE_CAPS = 6,
	GPUWATCH_NODE_IMEX = 7,
	GPUWATCH_NODE_NVSWITCH = 8,
	GPUWATCH_NODE_NVLINK = 9,
	GPUWATCH_NODE_MAX = 10,
};

/**
 * enum gpuwatch_rec_type - what a record tells
 * @GPUWATCH_REC_OPEN: an NVIDIA node was opened, payload gpuwatch_rec_open
 * @GPUWATCH_REC_IOCTL: an ioctl returned, payload gpuwatch_rec_ioctl
 * @GPUWATCH_REC_MMAP: an mmap returned, payload gpuwatch_rec_mmap
 * @GPUWATCH_REC_RELEASE: last reference to an open file went,
 *	payload gpuwatch_rec_release
 * @GPUWATCH_REC_TASK: definition of the header's process,
 *	payload gpuwatch_rec_task
 * @GPUWATCH_REC_CGROUP: definition of the header's cgroup_id,
 *	payload gpuwatch_rec_cgroup
 * @GPUWATCH_REC_STATE: module or driver changed state,
 *	payload gpuwatch_rec_state
 * @GPUWATCH_REC_IMAGE: a GPU module image is about to be loaded,
 *	payload gpuwatch_rec_image; since ABI 1.1
 */
enum gpuwatch_rec_type {
	GPUWATCH_REC_OPEN = 1,
	GPUWATCH_REC_IOCTL = 2,
	GPUWATCH_REC_MMAP = 3,
	GPUWATCH_REC_RELEASE = 4,
	GPUWATCH_REC_TASK = 5,
	GPUWATCH_REC_CGROUP = 6,
	GPUWATCH_REC_STATE = 7,
	GPUWATCH_REC_IMAGE = 8,
};

/* gpuwatch_rec.flags */
#define GPUWATCH_F_COMPAT	(1 << 0) /* 32-bit system call */
#define GPUWATCH_F_XFER		(1 << 1) /* came wrapped in NV_ESC_IOCTL_XFER_CMD */
#define GPUWATCH_F_CGROUP_V1	(1 << 2) /* cgroup_id is of a v1 hierarchy */
#define GPUWATCH_F_PRELOAD	(1 << 3) /* by the LD_PRELOAD recorder: evadable */
#define GPUWATCH_F_PROBE	(1 << 4) /* seen by kretprobe, not by redirect */
#define GPUWATCH_F_KTHREAD	(1 << 5) /* ran in a kernel thread (late release) */

/**
 * struct gpuwatch_rec - header of every record
 * @len: bytes of header and payload, a multiple of 8, at most GPUWATCH_REC_MAX
 * @type: enum gpuwatch_rec_type
 * @flags: GPUWATCH_F_*
 * @seq: number of this record in its ring, from 0; records lost to a full
 *	ring are counted in, so a gap is a loss
 * @time_ns: CLOCK_MONOTONIC when the call completed; the call began
 *	`duration_ns` of the payload earlier
 * @cpu: CPU that completed the call, which is the ring's slot
 * @tgid: process id in the initial pid namespace
 * @tid: thread id in the initial pid namespace
 * @uid: real user id in the initial user namespace
 * @start_ns: CLOCK_BOOTTIME when the process started; (tgid, start_ns) names a
 *	process once and for all
 * @cgroup_id: inode number of the caller's cgroup in cgroup2 (or, with
 *	GPUWATCH_F_CGROUP_V1, in the v1 memory hierarchy)
 * @file_id: names an open file from its open to its release; opaque
 * @rdev: device number, (major << 20) | minor
 * @node_kind: enum gpuwatch_node_kind
 * @pad: 0
 * @comm: name of the calling thread as it set it: untrusted, any bytes
 */
struct gpuwatch_rec {
	__u32 len;
	__u16 type;
	__u16 flags;
	__u64 seq;
	__u64 time_ns;
	__u32 cpu;
	__u32 tgid;
	__u32 tid;
	__u32 uid;
	__u64 start_ns;
	__u64 cgroup_id;
	__u64 file_id;
	__u32 rdev;
	__u8 node_kind;
	__u8 pad[3];
	char comm[GPUWATCH_COMM_LEN];
};

/**
 * struct gpuwatch_rec_open - payload of GPUWATCH_REC_OPEN
 * @ret: 0 or a negative errno; failed opens are recorded too
 * @duration_ns: time in the driver
 * @f_flags: flags of open(2) as the kernel keeps them
 * @pad: 0
 */
struct gpuwatch_rec_open {
	__s64 ret;
	__u64 duration_ns;
	__u32 f_flags;
	__u32 pad;
};

/**
 * struct gpuwatch_open_node - which node was opened; follows gpuwatch_rec_open
 * @ino: inode number of the node
 * @ctime_ns: CLOCK_REALTIME when the inode was made or last changed
 * @dev: device of the file system it lies in, (major << 20) | minor
 * @pad: 0
 *
 * Since schema 2, and only where it is known: look at the record's length. Two
 * nodes of one device number are told apart by it, the host's from one that a
 * program made with mknod.
 */
struct gpuwatch_open_node {
	__u64 ino;
	__u64 ctime_ns;
	__u32 dev;
	__u32 pad;
};

/**
 * struct gpuwatch_rec_ioctl - payload of GPUWATCH_REC_IOCTL
 * @cmd: request word of the call
 * @inner_cmd: with GPUWATCH_F_XFER: command number inside the wrapper; else 0
 * @ret: what the driver returned
 * @duration_ns: time in the driver
 * @arg: third argument of the call
 * @inner_size: with GPUWATCH_F_XFER: size the caller gave for the inner
 *	argument, unchecked; else 0
 * @nr_captures: number of struct gpuwatch_capture that follow
 * @pad: 0
 */
struct gpuwatch_rec_ioctl {
	__u32 cmd;
	__u32 inner_cmd;
	__s64 ret;
	__u64 duration_ns;
	__u64 arg;
	__u32 inner_size;
	__u16 nr_captures;
	__u16 pad;
};

/**
 * enum gpuwatch_capture_what - which bytes a capture holds
 * @GPUWATCH_CAP_ARG_IN: argument before the call (with F_XFER: the inner one)
 * @GPUWATCH_CAP_ARG_OUT: argument after the call (likewise)
 * @GPUWATCH_CAP_XFER_IN: the NV_ESC_IOCTL_XFER_CMD wrapper before the call
 * @GPUWATCH_CAP_NESTED0_IN: first nested pointer's bytes before the call
 * @GPUWATCH_CAP_NESTED0_OUT: first nested pointer's bytes after the call
 * @GPUWATCH_CAP_NESTED1_IN: second nested pointer's bytes before the call
 * @GPUWATCH_CAP_NESTED1_OUT: second nested pointer's bytes after the call
 *
 * A nested pointer is read from the argument as it was before the call, for
 * the copy after the call too.
 */
enum gpuwatch_capture_what {
	GPUWATCH_CAP_ARG_IN = 1,
	GPUWATCH_CAP_ARG_OUT = 2,
	GPUWATCH_CAP_XFER_IN = 3,
	GPUWATCH_CAP_NESTED0_IN = 4,
	GPUWATCH_CAP_NESTED0_OUT = 5,
	GPUWATCH_CAP_NESTED1_IN = 6,
	GPUWATCH_CAP_NESTED1_OUT = 7,
};

/* gpuwatch_capture.flags */
#define GPUWATCH_CAPF_FAULT	(1 << 0) /* user memory could not be read: len is 0 */
#define GPUWATCH_CAPF_CAPPED	(1 << 1) /* want was over the plan's cap */
#define GPUWATCH_CAPF_NO_ROOM	(1 << 2) /* no staging memory left: len is 0 */

/**
 * struct gpuwatch_capture - bytes copied from the caller's memory
 * @what: enum gpuwatch_capture_what
 * @flags: GPUWATCH_CAPF_*
 * @want: bytes the call declares
 * @len: bytes that follow this struct, then padding with 0 up to a multiple of 8
 * @offset: where in the argument or buffer the bytes begin; 0 but for
 *	GPUWATCH_CAP_ARG_OUT of a command whose plan says otherwise
 */
struct gpuwatch_capture {
	__u16 what;
	__u16 flags;
	__u32 want;
	__u32 len;
	__u32 offset;
};

/**
 * struct gpuwatch_rec_mmap - payload of GPUWATCH_REC_MMAP
 * @ret: 0 or a negative errno
 * @duration_ns: time in the driver
 * @addr: first address of the mapping in the caller
 * @length: bytes of the mapping
 * @offset: offset argument of mmap(2), in bytes
 * @prot: PROT_READ, PROT_WRITE, PROT_EXEC as asked for
 * @shared: 1 when MAP_SHARED, else 0
 */
struct gpuwatch_rec_mmap {
	__s64 ret;
	__u64 duration_ns;
	__u64 addr;
	__u64 length;
	__u64 offset;
	__u32 prot;
	__u32 shared;
};

/**
 * struct gpuwatch_rec_release - payload of GPUWATCH_REC_RELEASE
 * @duration_ns: time in the driver
 *
 * The header names the task that dropped the last reference, which need not
 * be the one that opened the file (GPUWATCH_F_KTHREAD: a kernel thread).
 */
struct gpuwatch_rec_release {
	__u64 duration_ns;
};

/**
 * struct gpuwatch_rec_task - payload of GPUWATCH_REC_TASK
 * @parent_start_ns: CLOCK_BOOTTIME when the parent process started
 * @exe_ino: inode number of the executable, 0 when there is none
 * @exe_dev: device of the executable's file system, (major << 20) | minor
 * @parent_tgid: process id of the parent in the initial pid namespace
 * @ns_tgid: process id in the process's own pid namespace
 * @ns_level: depth of that namespace, 0 is the initial one
 * @pid_ns: inode number of that pid namespace
 * @path_len: bytes of path that follow, without NUL; padded with 0 to 8
 *
 * Put into the ring before the first record of a process, and again after
 * exec or when it may have been overwritten. The path is a hint, as the
 * process saw it.
 */
struct gpuwatch_rec_task {
	__u64 parent_start_ns;
	__u64 exe_ino;
	__u32 exe_dev;
	__u32 parent_tgid;
	__u32 ns_tgid;
	__u32 ns_level;
	__u32 pid_ns;
	__u32 path_len;
};

/* gpuwatch_task_more.flags */
#define GPUWATCH_TASK_EXE_DELETED	(1 << 0) /* no name leads to the file any more */
#define GPUWATCH_TASK_EXE_MEMFD		(1 << 1) /* the file never had a name: memfd_create(2) */
#define GPUWATCH_TASK_EXE_CHANGED	(1 << 2) /* renamed, linked or written since the start */

#define GPUWATCH_NS_MAX		33	/* pid namespaces a process is in, at most */
#define GPUWATCH_ANCESTORS_MAX	16	/* ancestors in a definition, at most */

/**
 * struct gpuwatch_task_more - follows the padded path of a gpuwatch_rec_task
 * @flags: GPUWATCH_TASK_*
 * @exec_id: number of exec(2)s in the life of this process and its ancestors,
 *	cut to 32 bits: another value is another program image
 * @nr_ancestors: number of struct gpuwatch_ancestor that follow, at most
 *	GPUWATCH_ANCESTORS_MAX: the parent first, then its parent, up to the
 *	first process of the process's own pid namespace
 * @nr_ns: number of __u32 behind those, at most GPUWATCH_NS_MAX, padded with 0
 *	to 8: the process's ids from the initial pid namespace to its own
 * @pad: 0
 *
 * Since schema 2, and only where it is known: look at the record's length.
 */
struct gpuwatch_task_more {
	__u32 flags;
	__u32 exec_id;
	__u16 nr_ancestors;
	__u16 nr_ns;
	__u32 pad;
};

/**
 * struct gpuwatch_ancestor - one process between a caller and its namespace's first
 * @start_ns: CLOCK_BOOTTIME when it started
 * @tgid: process id in the initial pid namespace
 * @ns_tgid: process id in the caller's pid namespace, 0 outside of it
 * @comm: name of its first thread: untrusted, any bytes
 */
struct gpuwatch_ancestor {
	__u64 start_ns;
	__u32 tgid;
	__u32 ns_tgid;
	char comm[GPUWATCH_COMM_LEN];
};

/**
 * struct gpuwatch_rec_cgroup - payload of GPUWATCH_REC_CGROUP
 * @version: 1 or 2
 * @path_len: bytes of path that follow, without NUL; padded with 0 to 8
 *
 * The header's cgroup_id is the truth, the path is a hint: it is the path from
 * the root of the hierarchy at the moment of first sight.
 */
struct gpuwatch_rec_cgroup {
	__u32 version;
	__u32 path_len;
};

/**
 * enum gpuwatch_state - what happened, in a GPUWATCH_REC_STATE
 * @GPUWATCH_STATE_ATTACHED: hooks went in
 * @GPUWATCH_STATE_DETACHED: hooks went out, no call in flight
 * @GPUWATCH_STATE_DRIVER_LIVE: a driver module was loaded, name in `name`
 * @GPUWATCH_STATE_DRIVER_GOING: a driver module is being unloaded
 * @GPUWATCH_STATE_HOOKED: a driver function was hooked, name of module in
 *	`name`, value is enum gpuwatch_op
 * @GPUWATCH_STATE_HOOK_FAILED: likewise, but it failed with `error`
 * @GPUWATCH_STATE_PLAN: the capture plan was replaced, value is its number
 */
enum gpuwatch_state {
	GPUWATCH_STATE_ATTACHED = 1,
	GPUWATCH_STATE_DETACHED = 2,
	GPUWATCH_STATE_DRIVER_LIVE = 3,
	GPUWATCH_STATE_DRIVER_GOING = 4,
	GPUWATCH_STATE_HOOKED = 5,
	GPUWATCH_STATE_HOOK_FAILED = 6,
	GPUWATCH_STATE_PLAN = 7,
};

#define GPUWATCH_NAME_LEN	56	/* bytes of a module name, NUL padded */

/**
 * struct gpuwatch_rec_state - payload of GPUWATCH_REC_STATE
 * @event: enum gpuwatch_state
 * @value: depends on event, else 0
 * @error: 0 or a negative errno
 * @name: module name, NUL padded
 */
struct gpuwatch_rec_state {
	__u32 event;
	__u32 value;
	__s64 error;
	char name[GPUWATCH_NAME_LEN];
};

/* --- module images --------------------------------------------------------- */

/**
 * enum gpuwatch_image_kind - what an image is, by its first bytes
 * @GPUWATCH_IMAGE_UNKNOWN: none of the others, or not readable
 * @GPUWATCH_IMAGE_FATBIN: one or more fatbin containers
 * @GPUWATCH_IMAGE_ELF: a 64-bit ELF file: a cubin, a host object
 * @GPUWATCH_IMAGE_TEXT: text up to its NUL, which is not counted in: PTX
 * @GPUWATCH_IMAGE_PATH: not an image but the path of a file, all of it in the
 *	record; nothing is stored
 * @GPUWATCH_IMAGE_CALL: the function was called, there is no image
 */
enum gpuwatch_image_kind {
	GPUWATCH_IMAGE_UNKNOWN = 0,
	GPUWATCH_IMAGE_FATBIN = 1,
	GPUWATCH_IMAGE_ELF = 2,
	GPUWATCH_IMAGE_TEXT = 3,
	GPUWATCH_IMAGE_PATH = 4,
	GPUWATCH_IMAGE_CALL = 5,
};

/* gpuwatch_rec_image.flags: what was found, and why bytes are missing */
#define GPUWATCH_IMAGEF_WRAPPED		(1 << 0) /* reached through a wrapper record */
#define GPUWATCH_IMAGEF_SIZED		(1 << 1) /* the caller gave the size */
#define GPUWATCH_IMAGEF_FAULT		(1 << 2) /* user memory could not be read to the end */
#define GPUWATCH_IMAGEF_MALFORMED	(1 << 3) /* size is nonsense or runs past user memory */
#define GPUWATCH_IMAGEF_TOO_BIG		(1 << 4) /* over the budget of one image */
#define GPUWATCH_IMAGEF_OVER_BUDGET	(1 << 5) /* over the budget of all images */
#define GPUWATCH_IMAGEF_NO_MEMORY	(1 << 6) /* the kernel had none left */
#define GPUWATCH_IMAGEF_DEADLINE	(1 << 7) /* copying took too long */

#define GPUWATCH_SYMBOL_LEN	32	/* bytes of a symbol's name, NUL padded */
#define GPUWATCH_IMAGE_HEAD	64	/* first bytes of an image in its record */

/**
 * struct gpuwatch_rec_image - payload of GPUWATCH_REC_IMAGE
 * @id: names the stored bytes for GPUWATCH_IOC_GET_IMAGE; never reused while
 *	the module is loaded; 0: nothing is stored
 * @address: the argument of the call, in the caller's memory
 * @image_address: where the bytes begin: behind a wrapper, else @address
 * @bytes: size of the image by its own header or the caller's word. Several
 *	containers lie one after the other, each from a multiple of 8 on.
 * @copied_bytes: how many of them are stored, from the first on
 * @duration_ns: how long the caller was kept for it
 * @library_ino: inode number of the file with the probed function
 * @library_dev: its file system's device, (major << 20) | minor
 * @probe: id of the probe that was hit
 * @kind: enum gpuwatch_image_kind
 * @flags: GPUWATCH_IMAGEF_*
 * @nr_parts: containers, else 1; 0 when there is no image
 * @head_len: bytes that follow, padded with 0 to 8: the first bytes of the
 *	image, at most GPUWATCH_IMAGE_HEAD; of GPUWATCH_IMAGE_PATH the path
 *	without NUL, at most GPUWATCH_PATH_MAX
 * @symbol: name of the probe, NUL padded
 *
 * The bytes are as they were when the function was called, before its first
 * instructions could look at them. Another thread may change them between the
 * copy and the driver's own read: that can't be seen here.
 * The header's file fields are 0: an image belongs to a process, not to a node.
 */
struct gpuwatch_rec_image {
	__u64 id;
	__u64 address;
	__u64 image_address;
	__u64 bytes;
	__u64 copied_bytes;
	__u64 duration_ns;
	__u64 library_ino;
	__u32 library_dev;
	__u32 probe;
	__u16 kind;
	__u16 flags;
	__u16 nr_parts;
	__u16 head_len;
	char symbol[GPUWATCH_SYMBOL_LEN];
};

/* --- loss ---------------------------------------------------------------- */

/**
 * enum gpuwatch_loss - why a record did not reach a ring
 * @GPUWATCH_LOSS_RING_FULL: drop-newest ring had no room
 * @GPUWATCH_LOSS_TOO_BIG: larger than the ring or GPUWATCH_REC_MAX
 * @GPUWATCH_LOSS_PROBE_MISSED: kretprobe ran out of instances; module-wide,
 *	not in any ring's count
 * @GPUWATCH_LOSS_OVERWRITTEN: overwrite ring replaced it before it was read
 * @GPUWATCH_LOSS_MAX: number of slots kept, unused ones are 0
 */
enum gpuwatch_loss {
	GPUWATCH_LOSS_RING_FULL = 0,
	GPUWATCH_LOSS_TOO_BIG = 1,
	GPUWATCH_LOSS_PROBE_MISSED = 2,
	GPUWATCH_LOSS_OVERWRITTEN = 3,
	GPUWATCH_LOSS_MAX = 8,
};

/* --- mmap layout --------------------------------------------------------- */

/**
 * struct gpuwatch_meta - first page of a consumer's mapping
 * @struct_len: bytes of this struct that carry meaning; the rest of the page is 0
 * @abi_major: GPUWATCH_ABI_MAJOR of the module
 * @abi_minor: GPUWATCH_ABI_MINOR of the module
 * @schema: GPUWATCH_SCHEMA of the module
 * @nr_cpus: number of ring slots, slot = CPU number
 * @mode: enum gpuwatch_ring_mode
 * @page_bytes: bytes of a page
 * @ring_bytes: bytes of one ring's data, a power of two
 * @cpu_stride: bytes between the mappings of two slots
 */
struct gpuwatch_meta {
	__u32 struct_len;
	__u16 abi_major;
	__u16 abi_minor;
	__u32 schema;
	__u32 nr_cpus;
	__u32 mode;
	__u32 page_bytes;
	__u64 ring_bytes;
	__u64 cpu_stride;
};

#define GPUWATCH_MMAP_CPU(meta, i) \
	((meta)->page_bytes + (__u64)(i) * (meta)->cpu_stride)

/**
 * struct gpuwatch_ring_consumer - writable page, owned by the reader
 * @tail: all bytes before this position are read; never ahead of `head`.
 *	Store with release after reading the data. Ignored in overwrite mode.
 *
 * Positions count bytes since the ring was made and never wrap in practice;
 * the place in the data is position % ring_bytes. A wrong value costs only
 * the reader's own records.
 */
struct gpuwatch_ring_consumer {
	__u64 tail;
};

/**
 * struct gpuwatch_ring_producer - read-only page, owned by the kernel
 * @head: all bytes before this position are committed. Load with acquire.
 * @oldest: overwrite mode: first position that still holds a whole record.
 *	Advanced before the bytes behind it are replaced: a reader copies
 *	[oldest, head), then loads `oldest` again, and what lies before the new
 *	value is void. 0 in drop-newest mode.
 * @next_seq: sequence number the next record gets
 * @records: records committed
 * @lost: records that did not reach the reader, by enum gpuwatch_loss
 *
 * Drop-newest: records + lost[RING_FULL] + lost[TOO_BIG] == next_seq.
 */
struct gpuwatch_ring_producer {
	__u64 head;
	__u64 oldest;
	__u64 next_seq;
	__u64 records;
	__u64 lost[GPUWATCH_LOSS_MAX];
};

/* --- ioctls on /dev/gpuwatch --------------------------------------------- */

/**
 * enum gpuwatch_ring_mode - what to do when a ring is full
 * @GPUWATCH_MODE_DROP_NEWEST: drop the new record and count it
 * @GPUWATCH_MODE_OVERWRITE: flight recorder: replace the oldest record
 */
enum gpuwatch_ring_mode {
	GPUWATCH_MODE_DROP_NEWEST = 0,
	GPUWATCH_MODE_OVERWRITE = 1,
};

#define GPUWATCH_FEAT_REDIRECT	(1ULL << 0) /* ftrace redirect is available */
#define GPUWATCH_FEAT_KRETPROBE	(1ULL << 1) /* kretprobe is available */
#define GPUWATCH_FEAT_CGROUP_V2	(1ULL << 2) /* cgroup v2 ids and paths */
#define GPUWATCH_FEAT_CGROUP_V1	(1ULL << 3) /* v1 fallback is compiled in */
#define GPUWATCH_FEAT_IMAGES	(1ULL << 4) /* module images: the kernel has uprobes */

/**
 * struct gpuwatch_info - answer of GPUWATCH_IOC_GET_INFO
 * @abi_major: see GPUWATCH_ABI_MAJOR
 * @abi_minor: see GPUWATCH_ABI_MINOR
 * @schema: see GPUWATCH_SCHEMA
 * @features: GPUWATCH_FEAT_*
 * @nr_cpus: ring slots a consumer gets
 * @nr_targets: driver functions known, index space of GPUWATCH_IOC_GET_TARGET
 * @attached: 1 while hooks are in
 * @pinned: 1 when attached by GPUWATCH_IOC_ATTACH rather than by a consumer
 * @nr_consumers: consumers with delivery enabled
 * @in_flight: traced calls inside the driver right now
 * @plan_generation: number of the capture plan in force, 0 is the built-in one
 * @pad: 0
 * @probe_missed: calls missed by kretprobes for want of instances
 * @stage_exhausted: captures left out for want of staging memory
 * @release: module version, NUL padded
 */
struct gpuwatch_info {
	__u16 abi_major;
	__u16 abi_minor;
	__u32 schema;
	__u64 features;
	__u32 nr_cpus;
	__u32 nr_targets;
	__u32 attached;
	__u32 pinned;
	__u32 nr_consumers;
	__u32 in_flight;
	__u32 plan_generation;
	__u32 pad;
	__u64 probe_missed;
	__u64 stage_exhausted;
	char release[32];
};

/* gpuwatch_setup.flags, since ABI 1.2 */
#define GPUWATCH_SETUP_HOLD_IMAGES	(1 << 0) /* hold images by others' probes too */

/**
 * struct gpuwatch_setup - argument of GPUWATCH_IOC_SETUP
 * @abi_major: GPUWATCH_ABI_MAJOR the reader was built with; else -EPROTO
 * @flags: GPUWATCH_SETUP_*
 * @mode: enum gpuwatch_ring_mode
 * @watermark_bytes: bytes in one ring that wake a poller; 0 means 1; at most
 *	ring_bytes
 * @ring_bytes: bytes per CPU, a power of two, 4096 (one page) to 64 MiB
 *
 * Once per open file: a second call gives -EBUSY.
 */
struct gpuwatch_setup {
	__u32 abi_major;
	__u32 flags;
	__u32 mode;
	__u32 watermark_bytes;
	__u64 ring_bytes;
};

/* record classes of a filter */
#define GPUWATCH_CLASS(type)	(1U << (type))
#define GPUWATCH_FILTER_PIDS	16

/**
 * struct gpuwatch_filter - argument of GPUWATCH_IOC_SET_FILTER
 * @node_mask: bit per enum gpuwatch_node_kind; 0 means all
 * @class_mask: bit per enum gpuwatch_rec_type; 0 means all. Definitions are
 *	delivered only for processes and cgroups that have a record.
 * @cgroup_fd: descriptor of a cgroup2 directory, whose subtree is kept; -1
 *	means all
 * @nr_pids: number of entries of @pids in use, 0 means all
 * @pids: process ids in the initial pid namespace
 *
 * A record must pass every part. GPUWATCH_REC_STATE passes all but class_mask,
 * GPUWATCH_REC_IMAGE all but node_mask.
 */
struct gpuwatch_filter {
	__u32 node_mask;
	__u32 class_mask;
	__s32 cgroup_fd;
	__u32 nr_pids;
	__u32 pids[GPUWATCH_FILTER_PIDS];
};

/**
 * struct gpuwatch_detach - argument of GPUWATCH_IOC_DETACH
 * @timeout_ms: how long to wait for calls in flight, at most 60000
 * @in_flight: out: calls still inside the driver; then the answer is -EBUSY,
 *	no new call is recorded, and a later detach completes
 */
struct gpuwatch_detach {
	__u32 timeout_ms;
	__u32 in_flight;
};

/**
 * enum gpuwatch_op - file operation a target serves
 * @GPUWATCH_OP_OPEN: open of any NVIDIA node
 * @GPUWATCH_OP_IOCTL: unlocked_ioctl, and compat_ioctl where it is the same
 * @GPUWATCH_OP_COMPAT_IOCTL: compat_ioctl of its own
 * @GPUWATCH_OP_MMAP: mmap
 * @GPUWATCH_OP_MMAP_PREPARE: mmap_prepare of newer kernels
 * @GPUWATCH_OP_RELEASE: release
 */
enum gpuwatch_op {
	GPUWATCH_OP_OPEN = 0,
	GPUWATCH_OP_IOCTL = 1,
	GPUWATCH_OP_COMPAT_IOCTL = 2,
	GPUWATCH_OP_MMAP = 3,
	GPUWATCH_OP_MMAP_PREPARE = 4,
	GPUWATCH_OP_RELEASE = 5,
};

/* gpuwatch_target.method */
#define GPUWATCH_METHOD_NONE		0 /* known, not hooked */
#define GPUWATCH_METHOD_REDIRECT	1
#define GPUWATCH_METHOD_KRETPROBE	2

/**
 * struct gpuwatch_target - argument of GPUWATCH_IOC_GET_TARGET
 * @index: in: 0 to nr_targets - 1, else -ENOENT
 * @op: enum gpuwatch_op
 * @method: GPUWATCH_METHOD_*
 * @error: 0, or the negative errno of the last try to hook it
 * @calls: calls that went through the hook since it was set
 * @in_flight: calls inside it right now
 * @module: owner of the function, NUL padded
 */
struct gpuwatch_target {
	__u32 index;
	__u32 op;
	__u32 method;
	__s32 error;
	__u64 calls;
	__u64 in_flight;
	char module[GPUWATCH_NAME_LEN];
};

/**
 * enum gpuwatch_len_kind - where the length of a nested buffer comes from
 * @GPUWATCH_LEN_NONE: the slot is not used
 * @GPUWATCH_LEN_FIXED: len_value bytes
 * @GPUWATCH_LEN_AT: the __u32 at offset len_value of the argument
 * @GPUWATCH_LEN_BY_KEY: the __u32 at offset key_offset is looked up in the
 *	plan's sizes; where it is not listed, as GPUWATCH_LEN_AT
 */
enum gpuwatch_len_kind {
	GPUWATCH_LEN_NONE = 0,
	GPUWATCH_LEN_FIXED = 1,
	GPUWATCH_LEN_AT = 2,
	GPUWATCH_LEN_BY_KEY = 3,
};

/**
 * struct gpuwatch_plan_nested - a pointer inside an argument
 * @ptr_offset: offset of the __u64 pointer in the argument
 * @key_offset: see GPUWATCH_LEN_BY_KEY
 * @len_value: see enum gpuwatch_len_kind
 * @cap: bytes to copy at most, up to GPUWATCH_PLAN_CAP_MAX
 * @len_kind: enum gpuwatch_len_kind
 * @directions: 1 copy before, 2 copy after, 3 both
 */
struct gpuwatch_plan_nested {
	__u16 ptr_offset;
	__u16 key_offset;
	__u16 len_value;
	__u16 cap;
	__u16 len_kind;
	__u16 directions;
};

#define GPUWATCH_PLAN_CAP_MAX	16384	/* bytes of one capture, at most */
#define GPUWATCH_PLAN_ENTRIES	1024
#define GPUWATCH_PLAN_SIZES	4096

/* gpuwatch_plan_entry.flags */
#define GPUWATCH_PLAN_XFER	(1 << 0) /* argument is {u32 cmd, u32 size, u64 ptr} */

/**
 * struct gpuwatch_plan_entry - what to copy for one command
 * @cmd: command as given to ioctl(2), compared under @cmd_mask
 * @cmd_mask: bits of the request word that count. The low 8 bits must be set,
 *	they are what the kernel looks up first. An inner command of an XFER is
 *	compared as (_IOC_SIZE = inner size, _IOC_NR = inner command).
 * @node_mask: bit per enum gpuwatch_node_kind it holds for
 * @flags: GPUWATCH_PLAN_*
 * @in_bytes: argument bytes to copy before the call
 * @out_bytes: argument bytes to copy after the call
 * @out_offset: where in the argument those begin, for large arguments whose
 *	results are few; at most GPUWATCH_PLAN_CAP_MAX
 * @nested: nested pointers
 *
 * in_bytes and out_bytes are caps, at most GPUWATCH_PLAN_CAP_MAX. Where the
 * request word encodes a size (_IOC_SIZE not 0) it is a cap too.
 */
struct gpuwatch_plan_entry {
	__u32 cmd;
	__u32 cmd_mask;
	__u32 node_mask;
	__u32 flags;
	__u16 in_bytes;
	__u16 out_bytes;
	__u32 out_offset;
	struct gpuwatch_plan_nested nested[2];
};

/**
 * struct gpuwatch_plan_size - length of a nested buffer by key
 * @key: for RM_ALLOC the class number
 * @bytes: size of its parameters
 */
struct gpuwatch_plan_size {
	__u32 key;
	__u32 bytes;
};

/**
 * struct gpuwatch_plan - argument of GPUWATCH_IOC_SET_PLAN
 * @entries: user address of struct gpuwatch_plan_entry[]
 * @sizes: user address of struct gpuwatch_plan_size[], sorted by key
 * @nr_entries: at most GPUWATCH_PLAN_ENTRIES
 * @nr_sizes: at most GPUWATCH_PLAN_SIZES
 * @default_bytes: argument bytes to copy before and after a command without
 *	entry whose request word encodes a size
 * @flags: 0
 * @generation: out: number of the plan, from 1
 *
 * Replaces the plan of the whole module. Entries are tried in order. A command
 * with neither entry nor encoded size is recorded without captures.
 */
struct gpuwatch_plan {
	__u64 entries;
	__u64 sizes;
	__u32 nr_entries;
	__u32 nr_sizes;
	__u32 default_bytes;
	__u32 flags;
	__u32 generation;
	__u32 pad;
};

/**
 * struct gpuwatch_stats - answer of GPUWATCH_IOC_GET_STATS, sums over all CPUs
 *	of this consumer
 * @records: records committed
 * @seq: records that passed the filter: records + lost to full rings
 * @bytes: bytes committed
 * @wakeups: times a poller was woken
 * @lost: by enum gpuwatch_loss; PROBE_MISSED is module-wide
 */
struct gpuwatch_stats {
	__u64 records;
	__u64 seq;
	__u64 bytes;
	__u64 wakeups;
	__u64 lost[GPUWATCH_LOSS_MAX];
};

/**
 * enum gpuwatch_probe_kind - what the argument of a probed function is
 * @GPUWATCH_PROBE_IMAGE: address of an image, whose extent its bytes tell:
 *	wrapper record, fatbin container, ELF file, text up to NUL
 * @GPUWATCH_PROBE_SIZED: address of bytes, their number in size_argument
 * @GPUWATCH_PROBE_PATH: address of a path, up to NUL
 * @GPUWATCH_PROBE_CALL: anything: only the call is of interest
 */
enum gpuwatch_probe_kind {
	GPUWATCH_PROBE_IMAGE = 1,
	GPUWATCH_PROBE_SIZED = 2,
	GPUWATCH_PROBE_PATH = 3,
	GPUWATCH_PROBE_CALL = 4,
};

#define GPUWATCH_PROBES_MAX	2048	/* in the whole module */
#define GPUWATCH_PROBE_ARGS	6	/* arguments that lie in registers */

/**
 * struct gpuwatch_probe - argument of GPUWATCH_IOC_ADD_PROBE
 * @offset: of the function's first instruction in the file, in bytes
 * @fd: the file, open for reading: a regular one on a file system that can be
 *	mapped. On an overlay the file below is probed, for all who share it.
 * @kind: enum gpuwatch_probe_kind
 * @argument: number of the argument, from 0 to GPUWATCH_PROBE_ARGS - 1
 * @size_argument: with GPUWATCH_PROBE_SIZED likewise, else 0
 * @id: out: names the probe, from 1
 * @pad: 0
 * @symbol: name for records, NUL padded, printable ASCII
 *
 * The probe holds the file until it is removed, or until this open file of
 * /dev/gpuwatch is closed. Two consumers share a probe at the same place. Only
 * 64-bit callers are seen. Needs GPUWATCH_IOC_SETUP first (-ENXIO).
 * -EBADF: no such file, or not open for reading. -EINVAL: no regular file,
 * beyond its end, or another bad value. -EEXIST: this consumer has it already.
 * -EBUSY: another consumer has one there with other arguments. -ENOSPC:
 * GPUWATCH_PROBES_MAX reached. -EOPNOTSUPP: a kernel without uprobes, or an
 * instruction they refuse. Others come from the kernel's uprobes as they are.
 */
struct gpuwatch_probe {
	__u64 offset;
	__s32 fd;
	__u32 kind;
	__u32 argument;
	__u32 size_argument;
	__u32 id;
	__u32 pad;
	char symbol[GPUWATCH_SYMBOL_LEN];
};

/**
 * struct gpuwatch_probe_ref - argument of GPUWATCH_IOC_REMOVE_PROBE
 * @id: as GPUWATCH_IOC_ADD_PROBE gave it; -ENOENT when it is not this consumer's
 * @hits: out: how often it was hit, by 64-bit callers
 */
struct gpuwatch_probe_ref {
	__u32 id;
	__u32 pad;
	__u64 hits;
};

/* gpuwatch_image.flags */
#define GPUWATCH_IMAGE_DROP	(1 << 0) /* give up this consumer's hold, as DROP_IMAGE */

/**
 * struct gpuwatch_image - argument of GPUWATCH_IOC_GET_IMAGE and
 *	GPUWATCH_IOC_DROP_IMAGE
 * @id: of a gpuwatch_rec_image; -ENOENT when it is not stored any more
 * @bytes: out, GET: bytes stored, at least 1
 * @fd: out, GET: a new descriptor, close-on-exec. It can be read, and mapped
 *	shared and read-only. It keeps the bytes, which count against the budget
 *	until it and its mappings are gone, and it keeps the module from unloading.
 * @flags: GPUWATCH_IMAGE_DROP; 0 for GPUWATCH_IOC_DROP_IMAGE
 *
 * Every consumer whose filter the record passed, and who owned the probe when it
 * was hit or has GPUWATCH_SETUP_HOLD_IMAGES, holds the image. It stays stored
 * until all of them have given it up or closed their file, or until it is older
 * than the module's parameter image_age_ms. Any consumer may get it meanwhile.
 */
struct gpuwatch_image {
	__u64 id;
	__u64 bytes;
	__s32 fd;
	__u32 flags;
};

/**
 * enum gpuwatch_image_loss - why an image, or a part of it, was not stored
 * @GPUWATCH_IMAGE_LOSS_FAULT: user memory could not be read to the end
 * @GPUWATCH_IMAGE_LOSS_MALFORMED: nonsense for a size
 * @GPUWATCH_IMAGE_LOSS_TOO_BIG: over image_max_bytes
 * @GPUWATCH_IMAGE_LOSS_OVER_BUDGET: over image_total_bytes
 * @GPUWATCH_IMAGE_LOSS_NO_MEMORY: no memory; there may be no record either
 * @GPUWATCH_IMAGE_LOSS_DEADLINE: over image_deadline_ms
 * @GPUWATCH_IMAGE_LOSS_KILLED: the caller was killed meanwhile; no record
 * @GPUWATCH_IMAGE_LOSS_EXPIRED: stored, but not given up within image_age_ms
 * @GPUWATCH_IMAGE_LOSS_MAX: number of slots kept, unused ones are 0
 */
enum gpuwatch_image_loss {
	GPUWATCH_IMAGE_LOSS_FAULT = 0,
	GPUWATCH_IMAGE_LOSS_MALFORMED = 1,
	GPUWATCH_IMAGE_LOSS_TOO_BIG = 2,
	GPUWATCH_IMAGE_LOSS_OVER_BUDGET = 3,
	GPUWATCH_IMAGE_LOSS_NO_MEMORY = 4,
	GPUWATCH_IMAGE_LOSS_DEADLINE = 5,
	GPUWATCH_IMAGE_LOSS_KILLED = 6,
	GPUWATCH_IMAGE_LOSS_EXPIRED = 7,
	GPUWATCH_IMAGE_LOSS_MAX = 16,
};

/**
 * struct gpuwatch_image_status - answer of GPUWATCH_IOC_GET_IMAGE_STATUS, for
 *	the whole module since it was loaded
 * @nr_probes: probes set
 * @nr_stored: images that can be had by id
 * @pending: captures under way right now
 * @pad: 0
 * @used_bytes: memory in use by images, whole pages, those being copied and
 *	those kept by descriptors alone counted in
 * @total_max_bytes: budget of all, parameter image_total_bytes
 * @image_max_bytes: budget of one, parameter of that name
 * @hits: probes hit by 64-bit callers
 * @stored: images stored, whole or in part
 * @stored_bytes: bytes of them
 * @lost: by enum gpuwatch_image_loss
 */
struct gpuwatch_image_status {
	__u32 nr_probes;
	__u32 nr_stored;
	__u32 pending;
	__u32 pad;
	__u64 used_bytes;
	__u64 total_max_bytes;
	__u64 image_max_bytes;
	__u64 hits;
	__u64 stored;
	__u64 stored_bytes;
	__u64 lost[GPUWATCH_IMAGE_LOSS_MAX];
};

#define GPUWATCH_IOC_MAGIC	0xE7

#define GPUWATCH_IOC_GET_INFO	_IOR(GPUWATCH_IOC_MAGIC, 0x00, struct gpuwatch_info)
#define GPUWATCH_IOC_SETUP	_IOW(GPUWATCH_IOC_MAGIC, 0x01, struct gpuwatch_setup)
#define GPUWATCH_IOC_SET_FILTER	_IOW(GPUWATCH_IOC_MAGIC, 0x02, struct gpuwatch_filter)
#define GPUWATCH_IOC_ENABLE	_IO(GPUWATCH_IOC_MAGIC, 0x03)
#define GPUWATCH_IOC_DISABLE	_IO(GPUWATCH_IOC_MAGIC, 0x04)
#define GPUWATCH_IOC_GET_STATS	_IOR(GPUWATCH_IOC_MAGIC, 0x05, struct gpuwatch_stats)
/* The rest concerns the whole module and needs CAP_SYS_ADMIN. */
#define GPUWATCH_IOC_ATTACH	_IO(GPUWATCH_IOC_MAGIC, 0x10)
#define GPUWATCH_IOC_DETACH	_IOWR(GPUWATCH_IOC_MAGIC, 0x11, struct gpuwatch_detach)
#define GPUWATCH_IOC_GET_TARGET	_IOWR(GPUWATCH_IOC_MAGIC, 0x12, struct gpuwatch_target)
#define GPUWATCH_IOC_SET_PLAN	_IOWR(GPUWATCH_IOC_MAGIC, 0x13, struct gpuwatch_plan)
/* Module images: all but the status need CAP_SYS_ADMIN, they read processes' memory. */
#define GPUWATCH_IOC_ADD_PROBE	_IOWR(GPUWATCH_IOC_MAGIC, 0x20, struct gpuwatch_probe)
#define GPUWATCH_IOC_REMOVE_PROBE _IOWR(GPUWATCH_IOC_MAGIC, 0x21, struct gpuwatch_probe_ref)
#define GPUWATCH_IOC_GET_IMAGE	_IOWR(GPUWATCH_IOC_MAGIC, 0x22, struct gpuwatch_image)
#define GPUWATCH_IOC_DROP_IMAGE	_IOW(GPUWATCH_IOC_MAGIC, 0x23, struct gpuwatch_image)
#define GPUWATCH_IOC_GET_IMAGE_STATUS _IOR(GPUWATCH_IOC_MAGIC, 0x24, struct gpuwatch_image_status)

#endif /* _UAPI_LINUX_GPUWATCH_H */
