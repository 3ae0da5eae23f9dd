// SPDX-License-Identifier: GPL-2.0
/*
 * ring.c - allocation, reserve, commit. Must not sleep or allocate after the
 * set was made.
 *
 * Barriers: commit stores `head` with release, the reader loads it with
 * acquire. The reader stores `tail` with release after it has read the data,
 * reserve loads it with acquire before it writes over them. In overwrite mode
 * `oldest` is stored before the bytes behind it are replaced (smp_wmb), the
 * reader loads it again after it has copied them (smp_rmb).
 */
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "ring/ring.h"

static void gw_ring_exit(struct gw_ring *ring, unsigned int data_pages)
{
	unsigned int i;

	if (ring->prod)
		vunmap(ring->prod);
	if (ring->pages)
		for (i = 0; i < 1 + data_pages; i++)
			if (ring->pages[i])
				__free_page(ring->pages[i]);
	kvfree(ring->pages);
	if (ring->cons_page)
		__free_page(ring->cons_page);
}

/* What a half-made ring holds is freed by gw_ring_exit(). */
static int gw_ring_init(struct gw_ring *ring, int node, unsigned int data_pages)
{
	const gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;
	unsigned int i;

	ring->cons_page = alloc_pages_node(node, gfp, 0);
	if (!ring->cons_page)
		return -ENOMEM;
	ring->cons = page_address(ring->cons_page);

	ring->pages = kvcalloc(1 + 2 * data_pages, sizeof(*ring->pages), GFP_KERNEL_ACCOUNT);
	if (!ring->pages)
		return -ENOMEM;
	for (i = 0; i < 1 + data_pages; i++) {
		ring->pages[i] = alloc_pages_node(node, gfp, 0);
		if (!ring->pages[i])
			return -ENOMEM;
		if (i > 0)
			ring->pages[data_pages + i] = ring->pages[i];
		cond_resched();
	}

	ring->prod = vmap(ring->pages, 1 + 2 * data_pages, VM_MAP, PAGE_KERNEL);
	if (!ring->prod)
		return -ENOMEM;
	ring->data = (u8 *)ring->prod + PAGE_SIZE;
	ring->mask = (u64)data_pages * PAGE_SIZE - 1;
	return 0;
}

struct gw_ring_set *gw_ring_set_alloc(const struct gpuwatch_setup *setup)
{
	struct gw_ring_set *set;
	unsigned int cpu;
	int err;

	set = kvzalloc(struct_size(set, rings, nr_cpu_ids), GFP_KERNEL_ACCOUNT);
	if (!set)
		return ERR_PTR(-ENOMEM);
	set->nr_cpus = nr_cpu_ids;
	set->data_pages = setup->ring_bytes >> PAGE_SHIFT;
	init_waitqueue_head(&set->wait);
	mutex_init(&set->read_lock);

