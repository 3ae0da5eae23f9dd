// SPDX-License-Identifier: Apache-2.0
// The functions by which GPU code enters libcuda. A program reaches them as a
// symbol it is linked with, by dlsym(), or by cuGetProcAddress(): each way is
// led through a wrapper of the same signature that keeps the image's bytes and
// then calls what the program would have called. Where the next function is
// not known for certain, the program gets it unwrapped.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "raw.h"
#include "recorder.h"

// Several addresses may answer to one name: two libcudas, or a table of its own
// behind cuGetProcAddress(). Each gets a wrapper that knows its own next.
enum { kSlots = 4, kNotFound = 3 /* CUDA_ERROR_NOT_INITIALIZED */, kProcV2 = 12000 };

enum loader {
  kModuleLoad,
  kModuleLoadData,
  kModuleLoadDataEx,
  kModuleLoadFatBinary,
  kLibraryLoadData,
  kLibraryLoadFromFile,
  kLinkAddData,
  kLinkAddDataV2,
  kLinkAddFile,
  kLinkAddFileV2,
  kLinkComplete,
  kGetProcAddress,
  kGetProcAddressV2,
  kLoaders,
};

static const char* const names[kLoaders] = {
    "cuModuleLoad",          "cuModuleLoadData", "cuModuleLoadDataEx",  "cuModuleLoadFatBinary", "cuLibraryLoadData",
    "cuLibraryLoadFromFile", "cuLinkAddData",    "cuLinkAddData_v2",    "cuLinkAddFile",         "cuLinkAddFile_v2",
    "cuLinkComplete",        "cuGetProcAddress", "cuGetProcAddress_v2",
};

typedef void (*function)(void);
static function next[kLoaders][kSlots];
static function wrappers[kLoaders][kSlots];

// A loader may call another one inside libcuda: the outermost is recorded.
static __thread int depth __attribute__((tls_model("initial-exec")));

static function as_function(void* symbol) {
  function f;
  memcpy(&f, &symbol, sizeof f);
  return f;
}

static void* as_symbol(function f) {
  void* symbol;
  memcpy(&symbol, &f, sizeof symbol);
  return symbol;
}

static bool is_ours(function f) {
  for (int i = 0; i < kLoaders; i++)
    for (int k = 0; k < kSlots; k++)
      if (wrappers[i][k] == f) return true;
  return false;
}

#if defined(__x86_64__)
// dlsym() as a name leads to our own, see the end of this file.
void* (*gw_next_dlsym)(void*, const char*);
void gw_dlsym_resolve(void);
static void* real_dlsym(void* handle, const char* name) {
  if (!gw_next_dlsym) gw_dlsym_resolve();
  return gw_next_dlsym ? gw_next_dlsym(handle, name) : NULL;
}
#else
#define real_dlsym dlsym
#endif

// The definition that a program linked with libcuda would reach if we were not
// here: behind us in the global scope, else in a libcuda loaded out of sight.
static function find_default(int loader) {
  function f = as_function(real_dlsym(RTLD_NEXT, names[loader]));
  if (f && !is_ours(f)) return f;
  void* libcuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!libcuda) return NULL;
  f = as_function(real_dlsym(libcuda, names[loader]));
  dlclose(libcuda);
  return f && !is_ours(f) ? f : NULL;
}

static function next_of(int loader, int slot) {
  function f = __atomic_load_n(&next[loader][slot], __ATOMIC_ACQUIRE);
  if (f || slot != 0) return f;
  int saved = errno;
  f = find_default(loader);
  errno = saved;
  if (f) __atomic_store_n(&next[loader][0], f, __ATOMIC_RELEASE);
  return f;
}

