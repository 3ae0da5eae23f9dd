// SPDX-License-Identifier: Apache-2.0
// `gpuwatch-probe --pid`: asks the agent of a living process, compares, prints.
// It loads no libcuda and touches no GPU itself.
#pragma once

#include <string>

#include "probe/print.h"

namespace gpuwatch::probe::agent {

struct LiveOptions {
  int pid = 0;
  std::string image;   // empty: what the process has mapped and in its memory
  std::string kernel;  // empty: all
  int gpu = -1;        // as the process counts; -1: all
  std::uint64_t read_max = 1024ull << 20;
};

// Exit code, as Outcome.
int probe_process(const LiveOptions& options, Report& report);

}  // namespace gpuwatch::probe::agent
