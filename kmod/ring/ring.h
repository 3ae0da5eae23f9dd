/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring.h - one ring of bytes per CPU, for one consumer. Knows lengths and
 * positions, never what a record means.
 *
 * One producer per ring: code running on that CPU with preemption off, in
 * process context (the hooks never run in interrupts). One reader per ring:
 * user space through the mapping, or read() under the set's mutex.
 */
#ifndef GW_RING_H
#define GW_RING_H

#include <linux/cache.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/gpuwatch.h>

struct file;
struct vm_area_struct;

#define GW_RING_MIN_BYTES PAGE_SIZE
#define GW_RING_MAX_BYTES (64UL << 20)

/*
 * Producer's fields only, except cons->tail, which user space writes: it is
 * taken as a hint and can cost nobody but its reader.
 */
struct gw_ring {
	struct gpuwatch_ring_producer *prod;	/* page 0 of the mapping */
	struct gpuwatch_ring_consumer *cons;	/* page of its own */
	u8 *data;				/* seen twice in a row */
	u64 mask;				/* ring_bytes - 1 */
	u64 limit;				/* bytes that may be in use; 0: overwrite */
	u64 wake_at;				/* head from which a wake-up may be due */
	u64 wakeups;
	u64 read_pos;				/* read() in overwrite mode is here */
	u32 watermark;
	bool overwrite;
	struct page **pages;			/* producer page, then data twice */
	struct page *cons_page;
} ____cacheline_aligned; /* rings of other CPUs are written at the same time */

struct gw_ring_set {
	unsigned int nr_cpus;
	unsigned int data_pages;
	struct gpuwatch_meta *meta;		/* a page */
	wait_queue_head_t wait;
	struct mutex read_lock;			/* serialises read() */
	unsigned int next_cpu;			/* where read() goes on */
	struct gw_ring rings[];
};

struct gw_ring_set *gw_ring_set_alloc(const struct gpuwatch_setup *setup);
void gw_ring_set_free(struct gw_ring_set *set);

/* False: no room even so, and the loss is counted. */
bool gw_ring_make_room(struct gw_ring *ring, u32 len);

/*
 * Room for @len bytes (a multiple of 8) in @ring, or NULL when they are lost,
 * which is counted. Preemption must be off until gw_ring_commit(). @seq gets
 * the record's number.
 */
static __always_inline void *gw_ring_reserve(struct gw_ring *ring, u32 len, u64 *seq)
{
	struct gpuwatch_ring_producer *prod = ring->prod;
	u64 head = prod->head;
	/* pairs with the reader's release: its reads are done */
	u64 used = head - smp_load_acquire(&ring->cons->tail);

	/* A tail ahead of head, or far behind, makes `used` huge. */
	if (unlikely(used + len > ring->limit || used > ring->limit) &&
	    !gw_ring_make_room(ring, len))
		return NULL;
	*seq = prod->next_seq++;
	return ring->data + (head & ring->mask);
}

/* At wake_at: is one due, given where the reader is by now? */
bool gw_ring_wanted_wake(struct gw_ring *ring, u64 head);

/*
 * True when a reader ought to be woken, by gw_ring_wake() with preemption on:
 * once per watermark of new bytes, not once per record.
 */
static __always_inline bool gw_ring_commit(struct gw_ring *ring, u32 len)
{
	struct gpuwatch_ring_producer *prod = ring->prod;
	u64 head = prod->head + len;

	prod->records++;
	smp_store_release(&prod->head, head); /* pairs with readers' acquire */
	if (likely(head < ring->wake_at))
		return false;
	return gw_ring_wanted_wake(ring, head);
}

void gw_ring_wake(struct gw_ring_set *set);

bool gw_ring_readable(struct gw_ring_set *set);
void gw_ring_stats(struct gw_ring_set *set, struct gpuwatch_stats *stats);
int gw_ring_mmap(struct gw_ring_set *set, struct vm_area_struct *vma);
ssize_t gw_ring_read(struct gw_ring_set *set, char __user *buf, size_t bytes, bool nonblock);

#endif
