// SPDX-License-Identifier: Apache-2.0
// Ends a program with the place and the error when a CUDA call fails.
#pragma once

#include <cstdio>
#include <cstdlib>

#define DRV(call)                                                                      \
  do {                                                                                 \
    const CUresult result_ = (call);                                                   \
    if (result_ != CUDA_SUCCESS) {                                                     \
      std::fprintf(stderr, "%s:%d: %s gave %d\n", __FILE__, __LINE__, #call, result_); \
      std::exit(1);                                                                    \
    }                                                                                  \
  } while (0)

#define RT(call)                                                                                         \
  do {                                                                                                   \
    const cudaError_t result_ = (call);                                                                  \
    if (result_ != cudaSuccess) {                                                                        \
      std::fprintf(stderr, "%s:%d: %s gave %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(result_)); \
      std::exit(1);                                                                                      \
    }                                                                                                    \
  } while (0)
