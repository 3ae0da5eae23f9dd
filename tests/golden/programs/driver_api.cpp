// SPDX-License-Identifier: Apache-2.0
// Driver API: context, module from memory, 1,000 launches, and everything
// undone in order. Argument: the cubin.
#include <cuda.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "check.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
  constexpr int kCount = 4096, kLaunches = 1000;
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction function;
  CUdeviceptr memory;
  DRV(cuInit(0));
  DRV(cuDeviceGet(&device, 0));
#if CUDA_VERSION >= 13000
  DRV(cuCtxCreate(&context, nullptr, 0, device));
#else
  DRV(cuCtxCreate(&context, 0, device));
#endif
  DRV(cuModuleLoadData(&module, image.data()));
  DRV(cuModuleGetFunction(&function, module, "add_one"));
  DRV(cuMemAlloc(&memory, kCount * sizeof(int)));
  DRV(cuMemsetD32(memory, 0, kCount));
  int count = kCount;
  void* arguments[] = {&memory, &count};
  for (int i = 0; i < kLaunches; ++i)
    DRV(cuLaunchKernel(function, kCount / 256, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr));
  std::vector<int> values(kCount);
  DRV(cuMemcpyDtoH(values.data(), memory, kCount * sizeof(int)));
  for (const int value : values)
    if (value != kLaunches) return 3;
  DRV(cuMemFree(memory));
  DRV(cuModuleUnload(module));
  DRV(cuCtxDestroy(context));
  return 0;
}
