// SPDX-License-Identifier: Apache-2.0
// Loads module images in the ways that programs do, one scenario per name. It
// exits 0 when every call reached the library and returned what that returned.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                               \
  do {                                                            \
    if (!(what)) {                                                \
      fprintf(stderr, "subject: line %d: %s\n", __LINE__, #what); \
      _exit(1);                                                   \
    }                                                             \
  } while (0)

typedef int (*load_data)(void**, const void*);
typedef int (*library_data)(void**, const void*, int*, void**, unsigned, int*, void**, unsigned);
typedef int (*address_v1)(const char*, void**, int, uint64_t);
typedef int (*address_v2)(const char*, void**, int, uint64_t, int*);

static void* handle;
static void* module;

#define FIND(type, from, name) (*(type*)&(void*){dlsym(from, name)})

static const char* called(void) {
  return *(const char**)dlsym(handle, "standin_called");
}
static const void* image(void) {
  return *(const void**)dlsym(handle, "standin_image");
}

struct container {
  uint32_t magic;
  uint16_t version, header;
  uint64_t body;
  char bytes[112];
};
struct wrapper {
  uint32_t magic, version;
  const void* container;
  void* more;
};

static struct container container = {0xba55ed50, 1, 16, 112, "a container's body"};
static struct wrapper wrapper = {0x466243b1, 1, &container, NULL};
static const char ptx[] = ".version 9.0\n.target sm_90\n";

static void* make_elf(void) {
  struct {
    Elf64_Ehdr head;
    Elf64_Shdr sections[2];
  }* elf = calloc(1, sizeof *elf);
  memcpy(elf->head.e_ident, "\177ELF\2\1\1", 7);
  elf->head.e_machine = 190;
  elf->head.e_shoff = sizeof elf->head;
  elf->head.e_shentsize = sizeof(Elf64_Shdr);
  elf->head.e_shnum = 2;
  return elf;
}

static void by_handle(void) {
  load_data f = FIND(load_data, handle, "cuModuleLoadData");
  CHECK(f(&module, ptx) == 0 && image() == ptx && strcmp(called(), "cuModuleLoadData") == 0);
  CHECK(f(&module, &wrapper) == 0 && image() == &wrapper);
  CHECK(f(&module, &container) == 0);
  void* elf = make_elf();
  CHECK(f(&module, elf) == 0);
  library_data g = FIND(library_data, handle, "cuLibraryLoadData");
  CHECK(g(&module, &wrapper, NULL, NULL, 0, NULL, NULL, 7) == 7);  // all eight arguments arrive
  CHECK(FIND(void*, handle, "cuNoSuchFunction") == NULL);
  CHECK(FIND(void*, handle, "cuLinkAddData") == NULL && "the stand-in has only _v2");
  CHECK(FIND(void*, handle, "cuInit") != NULL);
}

static void by_address(void) {
  address_v1 v1 = FIND(address_v1, handle, "cuGetProcAddress");
  address_v2 v2 = NULL;
  library_data g = NULL;
  load_data f = NULL;
  int (*init)(unsigned) = NULL;
  CHECK(v1("cuGetProcAddress", (void**)&v2, 12000, 0) == 0);
  CHECK(v2("cuLibraryLoadData", (void**)&g, 12000, 0, NULL) == 0);
  CHECK(g(&module, &container, NULL, NULL, 0, NULL, NULL, 3) == 3);
  CHECK(v2("cuModuleLoadData", (void**)&f, 12000, 0, NULL) == 0);
  CHECK(f(&module, ptx) == 0 && strcmp(called(), "twin") == 0);  // not the exported function
  CHECK(FIND(load_data, handle, "cuModuleLoadData")(&module, ptx) == 0 && strcmp(called(), "cuModuleLoadData") == 0);
  CHECK(v2("cuInit", (void**)&init, 12000, 0, NULL) == 0 && init(5) == 5);
  CHECK(v2("cuNone", (void**)&init, 12000, 0, NULL) == 500 && init == NULL);
}

static void by_path(const char* file) {
  int (*load)(void**, const char*) = (int (*)(void**, const char*))FIND(load_data, handle, "cuModuleLoad");
  CHECK(load(&module, file) == 0);
  CHECK(load(&module, "/no/such/file") == 0);
}

static void by_linker(void) {
  int (*add)(void*, int, void*, size_t, const char*, unsigned, int*, void**) = (int (*)(
      void*, int, void*, size_t, const char*, unsigned, int*, void**))FIND(load_data, handle, "cuLinkAddData_v2");
  int (*complete)(void*, void**, size_t*) = (int (*)(void*, void**, size_t*))FIND(load_data, handle, "cuLinkComplete");
  void* out;
  size_t size;
  CHECK(add(NULL, 1, (void*)(uintptr_t)ptx, sizeof ptx, "name", 0, NULL, NULL) == 0);
  CHECK(complete(NULL, &out, &size) == 0 && size == 20);
}

static void by_scope(void) {
  // Not visible: then no name of libcuda is found in the global scope, ours
  // included, unless libcuda is loaded.
  void* all = dlopen(NULL, RTLD_LAZY);
  CHECK(FIND(load_data, all, "cuModuleLoadData")(&module, ptx) == 0);
  CHECK(FIND(load_data, RTLD_DEFAULT, "cuModuleLoadData")(&module, ptx) == 0);
  CHECK(FIND(load_data, RTLD_NEXT, "cuModuleLoadData")(&module, ptx) == 0);
}

static void bad_pointers(void) {
  load_data f = FIND(load_data, handle, "cuModuleLoadData");
  long page = sysconf(_SC_PAGESIZE);
  char* two = mmap(NULL, (size_t)page * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(two != MAP_FAILED && mprotect(two + page, (size_t)page, PROT_NONE) == 0);
  CHECK(f(&module, NULL) == 0);
  CHECK(f(&module, (void*)8) == 0);
  memset(two, 'p', (size_t)page);  // text without an end
  CHECK(f(&module, two) == 0);
  struct container huge = {0xba55ed50, 1, 16, UINT64_MAX - 8, ""};
  CHECK(f(&module, &huge) == 0);
  huge.body = 1 << 20;  // runs into memory that is not there
  memcpy(two, &huge, sizeof huge);
  CHECK(f(&module, two) == 0);
  struct wrapper astray = {0x466243b1, 1, (void*)16, NULL};
  CHECK(f(&module, &astray) == 0);
  Elf64_Ehdr* elf = make_elf();
  elf->e_shoff = UINT64_MAX - 64;
  CHECK(f(&module, elf) == 0);
}

static void failing(void) {
  load_data f = FIND(load_data, handle, "cuModuleLoadData");
  *(int*)dlsym(handle, "standin_result") = 209;
  CHECK(f(&module, ptx) == 209);
}

static void forked(void) {
  load_data f = FIND(load_data, handle, "cuModuleLoadData");
  CHECK(f(&module, ptx) == 0);
  pid_t pid = fork();
  if (pid == 0) {
    CHECK(f(&module, &container) == 0);
    _exit(0);
  }
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

int main(int argc, char** argv) {
  const char* scenario = argc > 1 ? argv[1] : "";
  if (strcmp(scenario, "absent") == 0) {
    // Whoever asks whether libcuda is there must not be told it is.
    CHECK(dlsym(RTLD_DEFAULT, "cuModuleLoadData") == NULL && dlsym(RTLD_NEXT, "cuGetProcAddress") == NULL);
    CHECK(dlsym(RTLD_DEFAULT, "malloc") == (void*)(uintptr_t)malloc && dlsym(RTLD_DEFAULT, "c") == NULL);
    CHECK(dlsym(RTLD_DEFAULT, "") == NULL);
    return 0;
  }
  CHECK(argc > 2);
  handle = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (!handle) fprintf(stderr, "%s\n", dlerror());
  CHECK(handle);
  if (strcmp(scenario, "handle") == 0)
    by_handle();
  else if (strcmp(scenario, "address") == 0)
    by_address();
  else if (strcmp(scenario, "path") == 0)
    by_path(argv[3]);
  else if (strcmp(scenario, "linker") == 0)
    by_linker();
  else if (strcmp(scenario, "scope") == 0)
    by_scope();
  else if (strcmp(scenario, "bad") == 0)
    bad_pointers();
  else if (strcmp(scenario, "failing") == 0)
    failing();
  else if (strcmp(scenario, "forked") == 0)
    forked();
  else if (strcmp(scenario, "many") == 0)
    for (int i = 0; i < 100; i++) CHECK(FIND(load_data, handle, "cuModuleLoadData")(&module, ptx) == 0);
  else
    return 2;
  return 0;
}
