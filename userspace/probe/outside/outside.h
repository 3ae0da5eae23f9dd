// SPDX-License-Identifier: Apache-2.0
// `gpuwatch-probe --pid N --records FILE`: looks at a process without an agent,
// compares, prints. It makes nothing in the process and changes nothing there.
#pragma once

#include "probe/agent/live.h"

namespace gpuwatch::probe::outside {

// Exit code, as Outcome.
int probe_process(const agent::LiveOptions& options, Report& report);

}  // namespace gpuwatch::probe::outside
