// SPDX-License-Identifier: Apache-2.0
/*
 * verify.c - see verify.h. Takes nothing from the module's sources: the header
 * and the storm's bytes are all it knows.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../vm/guest/storm.h"
#include "verify.h"

/* --- set ------------------------------------------------------------------ */

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ULL;
	return (x ^ (x >> 32)) | 1;	/* 0 marks a free place */
}

static size_t set_place(const struct gw_set *set, uint64_t key)
{
	size_t i = key & (set->room - 1);

	while (set->places[i].key && set->places[i].key != key)
		i = (i + 1) & (set->room - 1);
	return i;
}

bool gw_set_has(const struct gw_set *set, uint64_t key)
{
	return set->room && set->places[set_place(set, mix(key))].key;
}

uint64_t *gw_set_value(struct gw_set *set, uint64_t key)
{
	struct gw_place *place;
	size_t i;

	if (2 * set->nr >= set->room) {
		struct gw_set old = *set;

		set->room = old.room ? 2 * old.room : 1024;
		set->places = calloc(set->room, sizeof(*set->places));
		if (!set->places)
			abort();
		for (i = 0; i < old.room; i++)
			if (old.places[i].key)
				set->places[set_place(set, old.places[i].key)] = old.places[i];
		free(old.places);
	}
	place = &set->places[set_place(set, mix(key))];
	set->nr += !place->key;
	place->key = mix(key);
	return &place->value;
}

bool gw_set_add(struct gw_set *set, uint64_t key)
{
	size_t before = set->nr;

	gw_set_value(set, key);
	return set->nr != before;
}

void gw_set_free(struct gw_set *set)
{
	free(set->places);
	memset(set, 0, sizeof(*set));
}

uint64_t gw_task_key(const struct gpuwatch_rec *rec)
{
	return mix(rec->start_ns) + rec->tgid;
}

uint64_t gw_cgroup_key(const struct gpuwatch_rec *rec)
{
	return mix(rec->cgroup_id * 2 + !!(rec->flags & GPUWATCH_F_CGROUP_V1)) + 1;
}

/* --- single records ------------------------------------------------------- */

__attribute__((format(printf, 4, 5)))
static void fault(struct gw_verdict *v, unsigned long long *counter,
		  const struct gpuwatch_rec *rec, const char *format, ...)
{
	va_list args;
	size_t n;

	++*counter;
	if (v->first[0])
		return;
	n = snprintf(v->first, sizeof(v->first), "type %u cpu %u seq %llu tgid %u tid %u: ",
		     rec->type, rec->cpu, (unsigned long long)rec->seq, rec->tgid, rec->tid);
	va_start(args, format);
	vsnprintf(v->first + n, sizeof(v->first) - n, format, args);
	va_end(args);
}

/* Captures fill the record exactly, padding is 0. */
static void check_ioctl_shape(const struct gpuwatch_rec *rec, struct gw_verdict *v)
{
	const struct gpuwatch_rec_ioctl *io = gw_payload(rec);
	const uint8_t *p = (const uint8_t *)(io + 1), *end = (const uint8_t *)rec + rec->len;
	unsigned int i, j;

	for (i = 0; i < io->nr_captures; i++) {
		const struct gpuwatch_capture *c = (const void *)p;
		size_t padded;

		if (p + sizeof(*c) > end) {
			fault(v, &v->malformed, rec, "capture %u lies beyond the end", i);
			return;
		}
		padded = (c->len + 7ULL) / 8 * 8;
		if (padded > (size_t)(end - p) - sizeof(*c) || c->len > c->want ||
		    (c->offset && (c->what != GPUWATCH_CAP_ARG_OUT || c->offset > c->want - c->len)) ||
		    c->what < GPUWATCH_CAP_ARG_IN || c->what > GPUWATCH_CAP_NESTED1_OUT ||
		    (c->flags & (GPUWATCH_CAPF_FAULT | GPUWATCH_CAPF_NO_ROOM) && c->len)) {
			fault(v, &v->malformed, rec, "capture %u: what %u flags %u want %u len %u", i,
			      c->what, c->flags, c->want, c->len);
			return;
		}
		for (j = c->len; j < padded; j++)
			if (p[sizeof(*c) + j])
				fault(v, &v->malformed, rec, "padding of capture %u is not 0", i);
		p += sizeof(*c) + padded;
	}
	if (p != end || io->pad)
		fault(v, &v->malformed, rec, "%zd bytes left behind the captures", end - p);
}

