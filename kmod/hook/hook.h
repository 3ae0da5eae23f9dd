/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hook.h - puts our code before and behind the driver's file operations, and
 * takes it out again. Never touches the driver's tables, never keeps a
 * reference to a driver module, never lets a call fail.
 *
 * Lock: gw_hook_lock for targets and state. Traced calls take it only once per
 * newly seen operations table.
 */
#ifndef GW_HOOK_H
#define GW_HOOK_H

#include <linux/fs.h>
#include <linux/kprobes.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/types.h>
#include <linux/gpuwatch.h>

#define GW_TARGETS_PER_OP	16
#define GW_OPS			(GPUWATCH_OP_RELEASE + 1)
#define GW_TARGETS_MAX		(GW_OPS * GW_TARGETS_PER_OP)

/* Calls that went in and came out; their difference is in flight. */
struct gw_flow {
	u64 in;
	u64 out;
};

/* One driver function. A slot's number is fixed, since wrappers know it. */
struct gw_target {
	unsigned long func;	/* 0: the slot is free */
	unsigned long wrapper;
	unsigned long body;	/* where a redirected call goes on; 0: not known yet */
	u8 op;			/* enum gpuwatch_op */
	u8 method;		/* GPUWATCH_METHOD_* in force */
	int error;
	struct kretprobe kretprobe;
	char module[GPUWATCH_NAME_LEN];
};

extern struct gw_target gw_targets[GW_TARGETS_MAX];
extern struct mutex gw_hook_lock;

/* target.c: the slots. Under gw_hook_lock unless said otherwise. */
void gw_target_init(void);
struct gw_target *gw_target_add(enum gpuwatch_op op, unsigned long func, const char *module);
void gw_target_remove(struct gw_target *target);
int gw_target_hook(struct gw_target *target);
void gw_target_hook_all(void);
void gw_target_unhook_all(void);
void gw_target_flow(const struct gw_target *target, u64 *calls, u64 *in_flight);
u64 gw_target_in_flight(void);		/* sum over all, without the lock */
int gw_target_get(struct gpuwatch_target *to);	/* takes the lock itself */
unsigned int gw_target_count(void);

DECLARE_PER_CPU(struct gw_flow[GW_TARGETS_MAX], gw_flows);

static __always_inline void gw_target_enter(struct gw_target *target)
{
	this_cpu_inc(gw_flows[target - gw_targets].in);
}

static __always_inline void gw_target_leave(struct gw_target *target)
{
	this_cpu_inc(gw_flows[target - gw_targets].out);
}

/* redirect.c, kretprobe.c: the two methods. */
int gw_redirect_init(void);
int gw_redirect_set(struct gw_target *target);
void gw_redirect_clear(struct gw_target *target);
/* Takes all redirects out at once; each is to be cleared after. */
void gw_redirect_stop(void);
int gw_kretprobe_set(struct gw_target *target);
void gw_kretprobe_clear(struct gw_target *target);
u64 gw_kretprobe_missed(void);

/* wrap.c: address of the code that stands in for slot @index of @op. */
unsigned long gw_wrapper(enum gpuwatch_op op, unsigned int index);

/* discover.c: which functions to hook. */
int gw_discover_start(void);		/* under gw_hook_lock */
void gw_discover_forget(void);		/* under gw_hook_lock */
void gw_discover_opened(struct file *file);	/* may sleep */
void gw_discover_later(void);			/* any context */
int gw_discover_init(void);
void gw_discover_exit(void);

/* attach.c: the state machine. */
int gw_hook_init(void);
void gw_hook_exit(void);
int gw_hook_attach(bool pin);
/* -EBUSY and *in_flight when calls are still inside after @timeout_ms. */
int gw_hook_detach(unsigned int timeout_ms, u32 *in_flight);
void gw_hook_consumer_gone(void);	/* detaches when nothing needs the hooks */
void gw_hook_info(struct gpuwatch_info *info);
bool gw_hook_attached(void);		/* under gw_hook_lock */

#endif
