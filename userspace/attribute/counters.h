// SPDX-License-Identifier: Apache-2.0
// Counters of attribution, for status and --stats: how often something was
// known at once, and what it took where it was not.
#pragma once

#include <cstdint>

namespace gpuwatch::attribute {

struct ProcessCounters {
  std::uint64_t known = 0;  // processes in the cache now
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t evictions = 0;
  std::uint64_t definitions = 0;   // TASK records learned
  std::uint64_t proc_reads = 0;    // processes looked up in /proc, one by one
  std::uint64_t proc_gone = 0;     // of those: ended, or another process had the pid
  std::uint64_t proc_refused = 0;  // not looked up: too many waited
};

struct CgroupCounters {
  std::uint64_t known = 0;  // cgroups in the cache now
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t evictions = 0;
};

struct AllocationCounters {
  std::uint64_t looks = 0;     // at what a container was given
  std::uint64_t unknown = 0;   // of those: nothing could be found out
  std::uint64_t findings = 0;  // uses outside of it
  std::uint64_t refused = 0;   // not looked at: too many waited
};

}  // namespace gpuwatch::attribute
