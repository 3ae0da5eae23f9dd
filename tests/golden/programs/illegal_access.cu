// SPDX-License-Identifier: Apache-2.0
// A kernel writes to an address that is not mapped: the context is lost, and
// the program ends as most programs end then.
#include <cuda_runtime.h>

#include "check.h"

__global__ void write_to(int* address) {
  *address = 1;
}

int main() {
  int* memory;
  RT(cudaMalloc(&memory, 4096));
  write_to<<<1, 1>>>(reinterpret_cast<int*>(0x10));
  if (cudaDeviceSynchronize() != cudaErrorIllegalAddress) return 3;
  return cudaFree(memory) == cudaErrorIllegalAddress ? 0 : 3;
}
