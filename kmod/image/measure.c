// SPDX-License-Identifier: GPL-2.0
/*
 * measure.c - where an image ends. Every number comes from a hostile program:
 * it bounds a checked copy and nothing else. Reads may fault pages in and
 * sleep; the caller is in its own context, as it is about to do the same.
 *
 * Layouts: a wrapper record points to a container; of version 2 it points to
 * an array of further ones too. A container says how long it is. An ELF file
 * ends with its tables or its last section, whichever is later. Text ends with
 * a NUL.
 */
#include <linux/elf.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "image/image.h"

#define GW_WRAPPER_MAGIC	0x466243b1
#define GW_WRAPPER_LINKED	2	/* version: a list of more containers */
#define GW_CONTAINER_MAGIC	0xba55ed50
#define GW_SCAN_BYTES		65536UL	/* between two looks at the clock */

/* Section types without bytes in the file, besides SHT_NOBITS: see binary tools. */
#define GW_SHT_CUDA_GLOBAL	0x70000007
#define GW_SHT_CUDA_SHARED	0x7000000a

struct gw_wrapper {
	__le32 magic;
	__le32 version;
	__le64 container;
	__le64 more;
};

struct gw_container {
	__le32 magic;
	__le16 version;
	__le16 header_bytes;
	__le64 body_bytes;
};

u16 gw_patience_over(const struct gw_patience *patience)
{
	cond_resched();
	if (fatal_signal_pending(current))
		return GW_PATIENCE_KILLED;
	return ktime_get_ns() >= patience->until_ns ? GPUWATCH_IMAGEF_DEADLINE : 0;
}

static bool gw_read(void *to, u64 address, size_t bytes)
{
	return !copy_from_user(to, u64_to_user_ptr(address), bytes);
}

/* Adds a part; what can't lie in user memory is cut to nothing. */
static u16 gw_part_add(struct gw_image *image, u64 address, u64 bytes)
{
	struct gw_image_part *part = &image->parts[image->nr_parts];
	u64 before = ALIGN(image->rec.bytes, 8);

	if (bytes > TASK_SIZE_MAX || address > TASK_SIZE_MAX - bytes) {
		if (!image->nr_parts)
			image->rec.bytes = bytes;
		return GPUWATCH_IMAGEF_MALFORMED;
	}
	part->address = address;
	part->bytes = bytes;
	image->rec.bytes = image->nr_parts ? before + bytes : bytes;
	image->nr_parts++;
	return 0;
}

static u16 gw_measure_container(struct gw_image *image, u64 address)
{
	struct gw_container head;
	u64 body;

	if (!gw_read(&head, address, sizeof(head)))
		return GPUWATCH_IMAGEF_FAULT;
	body = le64_to_cpu(head.body_bytes);
	if (le32_to_cpu(head.magic) != GW_CONTAINER_MAGIC ||
	    le16_to_cpu(head.header_bytes) < sizeof(head))
		return GPUWATCH_IMAGEF_MALFORMED;
	if (body > U64_MAX - le16_to_cpu(head.header_bytes)) {
		if (!image->nr_parts)
			image->rec.bytes = body;
		return GPUWATCH_IMAGEF_MALFORMED;
	}
	return gw_part_add(image, address, le16_to_cpu(head.header_bytes) + body);
}

static u16 gw_measure_wrapper(struct gw_image *image, const struct gw_wrapper *wrapper)
{
	u64 list = le64_to_cpu(wrapper->more);
	u16 flags;

	image->rec.flags |= GPUWATCH_IMAGEF_WRAPPED;
	image->rec.image_address = le64_to_cpu(wrapper->container);
	flags = gw_measure_container(image, image->rec.image_address);
	if (flags || le32_to_cpu(wrapper->version) != GW_WRAPPER_LINKED || !list)
		return flags;
	/* As long as there are containers: the list does not tell its length. */
	for (; image->nr_parts < GW_IMAGE_PARTS; list += sizeof(__le64)) {
		__le64 next;

		if (!gw_read(&next, list, sizeof(next)) || !next ||
		    gw_measure_container(image, le64_to_cpu(next)))
			break;
	}
	return 0;
}