// The wrapper that calls `real`; `real` itself where no slot is left.
static function wrap(int loader, function real) {
  if (!gw_active || !real || is_ours(real)) return real;
  if (next_of(loader, 0) == real) return wrappers[loader][0];
  for (int k = 1; k < kSlots; k++) {
    function seen = NULL;
    if (__atomic_compare_exchange_n(&next[loader][k], &seen, real, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
        seen == real)
      return wrappers[loader][k];
  }
  return real;
}

static int loader_of(const char* name) {
  for (int i = 0; i < kLoaders; i++)
    if (strcmp(names[i], name) == 0) return i;
  return -1;
}

// What cuGetProcAddress() gave for a name is the newest version that the asked
// CUDA version knows; only for itself does that change the signature.
static void wrap_answer(const char* symbol, void** answer, int version) {
  int loader = symbol && answer && *answer ? loader_of(symbol) : -1;
  if (loader < 0) return;
  if (loader == kGetProcAddress && version >= kProcV2) loader = kGetProcAddressV2;
  *answer = as_symbol(wrap(loader, as_function(*answer)));
}

static void note_data(int loader, const void* data, uint64_t size) {
  int saved = errno;
  if (depth == 1) gw_image_data(names[loader], data, size);
  errno = saved;
}

static void note_path(int loader, const char* path) {
  int saved = errno;
  if (depth == 1) gw_image_path(names[loader], path);
  errno = saved;
}

// Wrapper k of a loader: `before` and `after` see the arguments by name.
#define ONE_WRAPPER(k, loader, name, parameters, arguments, before, after) \
  static int name##_##k parameters {                                       \
    int(*real) parameters;                                                 \
    function f = next_of(loader, k);                                       \
    if (!f) return kNotFound;                                              \
    memcpy(&real, &f, sizeof real);                                        \
    depth++;                                                               \
    before;                                                                \
    int ret = real arguments;                                              \
    after;                                                                 \
    depth--;                                                               \
    return ret;                                                            \
  }

// The exported name is slot 0, whose next is the default definition.
#define WRAPPERS(loader, name, parameters, arguments, before, after) \
  ONE_WRAPPER(0, loader, name, parameters, arguments, before, after) \
  ONE_WRAPPER(1, loader, name, parameters, arguments, before, after) \
  ONE_WRAPPER(2, loader, name, parameters, arguments, before, after) \
  ONE_WRAPPER(3, loader, name, parameters, arguments, before, after) \
  int name parameters;                                               \
  GW_EXPORT int name parameters {                                    \
    return name##_0 arguments;                                       \
  }

#define LIST(...) (__VA_ARGS__)

WRAPPERS(kModuleLoad, cuModuleLoad, LIST(void** module, const char* path), LIST(module, path),
         note_path(kModuleLoad, path), )
WRAPPERS(kModuleLoadData, cuModuleLoadData, LIST(void** module, const void* image), LIST(module, image),
         note_data(kModuleLoadData, image, 0), )
WRAPPERS(kModuleLoadDataEx, cuModuleLoadDataEx,
         LIST(void** module, const void* image, unsigned n, int* options, void** values),
         LIST(module, image, n, options, values), note_data(kModuleLoadDataEx, image, 0), )
WRAPPERS(kModuleLoadFatBinary, cuModuleLoadFatBinary, LIST(void** module, const void* image), LIST(module, image),
         note_data(kModuleLoadFatBinary, image, 0), )
WRAPPERS(kLibraryLoadData, cuLibraryLoadData,
         LIST(void** library, const void* image, int* jit, void** jit_values, unsigned n_jit, int* options,
              void** values, unsigned n),
         LIST(library, image, jit, jit_values, n_jit, options, values, n), note_data(kLibraryLoadData, image, 0), )
WRAPPERS(kLibraryLoadFromFile, cuLibraryLoadFromFile,
         LIST(void** library, const char* path, int* jit, void** jit_values, unsigned n_jit, int* options,
              void** values, unsigned n),
         LIST(library, path, jit, jit_values, n_jit, options, values, n), note_path(kLibraryLoadFromFile, path), )
WRAPPERS(kLinkAddData, cuLinkAddData,
         LIST(void* state, int type, void* data, size_t size, const char* name, unsigned n, int* options,
              void** values),
         LIST(state, type, data, size, name, n, options, values), note_data(kLinkAddData, data, size), )
