/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.h - a reader of /dev/gpuwatch by mmap, as small as the contract allows.
 * It never runs while something else is measured.
 */
#ifndef GW_BENCH_READER_H
#define GW_BENCH_READER_H

#include <linux/gpuwatch.h>
#include <stdint.h>

struct reader {
	int fd;
	const struct gpuwatch_meta *meta;
	struct gpuwatch_ring_consumer *consumer;
	const struct gpuwatch_ring_producer *producer;
	const uint8_t *data;
	uint64_t records;	/* of type IOCTL, taken so far */
	uint32_t last_bytes;	/* of the last record of that type */
};

/* Filter may be NULL. Delivery starts. */
void reader_open(struct reader *reader, const struct gpuwatch_filter *filter);
void reader_close(struct reader *reader);

/* Takes all there is. Returns the number of records; a lost one ends the program. */
uint64_t reader_drain(struct reader *reader);
void reader_drain_between(void *reader);

/* Waits for records and takes them, for ever. */
__attribute__((noreturn)) void reader_follow(struct reader *reader);

struct gpuwatch_stats reader_stats(const struct reader *reader);

#endif