static bool gw_section_has_bytes(u32 type)
{
	return type != SHT_NOBITS && type != SHT_NULL && type != GW_SHT_CUDA_GLOBAL &&
	       type != GW_SHT_CUDA_SHARED;
}

/* The end of the last section, as far as the table can be read. */
static u16 gw_measure_sections(u64 address, const struct elf64_hdr *head, u64 *end,
			       const struct gw_patience *patience)
{
	struct elf64_shdr sections[8], *section;
	u64 at = address + head->e_shoff;
	unsigned int i, n, left = head->e_shnum, done = 0;
	u16 flags;

	while (left) {
		n = min_t(unsigned int, left, ARRAY_SIZE(sections));
		if (!gw_read(sections, at, n * sizeof(*sections)))
			return 0;
		for (i = 0; i < n; i++) {
			section = &sections[i];
			if (gw_section_has_bytes(section->sh_type) &&
			    section->sh_size <= TASK_SIZE_MAX &&
			    section->sh_offset <= TASK_SIZE_MAX)
				*end = max(*end, section->sh_offset + section->sh_size);
		}
		left -= n;
		at += n * sizeof(*sections);
		done += n;
		if (done % 1024 < n) {
			flags = gw_patience_over(patience);
			if (flags)
				return flags;
		}
	}
	return 0;
}

static u16 gw_measure_elf(struct gw_image *image, u64 address, const struct gw_patience *patience)
{
	u64 end = sizeof(struct elf64_hdr), tables;
	struct elf64_hdr head;
	u16 flags = 0;

	if (!gw_read(&head, address, sizeof(head)))
		return GPUWATCH_IMAGEF_FAULT;
	if (head.e_shnum && head.e_shoff) {
		if (head.e_shentsize != sizeof(struct elf64_shdr) || head.e_shoff > TASK_SIZE_MAX)
			return GPUWATCH_IMAGEF_MALFORMED;
		tables = head.e_shoff + (u64)head.e_shnum * sizeof(struct elf64_shdr);
		end = max(end, tables);
		/* Too big already: what lies there is another's business. */
		if (end <= gw_blob_max())
			flags = gw_measure_sections(address, &head, &end, patience);
	}
	if (head.e_phnum && head.e_phoff) {
		if (head.e_phentsize != sizeof(struct elf64_phdr) || head.e_phoff > TASK_SIZE_MAX)
			return GPUWATCH_IMAGEF_MALFORMED;
		tables = head.e_phoff + (u64)head.e_phnum * sizeof(struct elf64_phdr);
		end = max(end, tables);
	}
	return flags | gw_part_add(image, address, end);
}

/*
 * Length up to the NUL, at most @max + 1 when there is none before. Where
 * memory ends first, an upper bound: the copy finds out where.
 */
static u16 gw_measure_text(u64 address, u64 max, u64 *bytes, const struct gw_patience *patience)
{
	u64 done = 0;

	while (done <= max) {
		/* A whole number of pages from there on: fewer odd ends. */
		u64 want = GW_SCAN_BYTES - ((address + done) & ~PAGE_MASK);
		long got = strnlen_user(u64_to_user_ptr(address + done), want);
		u16 flags;

		if (!got) {
			*bytes = min(done + want, max + 1);
			return GPUWATCH_IMAGEF_FAULT;
		}
		if (got <= want) {
			*bytes = done + got - 1;
			return 0;
		}
		done += want;
		flags = gw_patience_over(patience);
		if (flags) {
			*bytes = done;
			return flags;
		}
	}
	*bytes = max + 1;
	return 0;
}

/* Printable up to its end or for as long as we have it. */
static bool gw_is_text(const u8 *head, unsigned int bytes)
{
	unsigned int i;

	for (i = 0; i < bytes && head[i]; i++)
		if (head[i] < 0x20 ? !strchr("\t\n\v\f\r", head[i]) : head[i] > 0x7e)
			return false;
	return i > 0;
}

