// SPDX-License-Identifier: Apache-2.0
// `gpuwatch-probe --pid`: asks the agent of a living process, compares, prints.
// It loads no libcuda and touches no GPU itself.
#pragma once

#include <functional>
#include <string>

#include "probe/print.h"

namespace gpuwatch::probe::agent {

struct LiveOptions {
  int pid = 0;
  std::string image;    // empty: what the process has mapped and in its memory
  std::string kernel;   // empty: all
  std::string records;  // of its driver calls, to read from outside
  int gpu = -1;         // as the process counts; -1: all
  std::uint64_t read_max = 1024ull << 20;
};

// Exit code, as Outcome. Where there is no agent, `otherwise` decides, if given.
int probe_process(const LiveOptions& options, Report& report, const std::function<int()>& otherwise = nullptr);

}  // namespace gpuwatch::probe::agent
