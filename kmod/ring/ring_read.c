// SPDX-License-Identifier: GPL-2.0
/*
 * ring_read.c - read(): whole records of one ring after the other, for readers
 * that do without a mapping. In overwrite mode a read takes the oldest records
 * that are still there.
 */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "ring/ring.h"

/*
 * Bytes of whole records from @from on, at most @room. A reader that stored a
 * wrong tail may make us read a length from the middle of a record: the bound
 * by @head keeps that inside the ring.
 */
static size_t gw_ring_whole(struct gw_ring *ring, u64 from, u64 head, size_t room)
{
	size_t bytes = 0;

	while (from + bytes < head) {
		u32 len = *(u32 *)(ring->data + ((from + bytes) & ring->mask));

		if (len == 0 || len > room - bytes || len > head - from - bytes)
			break;
		bytes += len;
	}
	return bytes;
}

static ssize_t gw_ring_read_newest(struct gw_ring *ring, char __user *buf, size_t room,
				   bool *too_small)
{
	u64 head = smp_load_acquire(&ring->prod->head); /* pairs with commit */
	u64 tail = READ_ONCE(ring->cons->tail);
	size_t bytes;

	if (head - tail > ring->mask + 1)
		tail = head; /* the reader spoilt its own position: start afresh */
	bytes = gw_ring_whole(ring, tail, head, room);
	if (bytes == 0 && tail != head)
		*too_small = true;
	if (bytes && copy_to_user(buf, ring->data + (tail & ring->mask), bytes))
		return -EFAULT;
	smp_store_release(&ring->cons->tail, tail + bytes); /* pairs with reserve */
	return bytes;
}

/*
 * The producer may replace what is being copied. One record at a time, through
 * a copy that counts only if `oldest` has not passed it meanwhile.
 */
static ssize_t gw_ring_read_oldest(struct gw_ring *ring, char __user *buf, size_t room,
				   bool *too_small)
{
	u64 head = smp_load_acquire(&ring->prod->head); /* pairs with commit */
	size_t bytes = 0;
	u64 at;

	for (;;) {
		u32 len;

		at = max(READ_ONCE(ring->prod->oldest), ring->read_pos);
		if (at >= head)
			break;
		len = READ_ONCE(*(u32 *)(ring->data + (at & ring->mask)));
		smp_rmb(); /* pairs with smp_wmb() in gw_ring_overwrite() */
		if (READ_ONCE(ring->prod->oldest) > at)
			continue;
		if (len > room - bytes) {
			*too_small = bytes == 0;
			break;
		}
		if (copy_to_user(buf + bytes, ring->data + (at & ring->mask), len))
			return -EFAULT;
		smp_rmb(); /* the same pair, now for the record's bytes */
		if (READ_ONCE(ring->prod->oldest) > at)
			continue;
		bytes += len;
		WRITE_ONCE(ring->read_pos, at + len);
	}
	return bytes;
}

static ssize_t gw_ring_read_some(struct gw_ring_set *set, char __user *buf, size_t room)
{
	bool too_small = false;
	size_t done = 0;
	unsigned int i;

	for (i = 0; i < set->nr_cpus; i++) {
		struct gw_ring *ring = &set->rings[(set->next_cpu + i) % set->nr_cpus];
		ssize_t got;

		if (ring->overwrite)
			got = gw_ring_read_oldest(ring, buf + done, room - done, &too_small);
		else
			got = gw_ring_read_newest(ring, buf + done, room - done, &too_small);
		if (got < 0)
			return done ? done : got;
		done += got;
	}
	set->next_cpu = (set->next_cpu + 1) % set->nr_cpus;
	if (!done && too_small)
		return -EINVAL;
	return done;
}

/* -EINVAL: @bytes is less than the next record, at most GPUWATCH_REC_MAX. */
ssize_t gw_ring_read(struct gw_ring_set *set, char __user *buf, size_t bytes, bool nonblock)
{
	ssize_t got;

	bytes = min_t(size_t, bytes, MAX_RW_COUNT);
	if (mutex_lock_interruptible(&set->read_lock))
		return -ERESTARTSYS;
	for (;;) {
		if (nonblock || gw_ring_readable(set)) {
			got = gw_ring_read_some(set, buf, bytes);
			if (got != 0)
				break;
		}
		got = -EAGAIN;
		if (nonblock)
			break;
		got = wait_event_interruptible(set->wait, gw_ring_readable(set));
		if (got)
			break;
	}
	mutex_unlock(&set->read_lock);
	return got;
}
