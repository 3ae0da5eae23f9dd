// SPDX-License-Identifier: Apache-2.0
#include "probe/canary.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "probe/canary_lanes.h"

namespace gpuwatch::probe {

CanaryVerdict judge(const CanaryRun& run) {
  CanaryVerdict out;
  out.results = run.results.size();
  std::uint64_t expected[kernels::kCanaryThreads];
  for (std::size_t i = 0; i < run.results.size(); i += std::size(expected)) {
    const std::span<std::uint64_t> part(expected, std::min(std::size(expected), run.results.size() - i));
    canary_works(run.seed, static_cast<std::uint32_t>(i), part);
    for (std::size_t k = 0; k < part.size(); ++k)
      if (run.results[i + k] != part[k]) ++out.wrong;
  }
  std::set<std::uint32_t> seen;
  std::vector<double> clocks;
  std::uint64_t begin = ~std::uint64_t{0};
  std::uint64_t end = 0;
  out.timers_ran = !run.blocks.empty();
  for (const kernels::CanaryBlock& block : run.blocks) {
    seen.insert(block.sm);
    begin = std::min(begin, block.time_begin_ns);
    end = std::max(end, block.time_end_ns);
    if (block.time_end_ns <= block.time_begin_ns || block.clock_end <= block.clock_begin) {
      out.timers_ran = false;
      continue;
    }
    clocks.push_back(static_cast<double>(block.clock_end - block.clock_begin) * 1e3 /
                     static_cast<double>(block.time_end_ns - block.time_begin_ns));
  }
  out.multiprocessors = static_cast<int>(seen.size());
  if (end > begin) out.gpu_ms = static_cast<double>(end - begin) / 1e6;
  if (!clocks.empty()) {
    std::nth_element(clocks.begin(), clocks.begin() + static_cast<long>(clocks.size() / 2), clocks.end());
    out.clock_mhz = clocks[clocks.size() / 2];
  }
  return out;
}

}  // namespace gpuwatch::probe
