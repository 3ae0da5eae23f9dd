// SPDX-License-Identifier: Apache-2.0
// Linked code whose local symbols share a name: the text of each file's printf() is
// "$str", and the driver, asked by name, tells one of them.
//   nvcc -rdc=true -arch=sm_90 -c shared_names.cu -o one.o
//   nvcc -rdc=true -arch=sm_90 -DSECOND_FILE -c shared_names.cu -o two.o
//   nvcc -dlink -cubin -arch=sm_90 -o shared_names_90.cubin one.o two.o
#include <cstdio>

#ifdef SECOND_FILE
__device__ __noinline__ int other(int x) {
  printf("in the second file %d\n", x);
  return x + 1;
}
extern "C" __global__ void second(int* out) {
  printf("second, with a longer text %d\n", out[0]);
  out[1] = 2 * other(out[0]);
}
#else
__device__ int other(int x);
extern "C" __global__ void first(int* out) {
  printf("first %d\n", out[0]);
  out[1] = other(out[0]);
}
#endif
