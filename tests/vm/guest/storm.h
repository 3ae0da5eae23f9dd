/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storm.h - the bytes gw-storm puts into its arguments, so that whoever reads
 * the records can tell process, thread and order, and what every byte has to
 * be. Shared by the storm and by what checks it; it holds no state.
 */
#ifndef GW_STORM_H
#define GW_STORM_H

#include <stdint.h>
#include <string.h>

#define STORM_MARK	0x54535747U	/* "GWST" */
#define STORM_ARG_MIN	32U

/* Start of every argument; random bytes follow. */
struct storm_arg {
	uint32_t mark;
	uint32_t proc;
	uint32_t thread;
	uint32_t bytes;	/* of the whole argument */
	uint64_t seq;	/* per thread, from 0, without gaps */
	uint64_t seed;
};

/* Fills `bytes` (at least STORM_ARG_MIN) for one call. */
static inline void storm_fill(uint8_t *out, uint32_t bytes, uint64_t seed,
			      uint32_t proc, uint32_t thread, uint64_t seq)
{
	struct storm_arg arg = { STORM_MARK, proc, thread, bytes, seq, seed };
	uint64_t x = (seed ^ ((uint64_t)proc << 40) ^ ((uint64_t)thread << 20) ^ seq) *
		     0x9e3779b97f4a7c15ULL + 1;
	uint32_t i;

	memcpy(out, &arg, sizeof(arg));
	for (i = sizeof(arg); i < bytes; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		out[i] = (uint8_t)(x >> 32);
	}
}

#endif /* GW_STORM_H */