WRAPPERS(kLinkAddDataV2, cuLinkAddData_v2,
         LIST(void* state, int type, void* data, size_t size, const char* name, unsigned n, int* options,
              void** values),
         LIST(state, type, data, size, name, n, options, values), note_data(kLinkAddDataV2, data, size), )
WRAPPERS(kLinkAddFile, cuLinkAddFile,
         LIST(void* state, int type, const char* path, unsigned n, int* options, void** values),
         LIST(state, type, path, n, options, values), note_path(kLinkAddFile, path), )
WRAPPERS(kLinkAddFileV2, cuLinkAddFile_v2,
         LIST(void* state, int type, const char* path, unsigned n, int* options, void** values),
         LIST(state, type, path, n, options, values), note_path(kLinkAddFileV2, path), )
// What the linker made, after it made it.
WRAPPERS(kLinkComplete, cuLinkComplete, LIST(void* state, void** image, size_t* size), LIST(state, image, size), ,
         if (ret == 0 && image && size) note_data(kLinkComplete, *image, *size))
WRAPPERS(kGetProcAddress, cuGetProcAddress, LIST(const char* symbol, void** answer, int version, uint64_t flags),
         LIST(symbol, answer, version, flags), , if (ret == 0) wrap_answer(symbol, answer, version))
WRAPPERS(kGetProcAddressV2, cuGetProcAddress_v2,
         LIST(const char* symbol, void** answer, int version, uint64_t flags, int* status),
         LIST(symbol, answer, version, flags, status), , if (ret == 0) wrap_answer(symbol, answer, version))

#define ROW(loader, name) [loader] = {(function)name##_0, (function)name##_1, (function)name##_2, (function)name##_3}

static function wrappers[kLoaders][kSlots] = {
    ROW(kModuleLoad, cuModuleLoad),
    ROW(kModuleLoadData, cuModuleLoadData),
    ROW(kModuleLoadDataEx, cuModuleLoadDataEx),
    ROW(kModuleLoadFatBinary, cuModuleLoadFatBinary),
    ROW(kLibraryLoadData, cuLibraryLoadData),
    ROW(kLibraryLoadFromFile, cuLibraryLoadFromFile),
    ROW(kLinkAddData, cuLinkAddData),
    ROW(kLinkAddDataV2, cuLinkAddData_v2),
    ROW(kLinkAddFile, cuLinkAddFile),
    ROW(kLinkAddFileV2, cuLinkAddFile_v2),
    ROW(kLinkComplete, cuLinkComplete),
    ROW(kGetProcAddress, cuGetProcAddress),
    ROW(kGetProcAddressV2, cuGetProcAddress_v2),
};

#if defined(__x86_64__)
// dlsym() of dlsym_x86_64.S: jumps to the next definition with the caller's own
// return address, by which that finds what RTLD_NEXT means, unless the name is
// one of ours.
int gw_dlsym_wanted(const char* name);
void* gw_dlsym(void* handle, const char* name);

// dlvsym() is not wrapped, so it finds the real one.
void gw_dlsym_resolve(void) {
  static const char* const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5"};
  for (int i = 0; i < 2 && !gw_next_dlsym; i++) {
    void* symbol = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    memcpy(&gw_next_dlsym, &symbol, sizeof symbol);
  }
}

int gw_dlsym_wanted(const char* name) {
  return gw_active && loader_of(name) >= 0;
}

void* gw_dlsym(void* handle, const char* name) {
  int loader = loader_of(name);
  if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) {
    function f = next_of(loader, 0);
    return f ? as_symbol(wrap(loader, f)) : NULL;
  }
  function f = as_function(gw_next_dlsym(handle, name));
  // The handle of the whole program finds us first.
  if (f && is_ours(f)) f = next_of(loader, 0);
  return f ? as_symbol(wrap(loader, f)) : NULL;
}
#endif
