/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h - module images for the tests: where a function lies in a file, probes
 * set on it, stored bytes fetched. Written after the header's text alone, as a
 * second opinion to the project's own.
 */
#ifndef GW_SELFTESTS_IMAGE_H
#define GW_SELFTESTS_IMAGE_H

#include "lab.h"

/* Offset of function @symbol in the ELF file @path, or -1. */
long long image_symbol(const char *path, const char *symbol);

/* A probe as the tests want most of them. */
struct gpuwatch_probe image_probe_of(int file, long long offset, const char *symbol,
				     unsigned int kind, unsigned int argument);
/* 0 or a negative errno. */
int image_add(int fd, struct gpuwatch_probe *probe);
int image_remove(int fd, uint32_t id);
/* Probes all loaders of the stand-in library @path; how many. */
unsigned int image_add_all(int fd, const char *path);

/* Bytes stored under @id, read; NULL and *err when they can't be had. */
uint8_t *image_get(int fd, uint64_t id, bool drop, size_t *bytes, int *err);
int image_drop(int fd, uint64_t id);
struct gpuwatch_image_status image_status(int fd);
/* True when nothing is pending nor in use; waits for it. */
bool image_idle(int fd);
void image_param(const char *name, unsigned long long value);
/* What the module has when it is loaded. */
void image_params_default(void);

static inline const struct gpuwatch_rec_image *image_rec(const struct gpuwatch_rec *rec)
{
	return rec->type == GPUWATCH_REC_IMAGE ? (const void *)(rec + 1) : NULL;
}

#endif
