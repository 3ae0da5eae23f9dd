// SPDX-License-Identifier: Apache-2.0
// What the agent's kernels and the host agree on. A launch reads nothing before
// the host permits it, in memory that both see: the host permits it while it
// holds off calls that unmap, and withdraws it when the GPU does not come to it.
#pragma once

#include "kernels/tree.h"

namespace gpuwatch::kernels {

inline constexpr std::uint32_t kAgentBlocks = 32;
inline constexpr std::uint32_t kAgentThreads = 128;
// A copy is as fast as PCI Express, which few blocks with many loads under way fill.
// Each block is in the way of a kernel that wants its multiprocessor.
inline constexpr std::uint32_t kReadBlocks = 4;
inline constexpr std::uint32_t kReadThreads = 256;
// A survey goes over hundreds of MiB: all multiprocessors for a short time cost
// other work less than some of them for a long one.
inline constexpr std::uint32_t kSurveyBlocks = 128;
inline constexpr std::uint32_t kSurveyThreads = 256;

// Values of AgentControl::permit.
inline constexpr std::uint32_t kPermitNotYet = 0;
inline constexpr std::uint32_t kPermitGiven = 1;
inline constexpr std::uint32_t kPermitWithdrawn = 2;
// Values of AgentControl::state, of each block. A block says that it is there
// before it looks at the permit: the host withdraws, then looks who is there.
inline constexpr std::uint32_t kBlockAbsent = 0;
inline constexpr std::uint32_t kBlockThere = 1;
inline constexpr std::uint32_t kBlockDone = 2;
inline constexpr std::uint32_t kBlockRefrained = 3;

struct AgentControl {
  std::uint32_t permit;
  std::uint32_t pad[15];
  std::uint32_t state[kSurveyBlocks];  // of the blocks that were launched
};
static_assert(kAgentBlocks <= kSurveyBlocks && kReadBlocks <= kSurveyBlocks);

// 16-byte units from code to the host's memory.
struct AgentCopy {
  std::uint64_t from;
  std::uint64_t to;
  std::uint64_t bytes;
};

// Is a unit of 16 bytes an EXIT as compilers write it, whatever its predicate? Its
// low half has nothing but opcode and predicate, on every SM that the kernels
// are built for; data hardly ever looks so.
GPUWATCH_BOTH bool is_exit(std::uint64_t low_half) {
  return (low_half & ~std::uint64_t{0xf000}) == 0x94d;
}

// Is it the branch to itself behind the last instruction of a function? All of
// the 44,976 functions for sm_75, sm_90 and sm_120 that were looked at in libcublas,
// libcublasLt, libcufft, libcusparse and libnccl (CUDA 13) have one, in one of these
// two forms, the second since sm_90; 1,696 of libnccl for sm_90 have no EXIT.
GPUWATCH_BOTH bool is_last_branch(std::uint64_t low_half) {
  return low_half == 0xfffffff000007947u || low_half == 0xfffffffc00fc7947u;
}

GPUWATCH_BOTH bool is_end(std::uint64_t low_half) {
  return is_exit(low_half) || is_last_branch(low_half);
}

// Counts, for each region and block, the blocks of a region together.
struct SurveyCount {
  std::uint32_t units;  // of 16 bytes that are not zero
  std::uint32_t ends;
};

struct AgentSurvey {
  std::uint64_t regions_address;  // of SurveyRegion
  std::uint64_t regions;
  std::uint64_t out_address;  // of SurveyCount
};

struct SurveyRegion {
  std::uint64_t address;
  std::uint64_t bytes;
};

}  // namespace gpuwatch::kernels
