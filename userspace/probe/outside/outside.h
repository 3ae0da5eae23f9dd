// SPDX-License-Identifier: Apache-2.0
// `gpuwatch-probe --pid N --records FILE`: looks at a process without an agent,
// compares, prints. It makes nothing in the process and changes nothing there.
// What needs rights is done by one process, what parses is another without.
#pragma once

#include "probe/agent/live.h"
#include "probe/agent/sources.h"
#include "probe/outside/process_files.h"

namespace gpuwatch::probe::outside {

// What is open before rights are gone. A failure is told when its turn comes.
struct Prepared {
  RecordFiles records;
  Failure no_records;
  std::vector<agent::Source> sources;
  Failure no_sources;
  std::string tool;  // see watching_tool
};
Prepared prepare(const agent::LiveOptions& options);

// By `files`, which are those of `process`; opens nothing. Sets `finding` where
// code differs.
Failure look_into(const agent::LiveOptions& options, const Prepared& prepared, TargetFiles& files,
                  const Identity& process, Report& report, bool& finding);

// Exit code, as Outcome.
int probe_process(const agent::LiveOptions& options, Report& report);

}  // namespace gpuwatch::probe::outside
