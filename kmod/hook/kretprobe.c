// SPDX-License-Identifier: GPL-2.0
/*
 * kretprobe.c - the second method, where a function has no ftrace site or
 * another redirect (a live patch) owns it. Handlers run with preemption off,
 * so user memory is copied only where it is present.
 */
#include <linux/cdev.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "compat/kretprobe.h"
#include "hook/hook.h"
#include "record/consumer.h"
#include "record/clock.h"
#include "record/record.h"
#include "record/tap.h"

/* Calls that may be inside the driver at once, for one function. */
#define GW_KRETPROBE_INSTANCES	128

static atomic64_t gw_kretprobe_missed_before = ATOMIC64_INIT(0);

/*
 * What an instance keeps from entry to return. Captures lie in it too: an
 * instance whose probe was removed meanwhile never comes back to free a thing.
 */
struct gw_probed {
	bool wanted;
	u64 begin;
	union {
		struct gw_call call;
		struct file *file;
		struct gw_file_id id;
		struct {
			struct gw_file_id id;
			struct vm_area_struct *vma;
		} map;
	};
	u8 captures[2560] __aligned(8);	/* ioctl only */
};

static int gw_kretprobe_enter(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct gw_target *target = container_of(gw_kretprobe(ri), struct gw_target, kretprobe);
	struct gw_probed *probed = (struct gw_probed *)ri->data;
	unsigned long args[] = { regs->di, regs->si, regs->dx };

	/* Not 0: kretprobe would drop the instance, and discovery its opens. */
	probed->wanted = gw_consumer_any();
	gw_target_enter(target);
	switch (target->op) {
	case GPUWATCH_OP_IOCTL:
	case GPUWATCH_OP_COMPAT_IOCTL:
		if (probed->wanted)
			gw_record_ioctl_enter_atomic(&probed->call, (struct file *)args[0],
						     args[1], args[2], GPUWATCH_F_PROBE,
						     probed->captures, sizeof(probed->captures));
		break;
	case GPUWATCH_OP_OPEN:
		probed->wanted |= READ_ONCE(gw_tap_listened);
		probed->file = (struct file *)args[1];
		break;
	case GPUWATCH_OP_MMAP:
		probed->map.vma = (struct vm_area_struct *)args[1];
		probed->wanted &= gw_record_file((struct file *)args[0], &probed->map.id);
		break;
	case GPUWATCH_OP_RELEASE:
		probed->wanted |= READ_ONCE(gw_tap_listened);
		probed->wanted &= gw_record_file((struct file *)args[1], &probed->id);
		break;
	default:
		probed->wanted = false;
		break;
	}
	probed->begin = gw_clock_mark();
	return 0;
}

static int gw_kretprobe_leave(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct gw_target *target = container_of(gw_kretprobe(ri), struct gw_target, kretprobe);
	struct gw_probed *probed = (struct gw_probed *)ri->data;
	long ret = regs_return_value(regs);
	struct gw_vma_range range;

	if (target->op == GPUWATCH_OP_OPEN && !ret)
		gw_discover_later();
	if (!probed->wanted)
		goto out_leave;
	switch (target->op) {
	case GPUWATCH_OP_IOCTL:
	case GPUWATCH_OP_COMPAT_IOCTL:
		gw_record_ioctl_exit(&probed->call, ret);
		break;
	case GPUWATCH_OP_OPEN:
		gw_record_open(probed->file, probed->begin, ret, GPUWATCH_F_PROBE);
		break;
	case GPUWATCH_OP_MMAP:
		range = gw_vma_range_of(probed->map.vma);
		gw_record_mmap(&probed->map.id, &range, probed->begin, ret, GPUWATCH_F_PROBE);
		break;
	case GPUWATCH_OP_RELEASE:
		gw_record_release(&probed->id, probed->begin, GPUWATCH_F_PROBE);
		break;
	}
out_leave:
	gw_target_leave(target);
	return 0;
}

int gw_kretprobe_set(struct gw_target *target)
{
	struct kretprobe *probe = &target->kretprobe;

	memset(probe, 0, sizeof(*probe));
	probe->kp.addr = (kprobe_opcode_t *)target->func;
	probe->entry_handler = gw_kretprobe_enter;
	probe->handler = gw_kretprobe_leave;
	probe->data_size = offsetof(struct gw_probed, captures);
	if (target->op == GPUWATCH_OP_IOCTL || target->op == GPUWATCH_OP_COMPAT_IOCTL)
		probe->data_size = sizeof(struct gw_probed);
	probe->maxactive = GW_KRETPROBE_INSTANCES;
	return register_kretprobe(probe);
}

/*
 * Calls in flight stay counted: their return handler does not run any more, so
 * what went in is taken as come out. No code of ours is left in their way.
 */
void gw_kretprobe_clear(struct gw_target *target)
{
	unsigned int cpu;

	unregister_kretprobe(&target->kretprobe);
	atomic64_add(target->kretprobe.nmissed, &gw_kretprobe_missed_before);
	target->kretprobe.nmissed = 0;
	for_each_possible_cpu(cpu) {
		struct gw_flow *flow = &per_cpu(gw_flows, cpu)[target - gw_targets];

		flow->out = flow->in;
	}
}

u64 gw_kretprobe_missed(void)
{
	u64 missed = atomic64_read(&gw_kretprobe_missed_before);
	unsigned int i;

	for (i = 0; i < GW_TARGETS_MAX; i++)
		if (gw_targets[i].method == GPUWATCH_METHOD_KRETPROBE)
			missed += READ_ONCE(gw_targets[i].kretprobe.nmissed);
	return missed;
}
