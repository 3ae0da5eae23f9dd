// SPDX-License-Identifier: Apache-2.0
// Status: what the daemon says of itself, as the JSON of the control socket and
// as metrics. It reads snapshots of others and keeps nothing.
#pragma once

#include <memory>
#include <string>

#include "daemon/engine.h"
#include "daemon/intake.h"
#include "daemon/outputs.h"
#include "sink/metrics.h"

namespace gpuwatch::daemon {

struct StatusFacts {
  std::string host_name;
  std::uint64_t started_unix_ns = 0;
  std::shared_ptr<const EngineView> view;
  IntakeCounts intake;
  std::uint64_t intake_limit = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> worst;  // cgroup, dropped
  std::shared_ptr<Outputs> outputs;
  sink::Tally* tally = nullptr;
  std::uint64_t records_read = 0;
  std::uint64_t recorder_bytes = 0, recorder_limit = 0;
  std::vector<std::string> config_files;
  std::size_t rules = 0;
  std::uint64_t reloads = 0, reloads_refused = 0;
  bool last_reload_good = true;
  std::string last_reload_error;
  std::string how_run;                 // privileges
  bool resumed = false;                // went on with a ring of an earlier process
  std::uint64_t calls = 0;             // worked off, by earlier processes with the same ring, too
  std::uint64_t missed = 0;            // records that one had taken and not worked off
  std::vector<Unsent::Left> unsent;    // when that one was killed
  std::string last_end;                // of the process before: "clean", "killed", "unknown"
  std::vector<std::string> baselines;  // files in use
  std::uint64_t scrapes = 0;
  bool live = false;
  std::uint64_t hooks = 0;
  bool module = false;               // answers
  std::optional<ProbeCounts> probe;  // nothing: agents are not asked
};

std::string status_json(const StatusFacts& facts);
sink::Metrics metrics_of(const StatusFacts& facts);

}  // namespace gpuwatch::daemon