/* Bytes of what lies behind a process's path, 0 when that can't be. */
static size_t more_bytes(const struct gpuwatch_rec *rec, const void *at)
{
	const struct gpuwatch_task_more *more = at;

	if ((const char *)(more + 1) > (const char *)rec + rec->len || more->pad ||
	    more->nr_ancestors > GPUWATCH_ANCESTORS_MAX || more->nr_ns > GPUWATCH_NS_MAX)
		return 0;
	return sizeof(*more) + more->nr_ancestors * sizeof(struct gpuwatch_ancestor) +
	       (more->nr_ns + 1) / 2 * 8;
}

static void check_shape(const struct gpuwatch_rec *rec, struct gw_verdict *v)
{
	static const size_t fixed[GW_TYPES] = {
		[GPUWATCH_REC_OPEN] = sizeof(struct gpuwatch_rec_open),
		[GPUWATCH_REC_IOCTL] = sizeof(struct gpuwatch_rec_ioctl),
		[GPUWATCH_REC_MMAP] = sizeof(struct gpuwatch_rec_mmap),
		[GPUWATCH_REC_RELEASE] = sizeof(struct gpuwatch_rec_release),
		[GPUWATCH_REC_TASK] = sizeof(struct gpuwatch_rec_task),
		[GPUWATCH_REC_CGROUP] = sizeof(struct gpuwatch_rec_cgroup),
		[GPUWATCH_REC_STATE] = sizeof(struct gpuwatch_rec_state),
	};
	size_t want, path = 0;

	if (rec->type >= GW_TYPES || !fixed[rec->type] || rec->pad[0] || rec->pad[1] ||
	    rec->pad[2] || rec->len > GPUWATCH_REC_MAX) {
		fault(v, &v->malformed, rec, "header: type %u len %u", rec->type, rec->len);
		return;
	}
	want = sizeof(*rec) + fixed[rec->type];
	if (rec->len < want) {
		fault(v, &v->malformed, rec, "%u bytes, too short", rec->len);
		return;
	}
	if (rec->type == GPUWATCH_REC_IOCTL) {
		check_ioctl_shape(rec, v);
		return;
	}
	if (rec->type == GPUWATCH_REC_TASK)
		path = ((const struct gpuwatch_rec_task *)gw_payload(rec))->path_len;
	if (rec->type == GPUWATCH_REC_CGROUP)
		path = ((const struct gpuwatch_rec_cgroup *)gw_payload(rec))->path_len;
	if (rec->type == GPUWATCH_REC_OPEN)
		want += sizeof(struct gpuwatch_open_node);
	if (rec->type == GPUWATCH_REC_TASK && path <= GPUWATCH_PATH_MAX)
		want += more_bytes(rec, (const char *)gw_payload(rec) + want - sizeof(*rec) +
					 (path + 7) / 8 * 8);
	if (path > GPUWATCH_PATH_MAX || rec->len != want + (path + 7) / 8 * 8)
		fault(v, &v->malformed, rec, "%u bytes with a path of %zu", rec->len, path);
}

static const struct storm_arg *storm_arg_of(const struct gpuwatch_rec *rec)
{
	const struct gpuwatch_rec_ioctl *io = gw_payload(rec);
	const struct gpuwatch_capture *in;
	const struct storm_arg *arg;

	if (rec->type != GPUWATCH_REC_IOCTL || (io->cmd & 0xc000ffff) != GWSIM_TRANSFORM(0))
		return NULL;
	in = gw_capture(rec, GPUWATCH_CAP_ARG_IN);
	if (!in || in->len < STORM_ARG_MIN)
		return NULL;
	arg = (const void *)(in + 1);
	return arg->mark == STORM_MARK ? arg : NULL;
}

