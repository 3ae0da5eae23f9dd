// SPDX-License-Identifier: Apache-2.0
// Compiled to a cubin that driver_api loads with cuModuleLoadData.
extern "C" __global__ void add_one(int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += 1;
}
