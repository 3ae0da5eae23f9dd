/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.h - what must hold for any stream of records, and what must hold for
 * the storm's: order, gaps, definitions, bytes. Counts what is wrong and keeps
 * the first case in words; the test decides what it accepts.
 */
#ifndef GW_SELFTESTS_VERIFY_H
#define GW_SELFTESTS_VERIFY_H

#include "lab.h"

#define GW_TYPES	9

struct gw_verdict {
	unsigned long long n[GW_TYPES];				/* by type */
	unsigned long long op[GPUWATCH_NODE_MAX][GWSIM_OP_MAX];	/* as the witness counts */
	unsigned long long storm;	/* TRANSFORM calls with the storm's bytes */
	/* All of these must be 0 where nothing is lost. */
	unsigned long long gaps;	/* records missing by sequence number */
	unsigned long long malformed;
	unsigned long long time_back;	/* in a ring, or for a thread in the merged order */
	unsigned long long thread_back;	/* a thread's calls out of order */
	unsigned long long thread_gaps;	/* a thread's calls missing */
	unsigned long long bad_bytes;	/* not the storm's, or not the answer to it */
	unsigned long long undefined;	/* no TASK or CGROUP before it in its ring */
	char first[256];		/* the first fault, in words */
};

/* Looks at all of @s. Sequence numbers of each ring start at @first_seq[cpu], NULL: 0. */
void gw_verify(const struct gw_stream *s, unsigned int nr_cpus, const uint64_t *first_seq,
	       struct gw_verdict *v);

/* Only the contents of single records, for a stream that is not whole. */
void gw_verify_parts(const struct gw_stream *s, struct gw_verdict *v);

/*
 * Compares the ioctl records of @s with the witness's log, thread by thread, in
 * order: command, node, return value and every byte by digest. Returns how many
 * calls agree; the rest is told in v->first. @unchecked: calls whose bytes were
 * capped, so that their digest says nothing.
 */
unsigned long long gw_verify_log(const struct gw_stream *s, const struct gwsim_log_entry *log,
				 size_t nr, unsigned long long *unchecked, struct gw_verdict *v);

/* Map from 64-bit keys to a number each, 0 at first; also used as a set. */
struct gw_set {
	struct gw_place {
		uint64_t key, value;
	} *places;
	size_t nr, room;
};
bool gw_set_add(struct gw_set *set, uint64_t key);	/* false: was there */
bool gw_set_has(const struct gw_set *set, uint64_t key);
uint64_t *gw_set_value(struct gw_set *set, uint64_t key);	/* adds it */
void gw_set_free(struct gw_set *set);

uint64_t gw_task_key(const struct gpuwatch_rec *rec);
uint64_t gw_cgroup_key(const struct gpuwatch_rec *rec);

void gw_verdict_print(const struct gw_verdict *v);

#endif
