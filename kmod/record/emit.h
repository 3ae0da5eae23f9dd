/* SPDX-License-Identifier: GPL-2.0 */
/*
 * emit.h - puts one record into the ring of every consumer whose filter it
 * passes, definitions first. For the files of this room only.
 */
#ifndef GW_EMIT_H
#define GW_EMIT_H

#include <linux/types.h>
#include <linux/gpuwatch.h>

struct gw_file_id;
struct gw_consumer;
struct gw_ring;
struct cgroup;

struct gw_source {
	u16 type;
	u16 flags;
	u32 fixed_bytes;		/* multiple of 8 */
	u32 data_bytes;			/* multiple of 8 */
	const struct gw_file_id *file;	/* NULL for records without a file */
	void *fixed;
	const void *data;
	u64 *duration_ns;		/* inside fixed; set to now - begin_ns */
	u64 begin_ns;
};

void gw_emit(struct gw_source *source);

/* Definitions made ready with preemption on. */
struct gw_definitions {
	void *buf;			/* of the stage pool */
	struct gpuwatch_rec *task;
	struct gpuwatch_rec *cgroup;
};

/* What all consumers' records of one call share. */
struct gw_subject {
	u64 now_ns;
	u64 task_key;
	u64 cgroup_id;
	u16 flags;
	unsigned int cpu;
	struct cgroup *cgroup;
};

bool gw_define_needed(struct gw_consumer *consumer, const struct gw_subject *subject);
void gw_define_prepare(struct gw_definitions *defs, const struct gw_subject *subject);
void gw_define_finish(struct gw_definitions *defs);
/* True when a reader ought to be woken. Preemption off. */
bool gw_define_emit(struct gw_consumer *consumer, struct gw_definitions *defs,
		    const struct gw_subject *subject);
void gw_emit_head(struct gpuwatch_rec *rec, const struct gw_subject *subject, u16 type,
		  u32 len, u64 seq);

#endif
