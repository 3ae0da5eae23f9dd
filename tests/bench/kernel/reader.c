// SPDX-License-Identifier: Apache-2.0
// See reader.h. One CPU, hence one ring.

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "measure.h"
#include "reader.h"

enum { kRingBytes = 8 << 20, kWatermarkBytes = 256 << 10 };

static void *map(int fd, size_t bytes, int prot, uint64_t offset)
{
	void *p = mmap(0, bytes, prot, MAP_SHARED, fd, (off_t)offset);

	if (p == MAP_FAILED)
		bench_die("mmap of /dev/gpuwatch at %llu: %s", (unsigned long long)offset,
			  strerror(errno));
	return p;
}

void reader_open(struct reader *reader, const struct gpuwatch_filter *filter)
{
	struct gpuwatch_setup setup = {
		.abi_major = GPUWATCH_ABI_MAJOR,
		.watermark_bytes = kWatermarkBytes,
		.ring_bytes = kRingBytes,
	};
	uint64_t ring, page;

	memset(reader, 0, sizeof(*reader));
	reader->fd = open("/dev/gpuwatch", O_RDWR | O_CLOEXEC);
	if (reader->fd < 0 || ioctl(reader->fd, GPUWATCH_IOC_SETUP, &setup))
		bench_die("/dev/gpuwatch: %s", strerror(errno));
	if (filter && ioctl(reader->fd, GPUWATCH_IOC_SET_FILTER, filter))
		bench_die("filter: %s", strerror(errno));
	reader->meta = map(reader->fd, 4096, PROT_READ, 0);
	page = reader->meta->page_bytes;
	ring = GPUWATCH_MMAP_CPU(reader->meta, 0);
	reader->consumer = map(reader->fd, page, PROT_READ | PROT_WRITE, ring);
	reader->producer = map(reader->fd, page + 2 * kRingBytes, PROT_READ, ring + page);
	reader->data = (const uint8_t *)reader->producer + page;
	if (ioctl(reader->fd, GPUWATCH_IOC_ENABLE))
		bench_die("enable: %s", strerror(errno));
}

void reader_close(struct reader *reader)
{
	uint64_t page = reader->meta->page_bytes;

	munmap((void *)reader->producer, page + 2 * kRingBytes);
	munmap(reader->consumer, page);
	munmap((void *)reader->meta, page);
	close(reader->fd);
}

uint64_t reader_drain(struct reader *reader)
{
	uint64_t head = __atomic_load_n(&reader->producer->head, __ATOMIC_ACQUIRE);
	uint64_t tail = reader->consumer->tail, count = 0, lost;

	while (tail < head) {
		const struct gpuwatch_rec *rec = (const void *)(reader->data + (tail & (kRingBytes - 1)));

		if (rec->len < sizeof(*rec) || rec->len > head - tail)
			bench_die("a record of %u bytes", rec->len);
		if (rec->type == GPUWATCH_REC_IOCTL) {
			reader->records++;
			reader->last_bytes = rec->len;
		}
		tail += rec->len;
		count++;
	}
	__atomic_store_n(&reader->consumer->tail, tail, __ATOMIC_RELEASE);
	lost = reader->producer->lost[GPUWATCH_LOSS_RING_FULL];
	if (lost)
		bench_die("%llu records lost", (unsigned long long)lost);
	return count;
}

void reader_follow(struct reader *reader)
{
	struct pollfd wait = { .fd = reader->fd, .events = POLLIN };

	for (;;) {
		if (poll(&wait, 1, -1) < 0)
			bench_die("poll: %s", strerror(errno));
		reader_drain(reader);
	}
}

void reader_drain_between(void *reader)
{
	reader_drain(reader);
}

struct gpuwatch_stats reader_stats(const struct reader *reader)
{
	struct gpuwatch_stats stats;

	if (ioctl(reader->fd, GPUWATCH_IOC_GET_STATS, &stats))
		bench_die("stats: %s", strerror(errno));
	return stats;
}
