// SPDX-License-Identifier: Apache-2.0
// Stands in for libcuda.so.1: the loaders under their real names, which keep
// the last image they were given and return what a test asks for.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

// Which function was reached last, and with what.
EXPORT const char* standin_called;
EXPORT const void* standin_image;
EXPORT int standin_calls, standin_result;

static int got(const char* name, const void* image) {
  standin_called = name;
  standin_image = image;
  standin_calls++;
  return standin_result;
}

EXPORT int cuInit(unsigned flags) {
  return (int)flags;
}
EXPORT int cuModuleLoad(void** module, const char* path) {
  *module = NULL;
  return got("cuModuleLoad", path);
}
EXPORT int cuModuleLoadDataEx(void** module, const void* image, unsigned n, int* options, void** values) {
  *module = NULL;
  (void)n, (void)options, (void)values;
  return got("cuModuleLoadDataEx", image);
}
// Calls another loader by its exported name, as a library may.
EXPORT int cuModuleLoadData(void** module, const void* image) {
  int ret = cuModuleLoadDataEx(module, image, 0, NULL, NULL);
  standin_called = "cuModuleLoadData";
  return ret;
}
EXPORT int cuModuleLoadFatBinary(void** module, const void* image) {
  *module = NULL;
  return got("cuModuleLoadFatBinary", image);
}
EXPORT int cuLibraryLoadData(void** library, const void* image, int* jit, void** jit_values, unsigned n_jit,
                             int* options, void** values, unsigned n) {
  *library = NULL;
  (void)jit, (void)jit_values, (void)n_jit, (void)options, (void)values;
  return got("cuLibraryLoadData", image) + (int)n;  // the eighth argument lies on the stack
}
EXPORT int cuLibraryLoadFromFile(void** library, const char* path, int* jit, void** jit_values, unsigned n_jit,
                                 int* options, void** values, unsigned n) {
  *library = NULL;
  (void)jit, (void)jit_values, (void)n_jit, (void)options, (void)values, (void)n;
  return got("cuLibraryLoadFromFile", path);
}
EXPORT int cuLinkAddData_v2(void* state, int type, void* data, size_t size, const char* name, unsigned n, int* options,
                            void** values) {
  (void)state, (void)type, (void)size, (void)name, (void)n, (void)options, (void)values;
  return got("cuLinkAddData_v2", data);
}
EXPORT int cuLinkAddFile_v2(void* state, int type, const char* path, unsigned n, int* options, void** values) {
  (void)state, (void)type, (void)n, (void)options, (void)values;
  return got("cuLinkAddFile_v2", path);
}
EXPORT int cuLinkComplete(void* state, void** image, size_t* size) {
  static char linked[] = "the linker's output";
  (void)state;
  *image = linked;
  *size = sizeof linked;
  return got("cuLinkComplete", linked);
}

EXPORT int cuGetProcAddress_v2(const char* symbol, void** answer, int version, uint64_t flags, int* status);

// Hidden twins, as if the table held other addresses than the exported ones.
static int twin_load_data(void** module, const void* image) {
  *module = NULL;
  return got("twin", image);
}

static int find(const char* symbol, void** answer, int version) {
  union {
    int (*load)(void**, const void*);
    int (*library)(void**, const void*, int*, void**, unsigned, int*, void**, unsigned);
    int (*init)(unsigned);
    int (*address)(const char*, void**, int, uint64_t, int*);
    void* symbol;
  } f = {.symbol = NULL};
  if (strcmp(symbol, "cuModuleLoadData") == 0) f.load = twin_load_data;
  if (strcmp(symbol, "cuLibraryLoadData") == 0) f.library = cuLibraryLoadData;
  if (strcmp(symbol, "cuInit") == 0) f.init = cuInit;
  if (strcmp(symbol, "cuGetProcAddress") == 0 && version >= 12000) f.address = cuGetProcAddress_v2;
  *answer = f.symbol;
  return f.symbol ? 0 : 500;
}
EXPORT int cuGetProcAddress(const char* symbol, void** answer, int version, uint64_t flags) {
  (void)flags;
  return find(symbol, answer, version);
}
EXPORT int cuGetProcAddress_v2(const char* symbol, void** answer, int version, uint64_t flags, int* status) {
  (void)flags;
  if (status) *status = 0;
  return find(symbol, answer, version);
}
