// SPDX-License-Identifier: Apache-2.0
// What one event costs to attribute: to a process and cgroup that are known,
// and the way of those who ask /proc. CPU time of this process.
#pragma once

#include <cstdint>

namespace gpuwatch::bench {

struct AttributionCost {
  double known_ns = 0;       // of an event of one of 1,000 known processes in 100 containers
  double definition_ns = 0;  // of learning one process
  double proc_ns = 0;        // peer: stat, cgroup and exe of a process read from /proc
  std::uint64_t sum = 0;     // keeps results alive
};

AttributionCost measure_attribution();

}  // namespace gpuwatch::bench
