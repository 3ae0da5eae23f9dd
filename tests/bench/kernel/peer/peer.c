// SPDX-License-Identifier: GPL-2.0
/*
 * A plain module that records the same things as gpuwatch.ko by fprobe, the
 * kernel's own entry and exit hook: what one would write without a redirect. It
 * has no reader: its ring goes round. For benches only.
 */
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/vmalloc.h>
#include <linux/gpuwatch.h>

#ifndef CONFIG_FPROBE
static int __init peer_init(void)
{
	return -EOPNOTSUPP;
}

module_init(peer_init);
#else
#include <linux/fprobe.h>

#define PEER_BYTES	64	/* copied before and after, whatever the call */
#define PEER_RING	(1 << 20)

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
#define PEER_REGS	struct ftrace_regs
#define peer_arg(regs, n)	ftrace_regs_get_argument(regs, n)
#define peer_ret(regs)		ftrace_regs_get_return_value(regs)
#else
#define PEER_REGS	struct pt_regs
#define peer_arg(regs, n)	regs_get_kernel_argument(regs, n)
#define peer_ret(regs)		regs_return_value(regs)
#endif

struct peer_entry {
	u64 begin_ns;
	struct file *file;
	unsigned long arg;
	u32 cmd;
	u8 in[PEER_BYTES];
};

struct peer_record {
	struct gpuwatch_rec head;
	struct gpuwatch_rec_ioctl call;
	struct gpuwatch_capture in_head;
	u8 in[PEER_BYTES];
	struct gpuwatch_capture out_head;
	u8 out[PEER_BYTES];
};

struct peer_ring {
	u64 head, records;
	u8 *data;	/* with room for one record behind its end */
};

static DEFINE_PER_CPU(struct peer_ring, peer_rings);
static unsigned long records;
module_param(records, ulong, 0444);
MODULE_PARM_DESC(records, "records written, all CPUs; read only");

/* Handlers run with preemption off: what is not present stays out. */
static bool peer_copy(u8 *to, unsigned long from)
{
	bool ok;

	pagefault_disable();
	ok = access_ok((void __user *)from, PEER_BYTES) &&
	     !__copy_from_user_inatomic(to, (void __user *)from, PEER_BYTES);
	pagefault_enable();
	return ok;
}

static int peer_enter(struct fprobe *probe, unsigned long ip, unsigned long ret_ip,
		      PEER_REGS *regs, void *data)
{
	struct peer_entry *entry = data;
	u8 bytes[PEER_BYTES];

	entry->file = (struct file *)peer_arg(regs, 0);
	entry->cmd = peer_arg(regs, 1);
	entry->arg = peer_arg(regs, 2);
	/* By the stack: hardened usercopy may not like where entries lie. */
	if (!peer_copy(bytes, entry->arg))
		memset(bytes, 0, sizeof(bytes));
	memcpy(entry->in, bytes, sizeof(bytes));
	entry->begin_ns = ktime_get_ns();
	return 0;
}

static void peer_fill(struct peer_record *rec, const struct peer_entry *entry, long ret)
{
	u64 now = ktime_get_ns();

	rec->head = (struct gpuwatch_rec) {
		.len = sizeof(*rec), .type = GPUWATCH_REC_IOCTL, .time_ns = now,
		.cpu = smp_processor_id(), .tgid = current->tgid, .tid = current->pid,
		.uid = __kuid_val(current_uid()),
		.start_ns = current->group_leader->start_boottime,
		.file_id = (unsigned long)entry->file,
		.rdev = file_inode(entry->file)->i_rdev,
	};
	rcu_read_lock();
	rec->head.cgroup_id = cgroup_id(task_dfl_cgroup(current));
	rcu_read_unlock();
	memcpy(rec->head.comm, current->comm, sizeof(rec->head.comm));
	rec->call = (struct gpuwatch_rec_ioctl) {
		.cmd = entry->cmd, .arg = entry->arg, .ret = ret,
		.duration_ns = now - entry->begin_ns, .nr_captures = 2,
	};
	rec->in_head = (struct gpuwatch_capture) {
		.what = GPUWATCH_CAP_ARG_IN, .want = PEER_BYTES, .len = PEER_BYTES };
	memcpy(rec->in, entry->in, PEER_BYTES);
	rec->out_head = (struct gpuwatch_capture) {
		.what = GPUWATCH_CAP_ARG_OUT, .want = PEER_BYTES, .len = PEER_BYTES };
	if (!peer_copy(rec->out, entry->arg))
		rec->out_head.flags = GPUWATCH_CAPF_FAULT;
}

static void peer_exit_call(struct fprobe *probe, unsigned long ip, unsigned long ret_ip,
			   PEER_REGS *regs, void *data)
{
	struct peer_ring *ring = this_cpu_ptr(&peer_rings);
	struct peer_record *rec = (void *)(ring->data + ring->head % PEER_RING);

	peer_fill(rec, data, peer_ret(regs));
	rec->head.seq = ring->records++;
	smp_store_release(&ring->head, ring->head + sizeof(*rec));
	records++;
}

static struct fprobe peer_probe = {
	.entry_data_size = sizeof(struct peer_entry),
	.entry_handler = peer_enter,
	.exit_handler = peer_exit_call,
};

static void peer_free(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		vfree(per_cpu(peer_rings, cpu).data);
}

static int __init peer_init(void)
{
	unsigned int cpu;
	int ret;

	for_each_possible_cpu(cpu) {
		u8 *data = vzalloc(PEER_RING + sizeof(struct peer_record));

		per_cpu(peer_rings, cpu).data = data;
		if (!data) {
			ret = -ENOMEM;
			goto err_free;
		}
	}
	ret = register_fprobe(&peer_probe, "nvidia_unlocked_ioctl", NULL);
	if (ret)
		goto err_free;
	return 0;

err_free:
	peer_free();
	return ret;
}

static void __exit peer_exit(void)
{
	unregister_fprobe(&peer_probe);
	peer_free();
}

module_init(peer_init);
module_exit(peer_exit);
#endif

MODULE_DESCRIPTION("Records a driver's ioctls by fprobe, to compare costs");
MODULE_LICENSE("GPL");
