/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loads.h - what gw-loads writes into its log, one struct for each load, so that
 * whoever reads the records knows what has to be in them; and the bytes of
 * images it makes itself. Shared by the program and by what checks it.
 */
#ifndef GW_LOADS_H
#define GW_LOADS_H

#include <stdint.h>
#include <string.h>

struct loads_entry {
	char comm[16];		/* of the thread: one log entry after the other */
	char symbol[32];
	char file[64];		/* whose bytes were handed over; "" for made ones, a path, or none */
	uint64_t made_bytes;	/* a container made by loads_make() */
	uint64_t seed;
	uint64_t address;	/* of the argument */
	uint32_t kind;		/* enum gpuwatch_image_kind it has to be */
	uint32_t parts;		/* how often the bytes are in it */
};

#define LOADS_HEAD 16

/* A fatbin container of @bytes (a multiple of 8, 16 at least) with arbitrary content. */
static inline void loads_make(uint8_t *out, uint64_t bytes, uint64_t seed)
{
	uint64_t head[2] = { 0x00100001ba55ed50ULL, bytes - LOADS_HEAD }, x = seed * 2 + 1, i;

	memcpy(out, head, sizeof(head));
	for (i = LOADS_HEAD; i < bytes; i += 8) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		memcpy(out + i, &x, 8);
	}
}

#endif
