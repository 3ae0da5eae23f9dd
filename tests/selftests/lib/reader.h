/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.h - a minimal reader of /dev/gpuwatch, written after the header's text
 * alone, as a second opinion to the project's own: mapping, merge by time,
 * everything kept in memory. It checks nothing.
 */
#ifndef GW_SELFTESTS_READER_H
#define GW_SELFTESTS_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/gpuwatch.h>

/* Records one after the other, as they were merged. */
struct gw_stream {
	uint8_t *bytes;
	size_t used, room;
	size_t *at;		/* offset of each record */
	size_t nr, at_room;
};

struct gw_map {
	struct gpuwatch_ring_consumer *cons;
	const struct gpuwatch_ring_producer *prod;
	const uint8_t *data;
	uint64_t pos, head;
};

struct gw_reader {
	int fd;
	const struct gpuwatch_meta *meta;
	struct gw_map *rings;
	struct gpuwatch_meta info;	/* copy of meta */
};

struct gw_options {
	uint32_t mode;
	uint64_t ring_bytes;		/* 0: 4 MiB */
	uint32_t watermark;		/* 0: a quarter of the ring */
	const struct gpuwatch_filter *filter;
	bool disabled;			/* don't enable it yet */
	bool hold_images;		/* GPUWATCH_SETUP_HOLD_IMAGES */
};

/* All return 0 or a negative errno. */
int gw_open(void);			/* a descriptor */
int gw_setup(int fd, const struct gw_options *o);
int gw_reader_map(struct gw_reader *r, int fd);
int gw_reader_start(struct gw_reader *r, const struct gw_options *o);
void gw_reader_stop(struct gw_reader *r);

/* Takes what is there; false when some record had to wait for the next time. */
bool gw_reader_drain(struct gw_reader *r, struct gw_stream *to);
/* Takes all that was committed before the call. */
void gw_reader_finish(struct gw_reader *r, struct gw_stream *to);
/* Overwrite mode: what ring @cpu holds now, without the records replaced meanwhile. */
void gw_reader_snapshot(struct gw_reader *r, unsigned int cpu, struct gw_stream *to);

void gw_stream_add(struct gw_stream *to, const void *records, size_t bytes);
/* Has memory for so many bytes ready, so that taking records costs no page faults. */
void gw_stream_reserve(struct gw_stream *s, size_t bytes);
void gw_stream_clear(struct gw_stream *s);
void gw_stream_free(struct gw_stream *s);

static inline const struct gpuwatch_rec *gw_rec(const struct gw_stream *s, size_t i)
{
	return (const struct gpuwatch_rec *)(s->bytes + s->at[i]);
}

static inline const void *gw_payload(const struct gpuwatch_rec *rec)
{
	return rec + 1;
}

/* The capture @what of an ioctl record, or NULL. Its bytes follow it. */
const struct gpuwatch_capture *gw_capture(const struct gpuwatch_rec *rec, unsigned int what);

struct gpuwatch_stats gw_stats(int fd);
struct gpuwatch_info gw_info(int fd);
uint64_t gw_now_ns(void);

#endif
