// SPDX-License-Identifier: Apache-2.0
/* image.c - see image.h. Trouble with what is not under test ends the program. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image.h"

static void give_up(const char *what, const char *about)
{
	printf("# image: %s %s: %s\n", what, about, strerror(errno));
	fflush(stdout);
	abort();
}

static long long find_in(const uint8_t *elf, const Elf64_Shdr *table, const Elf64_Shdr *strings,
			 const char *symbol)
{
	const Elf64_Sym *sym = (const void *)(elf + table->sh_offset);
	size_t i, n = table->sh_size / sizeof(*sym);

	for (i = 0; i < n; i++)
		if (sym[i].st_shndx && ELF64_ST_TYPE(sym[i].st_info) == STT_FUNC &&
		    !strcmp((const char *)elf + strings->sh_offset + sym[i].st_name, symbol))
			return sym[i].st_value;
	return -1;
}

long long image_symbol(const char *path, const char *symbol)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	long long address = -1, offset = -1;
	const Elf64_Ehdr *head;
	const Elf64_Shdr *sections;
	const Elf64_Phdr *segments;
	const uint8_t *elf;
	struct stat st;
	unsigned int i;

	if (fd < 0 || fstat(fd, &st))
		give_up("cannot open", path);
	elf = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (elf == MAP_FAILED)
		give_up("cannot map", path);
	head = (const void *)elf;
	sections = (const void *)(elf + head->e_shoff);
	segments = (const void *)(elf + head->e_phoff);
	for (i = 0; i < head->e_shnum && address < 0; i++)
		if (sections[i].sh_type == SHT_DYNSYM || sections[i].sh_type == SHT_SYMTAB)
			address = find_in(elf, &sections[i], &sections[sections[i].sh_link], symbol);
	for (i = 0; i < head->e_phnum && address >= 0; i++)
		if (segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_X &&
		    (unsigned long long)address - segments[i].p_vaddr < segments[i].p_filesz)
			offset = address - segments[i].p_vaddr + segments[i].p_offset;
	munmap((void *)elf, st.st_size);
	return offset;
}

struct gpuwatch_probe image_probe_of(int file, long long offset, const char *symbol,
				     unsigned int kind, unsigned int argument)
{
	struct gpuwatch_probe probe = { .offset = offset, .fd = file, .kind = kind, .argument = argument };

	strncpy(probe.symbol, symbol, sizeof(probe.symbol) - 1);
	return probe;
}

int image_add(int fd, struct gpuwatch_probe *probe)
{
	return ioctl(fd, GPUWATCH_IOC_ADD_PROBE, probe) ? -errno : 0;
}

int image_remove(int fd, uint32_t id)
{
	struct gpuwatch_probe_ref ref = { .id = id };

	return ioctl(fd, GPUWATCH_IOC_REMOVE_PROBE, &ref) ? -errno : 0;
}

unsigned int image_add_all(int fd, const char *path)
{
	static const struct {
		const char *symbol;
		unsigned int kind, argument, size_argument;
	} loaders[] = {
		{ "cuModuleLoad", GPUWATCH_PROBE_PATH, 1, 0 },
		{ "cuModuleLoadData", GPUWATCH_PROBE_IMAGE, 1, 0 },
		{ "cuModuleLoadDataEx", GPUWATCH_PROBE_IMAGE, 1, 0 },
		{ "cuModuleLoadFatBinary", GPUWATCH_PROBE_IMAGE, 1, 0 },
		{ "cuLibraryLoadData", GPUWATCH_PROBE_IMAGE, 1, 0 },
		{ "cuLibraryLoadFromFile", GPUWATCH_PROBE_PATH, 1, 0 },
		{ "cuLinkAddData_v2", GPUWATCH_PROBE_SIZED, 2, 3 },
		{ "cuLinkAddFile_v2", GPUWATCH_PROBE_PATH, 2, 0 },
		/* Last: programs that wait for probes look at this one. */
		{ "cuLinkComplete", GPUWATCH_PROBE_CALL, 0, 0 },
	};
	int file = open(path, O_RDONLY | O_CLOEXEC), err;
	unsigned int i;

	if (file < 0)
		give_up("cannot open", path);
	for (i = 0; i < sizeof(loaders) / sizeof(loaders[0]); i++) {
		struct gpuwatch_probe probe = image_probe_of(file, image_symbol(path, loaders[i].symbol),
							     loaders[i].symbol, loaders[i].kind,
							     loaders[i].argument);

		probe.size_argument = loaders[i].size_argument;
		err = image_add(fd, &probe);
		if (err) {
			errno = -err;
			give_up("cannot probe", loaders[i].symbol);
		}
	}
	close(file);
	return i;
}

uint8_t *image_get(int fd, uint64_t id, bool drop, size_t *bytes, int *err)
{
	struct gpuwatch_image image = { .id = id, .flags = drop ? GPUWATCH_IMAGE_DROP : 0 };
	size_t done = 0;
	uint8_t *out;
	ssize_t n;

	*bytes = 0;
	*err = 0;
	if (ioctl(fd, GPUWATCH_IOC_GET_IMAGE, &image)) {
		*err = -errno;
		return NULL;
	}
	out = malloc(image.bytes + 1);
	if (!out)
		give_up("malloc", "");
	while ((n = read(image.fd, out + done, image.bytes + 1 - done)) > 0)
		done += n;
	close(image.fd);
	if (n < 0 || done != image.bytes)
		give_up("short read of", "an image");
	*bytes = done;
	return out;
}

int image_drop(int fd, uint64_t id)
{
	struct gpuwatch_image image = { .id = id };

	return ioctl(fd, GPUWATCH_IOC_DROP_IMAGE, &image) ? -errno : 0;
}

struct gpuwatch_image_status image_status(int fd)
{
	struct gpuwatch_image_status status;

	if (ioctl(fd, GPUWATCH_IOC_GET_IMAGE_STATUS, &status))
		give_up("ask for", "the status of images");
	return status;
}

bool image_idle(int fd)
{
	struct gpuwatch_image_status s = { 0 };
	unsigned int tries;

	for (tries = 0; tries < 2000; tries++) {
		s = image_status(fd);
		if (!s.pending && !s.used_bytes && !s.nr_stored)
			return true;
		usleep(10000);
	}
	printf("# image: %u pending, %llu bytes in use, %u stored\n", s.pending,
	       (unsigned long long)s.used_bytes, s.nr_stored);
	return false;
}

void image_param(const char *name, unsigned long long value)
{
	char path[128], text[32];
	int err;

	snprintf(path, sizeof(path), "/sys/module/gpuwatch/parameters/%s", name);
	snprintf(text, sizeof(text), "%llu", value);
	err = lab_write(path, text);
	if (err) {
		errno = -err;
		give_up("cannot set", name);
	}
}

void image_params_default(void)
{
	image_param("image_total_bytes", 256 << 20);
	image_param("image_max_bytes", 128 << 20);
	image_param("image_age_ms", 60000);
	image_param("image_deadline_ms", 2000);
}
