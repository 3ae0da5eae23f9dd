// SPDX-License-Identifier: Apache-2.0
// What the agent's kernels and the host agree on. A launch reads nothing before
// the host permits it, in memory that both see: the host permits it while it
// holds off calls that unmap, and withdraws it when the GPU does not come to it.
#pragma once

#include "kernels/tree.h"

namespace gpuwatch::kernels {

inline constexpr std::uint32_t kAgentBlocks = 32;
inline constexpr std::uint32_t kAgentThreads = 128;

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
  std::uint32_t state[kAgentBlocks];
};

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

// Counts EXITs: u32 for each region and block, the blocks of a region together.
struct AgentSurvey {
  std::uint64_t regions_address;  // of SurveyRegion
  std::uint64_t regions;
  std::uint64_t out_address;
};

struct SurveyRegion {
  std::uint64_t address;
  std::uint64_t bytes;
};

}  // namespace gpuwatch::kernels