static u16 gw_kind_of(const u8 *head, unsigned int bytes)
{
	__le32 magic;

	if (bytes < sizeof(magic))
		return gw_is_text(head, bytes) ? GPUWATCH_IMAGE_TEXT : GPUWATCH_IMAGE_UNKNOWN;
	memcpy(&magic, head, sizeof(magic));
	if (le32_to_cpu(magic) == GW_CONTAINER_MAGIC || le32_to_cpu(magic) == GW_WRAPPER_MAGIC)
		return GPUWATCH_IMAGE_FATBIN;
	if (!memcmp(head, ELFMAG, SELFMAG) && bytes > EI_CLASS && head[EI_CLASS] == ELFCLASS64)
		return GPUWATCH_IMAGE_ELF;
	return gw_is_text(head, bytes) ? GPUWATCH_IMAGE_TEXT : GPUWATCH_IMAGE_UNKNOWN;
}

/* The first bytes of what is at @address, as many as there are. */
static void gw_read_head(struct gw_image *image, u64 address)
{
	image->rec.head_len = GPUWATCH_IMAGE_HEAD -
		copy_from_user(image->head, u64_to_user_ptr(address), GPUWATCH_IMAGE_HEAD);
}

static u16 gw_measure_path(struct gw_image *image, u64 address,
			   const struct gw_patience *patience)
{
	u64 bytes;
	u16 flags;

	image->rec.kind = GPUWATCH_IMAGE_PATH;
	flags = gw_measure_text(address, GPUWATCH_PATH_MAX - 1, &bytes, patience);
	if (bytes >= GPUWATCH_PATH_MAX && !flags)
		flags = GPUWATCH_IMAGEF_TOO_BIG;
	bytes = min_t(u64, bytes, GPUWATCH_PATH_MAX);
	image->rec.bytes = bytes;
	/* Another thread may have changed it: what is here now is what is told. */
	image->rec.head_len = bytes - copy_from_user(image->head, u64_to_user_ptr(address), bytes);
	image->rec.nr_parts = 1;
	if (image->rec.head_len < bytes)
		flags |= GPUWATCH_IMAGEF_FAULT;
	if (flags & GPUWATCH_IMAGEF_FAULT)
		image->rec.bytes = image->rec.head_len;
	return flags;
}

static u16 gw_measure_bytes(struct gw_image *image, u64 address, const struct gw_patience *patience)
{
	struct gw_wrapper wrapper;
	__le32 magic;
	u64 bytes;
	u16 flags;

	switch (image->rec.kind) {
	case GPUWATCH_IMAGE_FATBIN:
		memcpy(&magic, image->head, sizeof(magic));
		if (le32_to_cpu(magic) == GW_CONTAINER_MAGIC)
			return gw_measure_container(image, address);
		if (image->rec.head_len < sizeof(wrapper))
			return GPUWATCH_IMAGEF_FAULT;
		memcpy(&wrapper, image->head, sizeof(wrapper));
		flags = gw_measure_wrapper(image, &wrapper);
		if (image->nr_parts)
			gw_read_head(image, image->rec.image_address);
		return flags;
	case GPUWATCH_IMAGE_ELF:
		return gw_measure_elf(image, address, patience);
	case GPUWATCH_IMAGE_TEXT:
		flags = gw_measure_text(address, gw_blob_max(), &bytes, patience);
		return flags | gw_part_add(image, address, bytes);
	default:
		return image->rec.head_len ? GPUWATCH_IMAGEF_MALFORMED : GPUWATCH_IMAGEF_FAULT;
	}
}

u16 gw_image_measure(struct gw_image *image, u32 probe_kind, u64 address, u64 size,
		     const struct gw_patience *patience)
{
	u16 flags;

	image->rec.address = address;
	image->rec.image_address = address;
	if (probe_kind == GPUWATCH_PROBE_CALL) {
		image->rec.kind = GPUWATCH_IMAGE_CALL;
		return 0;
	}
	if (probe_kind == GPUWATCH_PROBE_PATH)
		return gw_measure_path(image, address, patience);
	gw_read_head(image, address);
	image->rec.kind = gw_kind_of(image->head, image->rec.head_len);
	if (probe_kind == GPUWATCH_PROBE_SIZED) {
		image->rec.flags |= GPUWATCH_IMAGEF_SIZED;
		image->rec.head_len = min_t(u64, image->rec.head_len, size);
		if (size)
			image->rec.kind = gw_kind_of(image->head, image->rec.head_len);
		flags = size ? gw_part_add(image, address, size) : 0;
	} else {
		flags = gw_measure_bytes(image, address, patience);
	}
	image->rec.nr_parts = image->nr_parts;
	return flags;
}
