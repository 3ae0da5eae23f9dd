// SPDX-License-Identifier: Apache-2.0
/*
 * verify_log.c - the records against the driver's own log. Both are sorted by
 * thread, keeping the order within one, and then compared side by side.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify.h"

struct line {
	uint64_t thread;
	size_t index;
};

static int by_thread(const void *pa, const void *pb)
{
	const struct line *a = pa, *b = pb;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/* 0: differs, 1: agrees, 2: agrees as far as the capped bytes tell. */
static int same_bytes(const struct gpuwatch_rec *rec, unsigned int what, uint32_t len,
		      uint64_t hash)
{
	const struct gpuwatch_capture *c = gw_capture(rec, what);

	if (!len)
		return 1;
	if (!c || c->want != len)
		return 0;
	if (c->len < c->want)
		return c->flags ? 2 : 0;
	return gwsim_hash((const uint8_t *)(c + 1), c->len) == hash;
}

static const char *compare(const struct gpuwatch_rec *rec, const struct gwsim_log_entry *e,
			   bool *capped)
{
	const struct gpuwatch_rec_ioctl *io = gw_payload(rec);
	bool xfer = rec->flags & GPUWATCH_F_XFER;
	const struct {
		unsigned int what;
		uint32_t len;
		uint64_t hash;
		const char *name;
	} parts[] = {
		{ GPUWATCH_CAP_ARG_IN, e->in_len, e->in_hash, "bytes before" },
		{ GPUWATCH_CAP_ARG_OUT, e->out_len, e->out_hash, "bytes after" },
		{ GPUWATCH_CAP_NESTED0_IN, e->nested_in_len, e->nested_in_hash, "nested before" },
		{ GPUWATCH_CAP_NESTED0_OUT, e->nested_out_len, e->nested_out_hash, "nested after" },
	};
	unsigned int i;

	/* A wrapper that could not be read has no inner command for either side. */
	if ((xfer && e->xfer ? io->inner_cmd : io->cmd) != e->cmd || (!xfer && e->xfer))
		return "command";
	if (rec->node_kind != e->kind)
		return "node";
	if (!(rec->flags & GPUWATCH_F_COMPAT) != (e->op != GWSIM_OP_COMPAT_IOCTL))
		return "ABI";
	if (io->ret != e->ret)
		return "return value";
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		int same = same_bytes(rec, parts[i].what, parts[i].len, parts[i].hash);

		if (!same)
			return parts[i].name;
		*capped |= same == 2;
	}
	return NULL;
}

unsigned long long gw_verify_log(const struct gw_stream *s, const struct gwsim_log_entry *log,
				 size_t nr, unsigned long long *unchecked, struct gw_verdict *v)
{
	struct line *ours = calloc(s->nr + 1, sizeof(*ours));
	struct line *theirs = calloc(nr + 1, sizeof(*theirs));
	unsigned long long agree = 0;
	size_t nr_ours = 0, i;

	if (!ours || !theirs)
		abort();
	*unchecked = 0;
	for (i = 0; i < s->nr; i++) {
		const struct gpuwatch_rec *rec = gw_rec(s, i);

		if (rec->type == GPUWATCH_REC_IOCTL)
			ours[nr_ours++] = (struct line) { (uint64_t)rec->tgid << 32 | rec->tid, i };
	}
	for (i = 0; i < nr; i++)
		theirs[i] = (struct line) { (uint64_t)log[i].tgid << 32 | log[i].tid, i };
	qsort(ours, nr_ours, sizeof(*ours), by_thread);
	qsort(theirs, nr, sizeof(*theirs), by_thread);
	for (i = 0; i < nr && i < nr_ours; i++) {
		const struct gpuwatch_rec *rec = gw_rec(s, ours[i].index);
		const struct gwsim_log_entry *e = &log[theirs[i].index];
		bool capped = false;
		const char *what = ours[i].thread != theirs[i].thread ? "thread"
								      : compare(rec, e, &capped);

		if (!what) {
			agree++;
			*unchecked += capped;
		} else if (!v->first[0]) {
			const struct gpuwatch_rec_ioctl *io = gw_payload(rec);

			snprintf(v->first, sizeof(v->first),
				 "%s differs from the witness: tid %u/%u cmd %x/%x kind %u/%u ret %lld/%lld in %u out %u",
				 what, rec->tid, e->tid, io->cmd, e->cmd, rec->node_kind, e->kind,
				 (long long)io->ret, (long long)e->ret, e->in_len, e->out_len);
		}
	}
	free(ours);
	free(theirs);
	return agree;
}