	set->meta = (struct gpuwatch_meta *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (!set->meta) {
		err = -ENOMEM;
		goto err_free_set;
	}
	for (cpu = 0; cpu < set->nr_cpus; cpu++) {
		struct gw_ring *ring = &set->rings[cpu];

		err = gw_ring_init(ring, cpu_possible(cpu) ? cpu_to_node(cpu) : NUMA_NO_NODE,
				   set->data_pages);
		if (err)
			goto err_free_set;
		ring->watermark = max(setup->watermark_bytes, 1U);
		ring->wake_at = ring->watermark;
		ring->overwrite = setup->mode == GPUWATCH_MODE_OVERWRITE;
		ring->limit = ring->overwrite ? 0 : ring->mask + 1;
	}

	*set->meta = (struct gpuwatch_meta) {
		.struct_len = sizeof(*set->meta),
		.abi_major = GPUWATCH_ABI_MAJOR,
		.abi_minor = GPUWATCH_ABI_MINOR,
		.schema = GPUWATCH_SCHEMA,
		.nr_cpus = set->nr_cpus,
		.mode = setup->mode,
		.page_bytes = PAGE_SIZE,
		.ring_bytes = setup->ring_bytes,
		.cpu_stride = (2 + 2 * (u64)set->data_pages) * PAGE_SIZE,
	};
	return set;

err_free_set:
	gw_ring_set_free(set);
	return ERR_PTR(err);
}

void gw_ring_set_free(struct gw_ring_set *set)
{
	unsigned int cpu;

	for (cpu = 0; cpu < set->nr_cpus; cpu++)
		gw_ring_exit(&set->rings[cpu], set->data_pages);
	free_page((unsigned long)set->meta);
	kvfree(set);
}

static void gw_ring_lose(struct gw_ring *ring, enum gpuwatch_loss reason)
{
	ring->prod->next_seq++;
	ring->prod->lost[reason]++;
}

/* Gives up whole records, oldest first, until @len bytes fit. */
static void gw_ring_overwrite(struct gw_ring *ring, u32 len)
{
	struct gpuwatch_ring_producer *prod = ring->prod;
	u64 oldest = prod->oldest;

	if (prod->head + len - oldest <= ring->mask + 1)
		return;
	do {
		/* The first word of what we put in is its length. */
		oldest += *(u32 *)(ring->data + (oldest & ring->mask));
		prod->lost[GPUWATCH_LOSS_OVERWRITTEN]++;
	} while (prod->head + len - oldest > ring->mask + 1);
	WRITE_ONCE(prod->oldest, oldest);
	smp_wmb(); /* pairs with smp_rmb() of readers: void before replaced */
}

bool gw_ring_make_room(struct gw_ring *ring, u32 len)
{
	if (len > ring->mask + 1) {
		gw_ring_lose(ring, GPUWATCH_LOSS_TOO_BIG);
		return false;
	}
	if (!ring->overwrite) {
		gw_ring_lose(ring, GPUWATCH_LOSS_RING_FULL);
		return false;
	}
	gw_ring_overwrite(ring, len);
	return true;
}

bool gw_ring_wanted_wake(struct gw_ring *ring, u64 head)
{
	u64 tail = READ_ONCE(ring->cons->tail);

	/* The reader came by on its own: count from where it is. */
	if (tail <= head && head - tail < ring->watermark) {
		ring->wake_at = tail + ring->watermark;
		return false;
	}
	ring->wake_at = head + ring->watermark;
	ring->wakeups++;
	return true;
}

void gw_ring_wake(struct gw_ring_set *set)
{
	/* The full barrier in wq_has_sleeper() orders head before the check. */
	if (wq_has_sleeper(&set->wait))
		wake_up_interruptible_poll(&set->wait, EPOLLIN | EPOLLRDNORM);
}

/* Bytes a reader has not taken; a wrong tail counts as everything. */
static u64 gw_ring_unread(struct gw_ring *ring)
{
	u64 head = smp_load_acquire(&ring->prod->head); /* pairs with commit */
	u64 used = head - READ_ONCE(ring->cons->tail);

	if (ring->overwrite)
		return head - max(READ_ONCE(ring->prod->oldest), READ_ONCE(ring->read_pos));
	return min(used, ring->mask + 1);
}

bool gw_ring_readable(struct gw_ring_set *set)
{
	unsigned int cpu;

	for (cpu = 0; cpu < set->nr_cpus; cpu++)
		if (gw_ring_unread(&set->rings[cpu]) >= set->rings[cpu].watermark)
			return true;
	return false;
}

void gw_ring_stats(struct gw_ring_set *set, struct gpuwatch_stats *stats)
{
	unsigned int cpu, i;

	for (cpu = 0; cpu < set->nr_cpus; cpu++) {
		const struct gw_ring *ring = &set->rings[cpu];

		stats->records += READ_ONCE(ring->prod->records);
		stats->seq += READ_ONCE(ring->prod->next_seq);
		stats->bytes += READ_ONCE(ring->prod->head);
		stats->wakeups += READ_ONCE(ring->wakeups);
		for (i = 0; i < GPUWATCH_LOSS_MAX; i++)
			stats->lost[i] += READ_ONCE(ring->prod->lost[i]);
	}
}
