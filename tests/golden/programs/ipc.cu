// SPDX-License-Identifier: Apache-2.0
// Legacy CUDA IPC: the parent allocates, a child of it opens the handle and
// writes, the parent reads. The child starts before the parent touches CUDA.
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

__global__ void fill(int* values, int what) {
  values[threadIdx.x] = what;
}

static int child(int from, int to) {
  cudaIpcMemHandle_t handle;
  if (read(from, &handle, sizeof handle) != sizeof handle) return 4;
  int* memory;
  RT(cudaIpcOpenMemHandle(reinterpret_cast<void**>(&memory), handle, cudaIpcMemLazyEnablePeerAccess));
  fill<<<1, 256>>>(memory, 42);
  RT(cudaDeviceSynchronize());
  RT(cudaIpcCloseMemHandle(memory));
  return write(to, "x", 1) == 1 ? 0 : 4;
}

int main() {
  int down[2], up[2], status;
  if (pipe(down) != 0 || pipe(up) != 0) return 4;
  const pid_t pid = fork();
  if (pid == 0) _exit(child(down[0], up[1]));
  int *memory, values[256];
  cudaIpcMemHandle_t handle;
  char byte;
  RT(cudaMalloc(&memory, 1 << 21));
  RT(cudaIpcGetMemHandle(&handle, memory));
  if (write(down[1], &handle, sizeof handle) != sizeof handle || read(up[0], &byte, 1) != 1) return 4;
  if (waitpid(pid, &status, 0) != pid || status != 0) return 5;
  RT(cudaMemcpy(values, memory, sizeof values, cudaMemcpyDeviceToHost));
  for (const int value : values)
    if (value != 42) return 3;
  RT(cudaFree(memory));
  return 0;
}
