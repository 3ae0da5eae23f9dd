// SPDX-License-Identifier: Apache-2.0
// Reads of GPU memory by ld.global.cv: fetched again from memory, never from a
// cache that another writer's stores do not reach.
#pragma once

#include "kernels/tree.h"

namespace gpuwatch::kernels {

__device__ __forceinline__ std::uint32_t read_byte(std::uint64_t address) {
  std::uint32_t value;
  asm volatile("ld.global.cv.u8 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

__device__ __forceinline__ uint4 read_16(std::uint64_t address) {
  uint4 value;
  asm volatile("ld.global.cv.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(address)
               : "memory");
  return value;
}

struct DeviceLoad {
  std::uint64_t address;

  __device__ __forceinline__ std::uint8_t byte(std::uint64_t offset) const {
    return static_cast<std::uint8_t>(read_byte(address + offset));
  }
  __device__ __forceinline__ void block(std::uint64_t offset, std::uint32_t (&w)[16]) const {
    const std::uint64_t at = address + offset;
    if ((at & 15) == 0) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint4 value = read_16(at + 16 * i);
        w[4 * i] = sha_swap(value.x);
        w[4 * i + 1] = sha_swap(value.y);
        w[4 * i + 2] = sha_swap(value.z);
        w[4 * i + 3] = sha_swap(value.w);
      }
      return;
    }
#pragma unroll
    for (int i = 0; i < 16; ++i)
      w[i] = read_byte(at + 4 * i) << 24 | read_byte(at + 4 * i + 1) << 16 | read_byte(at + 4 * i + 2) << 8 |
             read_byte(at + 4 * i + 3);
  }
};

// The chunk of that number among all regions of a launch, its digest to its place.
__device__ __forceinline__ void hash_one_chunk(const Job& job, const Region* regions, std::uint64_t number) {
  std::uint64_t low = 0;
  std::uint64_t high = job.regions;  // the last region that starts at or before `number`
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (regions[middle].first_chunk <= number)
      low = middle;
    else
      high = middle;
  }
  const Region region = regions[low];
  const std::uint64_t chunk = number - region.first_chunk;
  const std::uint64_t begin = chunk * job.chunk_bytes;
  const std::uint64_t rest = region.bytes - begin;
  const std::uint64_t bytes = rest < job.chunk_bytes ? rest : job.chunk_bytes;
  const ShaState state = chunk_digest(job, region, chunk, bytes, DeviceLoad{region.address + begin});
  std::uint32_t* out = reinterpret_cast<std::uint32_t*>(job.out_address) + 8 * (region.first_digest + chunk);
#pragma unroll
  for (int i = 0; i < 8; ++i) out[i] = sha_swap(state.word[i]);
}

}  // namespace gpuwatch::kernels
