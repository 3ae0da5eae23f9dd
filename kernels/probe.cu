// SPDX-License-Identifier: Apache-2.0
// The kernels of the probe. They read what the host proved to be mapped and
// write to memory the host allocated; gpuwatch_store alone writes elsewhere, and
// only the self test and the wipe before an unload launch it.
#include "kernels/canary.h"
#include "kernels/device_load.cuh"
#include "kernels/tree.h"

using namespace gpuwatch::kernels;

// One thread a chunk.
extern "C" __global__ void __launch_bounds__(128) gpuwatch_hash(Job job) {
  const std::uint64_t number = blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x;
  if (number >= job.chunks) return;
  hash_one_chunk(job, reinterpret_cast<const Region*>(job.regions_address), number);
}

// 16 bytes a step; address and size are multiples of 16.
extern "C" __global__ void gpuwatch_copy(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
  const std::uint64_t stride = 16ull * gridDim.x * blockDim.x;
  for (std::uint64_t at = 16ull * (blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x); at < bytes;
       at += stride)
    *reinterpret_cast<uint4*>(to + at) = read_16(from + at);
}

// `words` times the same 32-bit value.
extern "C" __global__ void gpuwatch_store(std::uint64_t to, std::uint32_t value, std::uint64_t words) {
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t at = blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x; at < words; at += stride)
    *reinterpret_cast<volatile std::uint32_t*>(to + 4 * at) = value;
  __threadfence_system();
}

// Known work, then a wait of `wait_ns` that is long enough to tell the clock
// and to let a block reach every multiprocessor. The wait has an end by count,
// too, should the timer stand still.
extern "C" __global__ void __launch_bounds__(kCanaryThreads)
    gpuwatch_canary(std::uint64_t seed, std::uint64_t wait_ns, CanaryBlock* blocks, std::uint64_t* results) {
  std::uint64_t begin_ns, end_ns;
  std::uint32_t sm;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin_ns)::"memory");
  const std::uint64_t begin = clock64();
  asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
  const std::uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  results[thread] = canary_work(seed, thread);
  __syncthreads();
  if (threadIdx.x != 0) return;
  std::uint32_t spins = 0;
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(end_ns)::"memory");
    ++spins;
  } while (end_ns - begin_ns < wait_ns && spins < 10'000'000);
  blocks[blockIdx.x] = {sm, spins, begin_ns, end_ns, begin, static_cast<std::uint64_t>(clock64())};
}