/* The argument before is the storm's to the byte, the one after the answer. */
static void check_storm_bytes(const struct gpuwatch_rec *rec, const struct storm_arg *arg,
			      struct gw_verdict *v)
{
	const struct gpuwatch_rec_ioctl *io = gw_payload(rec);
	const struct gpuwatch_capture *in = gw_capture(rec, GPUWATCH_CAP_ARG_IN);
	const struct gpuwatch_capture *out = gw_capture(rec, GPUWATCH_CAP_ARG_OUT);
	uint32_t bytes = io->cmd >> 16 & 0x3fff;
	static uint8_t want[16384];

	if (arg->bytes != bytes || in->want != bytes || !out || out->want != bytes || io->ret) {
		fault(v, &v->bad_bytes, rec, "storm call of %u bytes: want %u, out %u, ret %lld",
		      bytes, in->want, out ? out->want : 0, (long long)io->ret);
		return;
	}
	storm_fill(want, bytes, arg->seed, arg->proc, arg->thread, arg->seq);
	if (memcmp(want, in + 1, in->len)) {
		fault(v, &v->bad_bytes, rec, "storm call %llu: bytes before differ",
		      (unsigned long long)arg->seq);
		return;
	}
	gwsim_transform(want, bytes);
	if (memcmp(want + out->offset, out + 1, out->len))
		fault(v, &v->bad_bytes, rec, "storm call %llu: bytes after differ",
		      (unsigned long long)arg->seq);
}

static void count_op(const struct gpuwatch_rec *rec, struct gw_verdict *v)
{
	int op = rec->type == GPUWATCH_REC_OPEN ? GWSIM_OP_OPEN :
		 rec->type == GPUWATCH_REC_MMAP ? GWSIM_OP_MMAP :
		 rec->type == GPUWATCH_REC_RELEASE ? GWSIM_OP_RELEASE :
		 rec->type != GPUWATCH_REC_IOCTL ? -1 :
		 rec->flags & GPUWATCH_F_COMPAT ? GWSIM_OP_COMPAT_IOCTL : GWSIM_OP_IOCTL;

	if (rec->type < GW_TYPES)
		v->n[rec->type]++;
	if (op >= 0 && rec->node_kind < GPUWATCH_NODE_MAX)
		v->op[rec->node_kind][op]++;
}

static void check_one(const struct gpuwatch_rec *rec, struct gw_verdict *v)
{
	const struct storm_arg *arg;

	count_op(rec, v);
	check_shape(rec, v);
	arg = storm_arg_of(rec);
	if (arg) {
		v->storm++;
		check_storm_bytes(rec, arg, v);
	}
}

void gw_verify_parts(const struct gw_stream *s, struct gw_verdict *v)
{
	size_t i;

	memset(v, 0, sizeof(*v));
	for (i = 0; i < s->nr; i++)
		check_one(gw_rec(s, i), v);
}

/* --- the stream ----------------------------------------------------------- */

static void check_thread(const struct gpuwatch_rec *rec, struct gw_set *threads,
			 struct gw_verdict *v)
{
	const struct storm_arg *arg = storm_arg_of(rec);
	uint64_t *next;

	/* Threads from 256 on are the storm's short-lived children: one call each. */
	if (!arg || arg->thread >= 256)
		return;
	next = gw_set_value(threads, mix(arg->seed) + ((uint64_t)rec->tgid << 32) +
				     ((uint64_t)arg->proc << 12) + arg->thread);
	if (arg->seq < *next) {
		fault(v, &v->thread_back, rec, "storm thread %u went back from %llu to %llu",
		      arg->thread, (unsigned long long)*next, (unsigned long long)arg->seq);
	} else if (arg->seq > *next) {
		fault(v, &v->thread_gaps, rec, "storm thread %u: call %llu is missing", arg->thread,
		      (unsigned long long)*next);
		v->thread_gaps += arg->seq - *next - 1;
	}
	*next = arg->seq + 1;
}

