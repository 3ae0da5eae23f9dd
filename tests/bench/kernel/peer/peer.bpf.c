// SPDX-License-Identifier: GPL-2.0
/*
 * BPF programs that record the same things as gpuwatch.ko into a BPF ring
 * buffer: by fentry and fexit with task storage or a hash map, and by kprobe and
 * kretprobe, which also run where modules have no BTF. For benches only.
 */
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <linux/types.h>
#include <linux/gpuwatch.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define PEER_BYTES	64

#define KERNEL_TYPE __attribute__((preserve_access_index))

struct task_struct {
	struct task_struct *group_leader;
	__u64 start_boottime;
} KERNEL_TYPE;

struct inode {
	__u32 i_rdev;
} KERNEL_TYPE;

struct file {
	struct inode *f_inode;
} KERNEL_TYPE;

struct peer_entry {
	__u64 begin_ns;
	struct file *file;
	unsigned long arg;
	__u32 cmd;
	__u32 pad;
	__u8 in[PEER_BYTES];
};

struct peer_record {
	struct gpuwatch_rec head;
	struct gpuwatch_rec_ioctl call;
	struct gpuwatch_capture in_head;
	__u8 in[PEER_BYTES];
	struct gpuwatch_capture out_head;
	__u8 out[PEER_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct peer_entry);
} by_task SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct peer_entry);
} by_id SEC(".maps");

static __always_inline void fill_entry(struct peer_entry *entry, struct file *file,
				       __u32 cmd, unsigned long arg)
{
	entry->file = file;
	entry->arg = arg;
	entry->cmd = cmd;
	entry->pad = 0;
	bpf_probe_read_user(entry->in, PEER_BYTES, (void *)arg);
	entry->begin_ns = bpf_ktime_get_ns();
}

static __always_inline void emit(const struct peer_entry *entry, long ret, __u64 start_ns,
				 __u32 rdev)
{
	struct peer_record *rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);
	__u64 id, now;

	if (!rec)
		return;
	now = bpf_ktime_get_ns();
	id = bpf_get_current_pid_tgid();
	__builtin_memset(&rec->head, 0, sizeof(rec->head));
	rec->head.len = sizeof(*rec);
	rec->head.type = GPUWATCH_REC_IOCTL;
	rec->head.time_ns = now;
	rec->head.cpu = bpf_get_smp_processor_id();
	rec->head.tgid = id >> 32;
	rec->head.tid = (__u32)id;
	rec->head.uid = (__u32)bpf_get_current_uid_gid();
	rec->head.start_ns = start_ns;
	rec->head.cgroup_id = bpf_get_current_cgroup_id();
	rec->head.file_id = (unsigned long)entry->file;
	rec->head.rdev = rdev;
	bpf_get_current_comm(rec->head.comm, sizeof(rec->head.comm));

	__builtin_memset(&rec->call, 0, sizeof(rec->call));
	rec->call.cmd = entry->cmd;
	rec->call.arg = entry->arg;
	rec->call.ret = ret;
	rec->call.duration_ns = now - entry->begin_ns;
	rec->call.nr_captures = 2;

	rec->in_head = (struct gpuwatch_capture) { GPUWATCH_CAP_ARG_IN, 0, PEER_BYTES, PEER_BYTES, 0 };
	__builtin_memcpy(rec->in, entry->in, PEER_BYTES);
	rec->out_head = (struct gpuwatch_capture) { GPUWATCH_CAP_ARG_OUT, 0, PEER_BYTES, PEER_BYTES, 0 };
	bpf_probe_read_user(rec->out, PEER_BYTES, (void *)entry->arg);
	bpf_ringbuf_submit(rec, 0);
}

SEC("fentry/nvidia_unlocked_ioctl")
int BPF_PROG(trampoline_enter, struct file *file, unsigned int cmd, unsigned long arg)
{
	struct peer_entry *entry;

	entry = bpf_task_storage_get(&by_task, bpf_get_current_task_btf(), 0,
				     BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (entry)
		fill_entry(entry, file, cmd, arg);
	return 0;
}

SEC("fexit/nvidia_unlocked_ioctl")
int BPF_PROG(trampoline_leave, struct file *file, unsigned int cmd, unsigned long arg, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct peer_entry *entry = bpf_task_storage_get(&by_task, task, 0, 0);

	if (entry)
		emit(entry, ret, task->group_leader->start_boottime, file->f_inode->i_rdev);
	return 0;
}

SEC("fentry/nvidia_unlocked_ioctl")
int BPF_PROG(hashed_enter, struct file *file, unsigned int cmd, unsigned long arg)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct peer_entry entry;

	fill_entry(&entry, file, cmd, arg);
	bpf_map_update_elem(&by_id, &id, &entry, BPF_ANY);
	return 0;
}

SEC("fexit/nvidia_unlocked_ioctl")
int BPF_PROG(hashed_leave, struct file *file, unsigned int cmd, unsigned long arg, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 id = bpf_get_current_pid_tgid();
	struct peer_entry *entry = bpf_map_lookup_elem(&by_id, &id);

	if (!entry)
		return 0;
	emit(entry, ret, task->group_leader->start_boottime, file->f_inode->i_rdev);
	bpf_map_delete_elem(&by_id, &id);
	return 0;
}

SEC("kprobe")
int BPF_KPROBE(probe_enter, struct file *file, unsigned int cmd, unsigned long arg)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct peer_entry entry;

	fill_entry(&entry, file, cmd, arg);
	bpf_map_update_elem(&by_id, &id, &entry, BPF_ANY);
	return 0;
}

SEC("kretprobe")
int BPF_KRETPROBE(probe_leave, long ret)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct peer_entry *entry = bpf_map_lookup_elem(&by_id, &id);
	struct task_struct *task;
	struct file *file;

	if (!entry)
		return 0;
	task = (struct task_struct *)bpf_get_current_task();
	file = entry->file;
	emit(entry, ret, BPF_CORE_READ(task, group_leader, start_boottime),
	     BPF_CORE_READ(file, f_inode, i_rdev));
	bpf_map_delete_elem(&by_id, &id);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
