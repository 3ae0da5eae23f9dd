// SPDX-License-Identifier: Apache-2.0
#include "probe/canary.h"

#include <algorithm>
#include <set>

namespace gpuwatch::probe {

CanaryVerdict judge(const CanaryRun& run) {
  CanaryVerdict out;
  out.results = run.results.size();
  for (std::size_t i = 0; i < run.results.size(); ++i)
    if (run.results[i] != kernels::canary_work(run.seed, static_cast<std::uint32_t>(i))) ++out.wrong;
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
