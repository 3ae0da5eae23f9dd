// SPDX-License-Identifier: Apache-2.0
// Asks for more device memory than the GPU has (plain memory, refused at once),
// then shows that the context still works.
#include <cuda_runtime.h>

#include "check.h"

int main() {
  size_t free_bytes, total_bytes;
  void* memory;
  RT(cudaMemGetInfo(&free_bytes, &total_bytes));
  if (cudaMalloc(&memory, total_bytes + (1ull << 30)) != cudaErrorMemoryAllocation) return 3;
  (void)cudaGetLastError();
  RT(cudaMalloc(&memory, 1 << 20));
  RT(cudaMemset(memory, 0, 1 << 20));
  RT(cudaFree(memory));
  return 0;
}