/* Rings promise order each, and the merge every thread's; no more. */
static void check_time(const struct gpuwatch_rec *rec, struct gw_set *times, struct gw_verdict *v)
{
	const uint64_t keys[] = { rec->cpu, mix(rec->tid) };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		uint64_t *last = gw_set_value(times, keys[i]);

		if (rec->time_ns < *last)
			fault(v, &v->time_back, rec, "%llu ns before the record before it in its %s",
			      (unsigned long long)(*last - rec->time_ns), i ? "thread" : "ring");
		*last = rec->time_ns;
	}
}

/* Definitions come before use in the same ring; module states need none. */
static void check_defined(const struct gpuwatch_rec *rec, struct gw_set *defined,
			  struct gw_verdict *v)
{
	uint64_t task = gw_task_key(rec), cgroup = gw_cgroup_key(rec);

	if (rec->type == GPUWATCH_REC_TASK) {
		gw_set_add(defined, task);
	} else if (rec->type == GPUWATCH_REC_CGROUP) {
		gw_set_add(defined, cgroup);
	} else if (rec->type != GPUWATCH_REC_STATE) {
		if (!gw_set_has(defined, task))
			fault(v, &v->undefined, rec, "its process is not defined");
		if (!gw_set_has(defined, cgroup))
			fault(v, &v->undefined, rec, "its cgroup %llu is not defined",
			      (unsigned long long)rec->cgroup_id);
	}
}

void gw_verify(const struct gw_stream *s, unsigned int nr_cpus, const uint64_t *first_seq,
	       struct gw_verdict *v)
{
	struct gw_set *defined = calloc(nr_cpus, sizeof(*defined));
	uint64_t *next = calloc(nr_cpus, sizeof(*next));
	struct gw_set threads = {}, times = {};
	size_t i;

	if (!defined || !next)
		abort();
	memset(v, 0, sizeof(*v));
	if (first_seq)
		memcpy(next, first_seq, nr_cpus * sizeof(*next));
	for (i = 0; i < s->nr; i++) {
		const struct gpuwatch_rec *rec = gw_rec(s, i);

		check_one(rec, v);
		if (rec->cpu >= nr_cpus) {
			fault(v, &v->malformed, rec, "CPU out of range");
			continue;
		}
		if (rec->seq != next[rec->cpu]) {
			fault(v, &v->gaps, rec, "expected seq %llu",
			      (unsigned long long)next[rec->cpu]);
			v->gaps += rec->seq > next[rec->cpu] ? rec->seq - next[rec->cpu] - 1 : 0;
		}
		next[rec->cpu] = rec->seq + 1;
		check_time(rec, &times, v);
		check_thread(rec, &threads, v);
		check_defined(rec, &defined[rec->cpu], v);
	}
	for (i = 0; i < nr_cpus; i++)
		gw_set_free(&defined[i]);
	free(defined);
	free(next);
	gw_set_free(&threads);
	gw_set_free(&times);
}

void gw_verdict_print(const struct gw_verdict *v)
{
	printf("# %llu ioctl, %llu open, %llu mmap, %llu release, %llu task, %llu cgroup, %llu state; "
	       "wrong: %llu gaps, %llu malformed, %llu time, %llu order, %llu missing, %llu bytes, "
	       "%llu undefined\n",
	       v->n[GPUWATCH_REC_IOCTL], v->n[GPUWATCH_REC_OPEN], v->n[GPUWATCH_REC_MMAP],
	       v->n[GPUWATCH_REC_RELEASE], v->n[GPUWATCH_REC_TASK], v->n[GPUWATCH_REC_CGROUP],
	       v->n[GPUWATCH_REC_STATE], v->gaps, v->malformed, v->time_back, v->thread_back,
	       v->thread_gaps, v->bad_bytes, v->undefined);
	if (v->first[0])
		printf("# first: %s\n", v->first);
	fflush(stdout);
}
