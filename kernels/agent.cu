// SPDX-License-Identifier: Apache-2.0
// The kernels of the agent in a living process. They read code by the host's
// permit alone and write nowhere but to the host memory that they are given.
#include "kernels/agent.h"
#include "kernels/device_load.cuh"

using namespace gpuwatch::kernels;

namespace {

constexpr std::uint64_t kWaitNs = 50'000'000;
constexpr std::uint32_t kWaitSpins = 1'000'000;

// For thread 0 of a block: there, then permitted or not. The host permits right
// after the launch; the wait ends by time and by count.
__device__ bool permitted(AgentControl* control) {
  volatile std::uint32_t* state = &control->state[blockIdx.x];
  const volatile std::uint32_t* permit = &control->permit;
  *state = kBlockThere;
  __threadfence_system();
  std::uint64_t begin_ns, now_ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin_ns)::"memory");
  std::uint32_t value = *permit;
  for (std::uint32_t spins = 0; value == kPermitNotYet && spins < kWaitSpins; ++spins) {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now_ns)::"memory");
    if (now_ns - begin_ns > kWaitNs) break;
    value = *permit;
  }
  return value == kPermitGiven;
}

// For all threads of a block, before and after its reads.
__device__ bool begin_block(AgentControl* control) {
  __shared__ std::uint32_t go;
  if (threadIdx.x == 0) go = permitted(control) ? 1 : 0;
  __syncthreads();
  return go != 0;
}

__device__ void end_block(AgentControl* control, bool went) {
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x != 0) return;
  volatile std::uint32_t* state = &control->state[blockIdx.x];
  *state = went ? kBlockDone : kBlockRefrained;
  __threadfence_system();
}

}  // namespace

// kReadBlocks blocks of kReadThreads.
extern "C" __global__ void __launch_bounds__(kReadThreads) gpuwatch_agent_read(AgentCopy copy, AgentControl* control) {
  const bool go = begin_block(control);
  if (go) {
    const std::uint64_t stride = 16ull * gridDim.x * blockDim.x;
    constexpr int kAtOnce = 8;  // loads under way
    for (std::uint64_t at = 16ull * (blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x);
         at < copy.bytes; at += kAtOnce * stride) {
      uint4 loaded[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k)
        if (at + k * stride < copy.bytes) loaded[k] = read_16(copy.from + at + k * stride);
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k)
        if (at + k * stride < copy.bytes) *reinterpret_cast<uint4*>(copy.to + at + k * stride) = loaded[k];
    }
  }
  end_block(control, go);
}

// kSurveyBlocks blocks of kSurveyThreads.
extern "C" __global__ void __launch_bounds__(kSurveyThreads)
    gpuwatch_agent_survey(AgentSurvey survey, AgentControl* control) {
  __shared__ std::uint32_t units_here, ends_here;
  const bool go = begin_block(control);
  const SurveyRegion* regions = reinterpret_cast<const SurveyRegion*>(survey.regions_address);
  SurveyCount* out = reinterpret_cast<SurveyCount*>(survey.out_address);
  const std::uint64_t stride = 16ull * gridDim.x * blockDim.x;
  const std::uint64_t first = 16ull * (blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x);
  for (std::uint64_t i = 0; go && i < survey.regions; ++i) {
    if (threadIdx.x == 0) units_here = ends_here = 0;
    __syncthreads();
    const SurveyRegion region = regions[i];
    std::uint32_t units = 0, ends = 0;
    constexpr int kAtOnce = 8;  // loads under way
    for (std::uint64_t at = first; at < region.bytes; at += kAtOnce * stride) {
      uint4 loaded[kAtOnce] = {};
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k)
        if (at + k * stride < region.bytes) loaded[k] = read_16(region.address + at + k * stride);
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        units += (loaded[k].x | loaded[k].y | loaded[k].z | loaded[k].w) != 0 ? 1 : 0;
        ends += is_end(static_cast<std::uint64_t>(loaded[k].y) << 32 | loaded[k].x) ? 1 : 0;
      }
    }
    if (units != 0) atomicAdd(&units_here, units);
    if (ends != 0) atomicAdd(&ends_here, ends);
    __syncthreads();
    if (threadIdx.x == 0) out[i * gridDim.x + blockIdx.x] = {units_here, ends_here};
    __syncthreads();
  }
  end_block(control, go);
}

// The chunks of level 0, in turns: up to kAgentBlocks blocks of kAgentThreads.
extern "C" __global__ void __launch_bounds__(kAgentThreads) gpuwatch_agent_hash(Job job, AgentControl* control) {
  const bool go = begin_block(control);
  if (go) {
    const Region* regions = reinterpret_cast<const Region*>(job.regions_address);
    const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
    for (std::uint64_t number = blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x; number < job.chunks;
         number += stride)
      hash_one_chunk(job, regions, number);
  }
  end_block(control, go);
}
