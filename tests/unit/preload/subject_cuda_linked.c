// SPDX-License-Identifier: Apache-2.0
// A driver-API program: linked with libcuda, so its loaders are plain symbols.
#include <stddef.h>

extern int cuModuleLoadData(void** module, const void* image);
extern int cuModuleLoadFatBinary(void** module, const void* image);
extern int standin_calls;

int main(void) {
  void* module;
  static const char ptx[] = ".version 9.0\n";
  if (cuModuleLoadData(&module, ptx) != 0 || cuModuleLoadFatBinary(&module, ptx) != 0) return 1;
  return standin_calls == 2 ? 0 : 2;
}
