/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * gwsim.h - what the simulated NVIDIA driver and its test programs share:
 * test commands that every simulated node understands, and the control node
 * /dev/gwsim with sessions (expected calls and their answers) and the witness
 * (the driver's own counts, kept apart from those of the observer on test).
 * It must not depend on the observer's header: the witness is independent.
 */
#ifndef _GWSIM_H
#define _GWSIM_H

#include <linux/types.h>
#include <linux/ioctl.h>

/* Families of nodes, numbered like enum gpuwatch_node_kind. */
#define GWSIM_NODE_CTL		1
#define GWSIM_NODE_GPU		2
#define GWSIM_NODE_UVM		3
#define GWSIM_NODE_UVM_TOOLS	4
#define GWSIM_NODE_MODESET	5
#define GWSIM_NODE_CAPS		6
#define GWSIM_NODE_IMEX		7
#define GWSIM_NODE_NVSWITCH	8
#define GWSIM_NODE_NVLINK	9
#define GWSIM_NODE_MAX		10

/* What the witness counts. */
#define GWSIM_OP_OPEN		0
#define GWSIM_OP_IOCTL		1
#define GWSIM_OP_COMPAT_IOCTL	2
#define GWSIM_OP_MMAP		3
#define GWSIM_OP_RELEASE	4
#define GWSIM_OP_MAX		5

/* --- test commands, on every node that has an ioctl ---------------------- */

#define GWSIM_MAGIC		0xE8	/* no real NVIDIA node uses it */
#define GWSIM_COPY_MAX		8192	/* bytes of TRANSFORM and ECHO */

/* Returns 0 and touches nothing: for benches. */
#define GWSIM_NOP		_IO(GWSIM_MAGIC, 0xE0)
/* Copies `size` bytes in, applies gwsim_transform(), copies them out. */
#define GWSIM_TRANSFORM(size) \
	((3U << 30) | ((__u32)(size) << 16) | (GWSIM_MAGIC << 8) | 0xE1)
/* Copies `size` bytes in and out again, unchanged: for benches. */
#define GWSIM_ECHO(size) \
	((3U << 30) | ((__u32)(size) << 16) | (GWSIM_MAGIC << 8) | 0xE2)
#define GWSIM_BLOCK		_IOW(GWSIM_MAGIC, 0xE3, struct gwsim_block)
#define GWSIM_FAULT		_IOW(GWSIM_MAGIC, 0xE4, struct gwsim_fault)
#define GWSIM_CHANGE		_IOWR(GWSIM_MAGIC, 0xE5, struct gwsim_change)
/* Returns the __s64 it is given. */
#define GWSIM_RETURN		_IOW(GWSIM_MAGIC, 0xE6, __s64)

/**
 * struct gwsim_block - argument of GWSIM_BLOCK: sleep inside the driver
 * @ms: for so long, at most 120000
 * @killable: 0 sleeps through signals, 1 ends early with -EINTR on a deadly one
 */
struct gwsim_block {
	__u32 ms;
	__u32 killable;
};

/**
 * struct gwsim_fault - argument of GWSIM_FAULT: touch user memory
 * @addr: the driver reads here; -EFAULT when that fails, else 0
 * @len: bytes to read, at most GWSIM_COPY_MAX
 */
struct gwsim_fault {
	__u64 addr;
	__u64 len;
};

/**
 * struct gwsim_change - argument of GWSIM_CHANGE: memory changes in the call
 * @entered: the driver stores 1 here when it has read the argument
 * @go: then it waits until somebody stores something else than 0 here
 * @timeout_ms: -ETIMEDOUT after so long, at most 60000
 * @pad: 0
 * @data: free for another thread to change between @entered and @go
 */
struct gwsim_change {
	__u32 entered;
	__u32 go;
	__u32 timeout_ms;
	__u32 pad;
	__u8 data[48];
};

/*
 * Outside of a session the driver also answers RM_CONTROL (nr 0x2a, 32 bytes)
 * and RM_ALLOC (nr 0x2b, 48 bytes), wrapped by XFER or not: the nested
 * parameters of at most GWSIM_COPY_MAX bytes are transformed in place and the
 * status is set to 0; more bytes give status 0x1f and stay untouched.
 */

/*
 * The change TRANSFORM makes, in place: known to both sides, so a reader can
 * tell what the output has to be. Not its own inverse.
 */
static inline void gwsim_transform(__u8 *bytes, __u32 len)
{
	__u32 i;

	for (i = 0; i < len; i++)
		bytes[i] = (__u8)((bytes[i] ^ 0x5a) + i);
}

/* FNV-1a, 64 bits: the witness's digest of argument bytes. */
static inline __u64 gwsim_hash(const __u8 *bytes, __u32 len)
{
	__u64 h = 0xcbf29ce484222325ULL;
	__u32 i;

	for (i = 0; i < len; i++)
		h = (h ^ bytes[i]) * 0x100000001b3ULL;
	return h;
}

/* --- sessions: scripts of expected calls --------------------------------- */

/* gwsim_call.flags */
#define GWSIM_CALL_XFER		(1 << 0) /* wrapped in NV_ESC_IOCTL_XFER_CMD */

#define GWSIM_PARTS_MAX		3
#define GWSIM_PART_MAX		(1 << 20)	/* bytes in one direction */
#define GWSIM_SCRIPT_MAX	(64 << 20)	/* bytes of one script */

/**
 * struct gwsim_call - one expected call; a script is an array of them
 * @len: bytes of this struct with its parts, a multiple of 8
 * @op: GWSIM_OP_OPEN, _IOCTL (both ABIs) or _MMAP
 * @kind: GWSIM_NODE_*
 * @cmd: request word (ioctl)
 * @inner_cmd: with GWSIM_CALL_XFER: command inside the wrapper
 * @inner_size: with GWSIM_CALL_XFER: size inside the wrapper
 * @flags: GWSIM_CALL_*
 * @delay_us: time the driver sleeps between reading and answering, at most 10 s
 * @nr_parts: number of struct gwsim_part that follow (ioctl)
 * @ret: what the driver returns
 */
struct gwsim_call {
	__u32 len;
	__u16 op;
	__u16 kind;
	__u32 cmd;
	__u32 inner_cmd;
	__u32 inner_size;
	__u32 flags;
	__u32 delay_us;
	__u32 nr_parts;
	__s64 ret;
};

/**
 * struct gwsim_part - user memory of a call: what must be in it, what to put in
 * @ptr_offset: offset in the argument of the __u64 pointer to this memory;
 *	GWSIM_PART_ARG for the argument itself, which must come first
 * @in_len: bytes that must be there before, compared (pointers of other parts
 *	left out)
 * @out_len: bytes to put there, likewise
 * @out_offset: where in this memory those begin, at most GWSIM_PART_MAX
 *
 * Followed by in_len bytes, padded to 8, and out_len bytes, padded to 8.
 */
struct gwsim_part {
	__u32 ptr_offset;
	__u32 in_len;
	__u32 out_len;
	__u32 out_offset;
};

#define GWSIM_PART_ARG		0xffffffffU

/**
 * struct gwsim_bind - argument of GWSIM_IOC_BIND
 * @script: user address of the script
 * @bytes: its length, 0 to GWSIM_SCRIPT_MAX
 * @thread: 1 binds the calling thread, 0 the calling process
 * @pad: 0
 *
 * Binds until UNBIND or until the control file is closed; -EBUSY when bound.
 */
struct gwsim_bind {
	__u64 script;
	__u64 bytes;
	__u32 thread;
	__u32 pad;
};

/**
 * struct gwsim_session_stat - answer of GWSIM_IOC_UNBIND
 * @calls: calls of the script
 * @answered: calls that came as expected
 * @mismatches: calls that were not the expected next one; they got -EINVAL
 * @first_bad: index of the first call that did not match, ~0 when none
 */
struct gwsim_session_stat {
	__u64 calls;
	__u64 answered;
	__u64 mismatches;
	__u64 first_bad;
};

/* --- witness ------------------------------------------------------------- */

struct gwsim_counts {
	__u64 n[GWSIM_NODE_MAX][GWSIM_OP_MAX];
};

/**
 * struct gwsim_totals - answer of GWSIM_IOC_TOTALS
 * @counts: calls by node and operation, all processes
 * @log_used: entries in the log
 * @log_dropped: entries that found the log full
 * @untracked: calls missing in the table of processes for want of memory
 * @mismatches: calls that did not match their session's script
 */
struct gwsim_totals {
	struct gwsim_counts counts;
	__u64 log_used;
	__u64 log_dropped;
	__u64 untracked;
	__u64 mismatches;
};

/**
 * struct gwsim_task - one process in the witness's table
 * @tgid: process id in the initial pid namespace
 * @pad: 0
 * @start_ns: CLOCK_BOOTTIME when it started
 * @cgroup_id: cgroup2 id at its first call
 * @comm: name at its first call
 * @counts: its calls
 */
struct gwsim_task {
	__u32 tgid;
	__u32 pad;
	__u64 start_ns;
	__u64 cgroup_id;
	char comm[16];
	struct gwsim_counts counts;
};

/**
 * struct gwsim_tasks - argument of GWSIM_IOC_TASKS
 * @tasks: user address of struct gwsim_task[]
 * @room: entries that fit
 * @count: out: entries the table has; only the first @room are copied
 */
struct gwsim_tasks {
	__u64 tasks;
	__u32 room;
	__u32 count;
};

/**
 * struct gwsim_log_entry - one call, in order of completion per thread
 * @tgid: process id in the initial pid namespace
 * @tid: thread id likewise
 * @cmd: request word (ioctl), the inner command with XFER
 * @kind: GWSIM_NODE_*
 * @op: GWSIM_OP_*
 * @xfer: 1 when it came wrapped
 * @ret: what the driver returned
 * @in_hash: gwsim_hash() of the argument bytes read
 * @out_hash: gwsim_hash() of the argument bytes after the call
 * @nested_in_hash: the same for the first nested buffer
 * @nested_out_hash: likewise
 * @in_len: bytes behind in_hash, 0 when nothing was read
 * @out_len: bytes behind out_hash
 * @nested_in_len: likewise
 * @nested_out_len: likewise
 */
struct gwsim_log_entry {
	__u32 tgid;
	__u32 tid;
	__u32 cmd;
	__u8 kind;
	__u8 op;
	__u8 xfer;
	__u8 pad;
	__s64 ret;
	__u64 in_hash;
	__u64 out_hash;
	__u64 nested_in_hash;
	__u64 nested_out_hash;
	__u32 in_len;
	__u32 out_len;
	__u32 nested_in_len;
	__u32 nested_out_len;
};

/**
 * struct gwsim_log - argument of GWSIM_IOC_LOG
 * @entries: user address of struct gwsim_log_entry[]
 * @first: index of the first entry wanted
 * @room: entries that fit
 * @count: out: entries copied
 */
struct gwsim_log {
	__u64 entries;
	__u64 first;
	__u32 room;
	__u32 count;
};

#define GWSIM_IOC_BIND		_IOW(GWSIM_MAGIC, 0x01, struct gwsim_bind)
#define GWSIM_IOC_UNBIND	_IOR(GWSIM_MAGIC, 0x02, struct gwsim_session_stat)
#define GWSIM_IOC_TOTALS	_IOR(GWSIM_MAGIC, 0x03, struct gwsim_totals)
#define GWSIM_IOC_TASKS		_IOWR(GWSIM_MAGIC, 0x04, struct gwsim_tasks)
#define GWSIM_IOC_LOG		_IOWR(GWSIM_MAGIC, 0x05, struct gwsim_log)
/* Clears counts, table and log. Call it while no driver call runs. */
#define GWSIM_IOC_RESET		_IO(GWSIM_MAGIC, 0x06)

#endif /* _GWSIM_H */
