// SPDX-License-Identifier: Apache-2.0
// Code of all kinds that the loader relocates or not, for tests/gpu/images:
// printf, assert and malloc of the driver's, function pointers, recursion, a
// switch, globals, constants, textures of other modules' kind. Never run.
#include <cassert>
#include <cstdio>

__device__ int counter = 3;
__device__ float table[256];
__constant__ float factors[64];

using Step = int (*)(int);
__device__ __noinline__ int twice(int x) { return 2 * x + counter; }
__device__ __noinline__ int thrice(int x) { return 3 * x - counter; }
__device__ __noinline__ int factorial(int x) { return x <= 1 ? 1 : x * factorial(x - 1); }
__device__ Step steps[] = {twice, thrice, factorial};

extern "C" __global__ void prints(int* out, int n) {
  if (threadIdx.x == 0) printf("%d of %d\n", out[0], n);
  assert(n > 0);
  out[threadIdx.x] = n;
}
extern "C" __global__ void points(int* out, int which) { out[threadIdx.x] = steps[which % 3](out[threadIdx.x]); }
extern "C" __global__ void recurses(int* out) { out[threadIdx.x] = factorial(out[threadIdx.x] & 7); }
extern "C" __global__ void allocates(int** out) {
  out[threadIdx.x] = static_cast<int*>(malloc(64));
  if (out[threadIdx.x] != nullptr) *out[threadIdx.x] = atomicAdd(&counter, 1);
}
extern "C" __global__ void branches(float* out, int which) {
  float x = out[threadIdx.x];
  switch (which) {
    case 0: x = __sinf(x) * factors[0]; break;
    case 1: x = __cosf(x) + table[threadIdx.x]; __syncthreads(); break;
    case 2: x = __expf(x) - 1.5f; __threadfence(); break;
    case 3: x = sqrtf(x) + x * x; table[threadIdx.x] = x; break;
    case 4: x = __logf(x + 2.f) * factors[5]; out[threadIdx.x + 64] = x; break;
    case 5: x = x * 11.f; out[threadIdx.x + 32] = x + 2.f; break;
    case 6: x = rsqrtf(x + 1.f); __threadfence_block(); break;
    case 7: x = x / (x + 3.f); __threadfence_system(); break;
    default: x = -1.f;
  }
  out[threadIdx.x] = x;
}
