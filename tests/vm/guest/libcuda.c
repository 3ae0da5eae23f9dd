// SPDX-License-Identifier: Apache-2.0
/*
 * libcuda.c - stands in for libcuda.so.1 where there is no GPU: the loaders
 * under their real names, all of one symbol version, some of them second
 * versions. They accept everything and do nothing but count.
 */
#include <stddef.h>

int gw_cuda_calls;

#define LOADER(name, ...) \
	__attribute__((visibility("default"), noinline)) int name(__VA_ARGS__); \
	__attribute__((visibility("default"), noinline)) int name(__VA_ARGS__) \
	{ return __atomic_add_fetch(&gw_cuda_calls, 1, __ATOMIC_RELAXED) < 0; }
#define U __attribute__((unused))

LOADER(cuInit, U unsigned int flags)
LOADER(cuModuleLoad, U void **module, U const char *path)
LOADER(cuModuleLoadData, U void **module, U const void *image)
LOADER(cuModuleLoadDataEx, U void **module, U const void *image, U unsigned int n, U int *options,
       U void **values)
LOADER(cuModuleLoadFatBinary, U void **module, U const void *image)
LOADER(cuLibraryLoadData, U void **library, U const void *code, U int *jit, U void **jit_values,
       U unsigned int n_jit, U int *options, U void **values, U unsigned int n)
LOADER(cuLibraryLoadFromFile, U void **library, U const char *path, U int *jit,
       U void **jit_values, U unsigned int n_jit, U int *options, U void **values, U unsigned int n)
LOADER(cuLinkAddData_v2, U void *state, U int type, U void *data, U size_t bytes,
       U const char *name, U unsigned int n, U int *options, U void **values)
LOADER(cuLinkAddFile_v2, U void *state, U int type, U const char *path, U unsigned int n,
       U int *options, U void **values)
LOADER(cuLinkComplete, U void *state, U void **cubin, U size_t *bytes)

/* The first versions are other names of the same code. */
int cuLinkAddData(void *, int, void *, size_t, const char *, unsigned int, int *, void **)
	__attribute__((alias("cuLinkAddData_v2"), visibility("default")));
int cuLinkAddFile(void *, int, const char *, unsigned int, int *, void **)
	__attribute__((alias("cuLinkAddFile_v2"), visibility("default")));
