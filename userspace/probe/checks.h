// SPDX-License-Identifier: Apache-2.0
// What is done with one GPU in one round: the canary, and what the options want
// besides. Its lines are printed here; when a round comes is not decided here.
#pragma once

#include <memory>

#include "probe/canary.h"
#include "probe/options.h"
#include "probe/print.h"

namespace gpuwatch::probe {

struct Gpu {
  DeviceFacts facts;
  std::unique_ptr<Session> session;  // its context; empty between rounds that do not keep it
  CanaryRun canary;                  // the last one; its memory serves the next
};

// A failure ends what is done with this GPU. `finding`: code that differs, or
// known work done wrongly.
Failure check_gpu(Gpu& gpu, const Options& options, Report& report, bool& finding);

}  // namespace gpuwatch::probe
