// SPDX-License-Identifier: Apache-2.0
// Judges what a canary run brought back: every result against the CPU's, how
// many multiprocessors took part, and the clock that its timers tell.
#pragma once

#include "probe/session.h"

namespace gpuwatch::probe {

struct CanaryVerdict {
  std::uint64_t results = 0;
  std::uint64_t wrong = 0;
  int multiprocessors = 0;  // different ones seen
  double clock_mhz = 0;     // median over blocks of clock64 by globaltimer
  double gpu_ms = 0;        // from the first block's begin to the last one's end
  bool timers_ran = false;  // both moved forward in every block
  bool good(int expected_multiprocessors) const {
    return results != 0 && wrong == 0 && timers_ran && multiprocessors == expected_multiprocessors;
  }
};

CanaryVerdict judge(const CanaryRun& run);

}  // namespace gpuwatch::probe
