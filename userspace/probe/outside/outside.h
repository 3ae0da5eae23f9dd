// SPDX-License-Identifier: Apache-2.0
// `gpuwatch-probe --pid N --records FILE`: looks at a process without an agent,
// compares, prints. It makes nothing in the process and changes nothing there.
#pragma once

#include "probe/agent/live.h"
#include "probe/outside/process_files.h"

namespace gpuwatch::probe::outside {

// By `files`, which are those of `process`. Sets `finding` where code differs.
Failure look_into(const agent::LiveOptions& options, TargetFiles& files, const Identity& process, Report& report,
                  bool& finding);

// Exit code, as Outcome.
int probe_process(const agent::LiveOptions& options, Report& report);

}  // namespace gpuwatch::probe::outside
