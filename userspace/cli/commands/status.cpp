// SPDX-License-Identifier: Apache-2.0
// `gpuwatch status`: the state of all that watches.
#include <algorithm>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/status_report.h"
#include "control/protocol.h"
#include "source/kmod_device.h"

namespace gpuwatch::cli {

using base::Result;
using base::Status;

Result<int> run_status(const Flags& flags) {
  StatusPlaces places;
  places.device = source::kDevicePath;
  places.socket_asked = flags.has("socket");
  places.socket = places.socket_asked ? flags.text("socket") : control::kSocketPath;
  places.baselines = flags.list("baseline");
  const StatusReport report = look_at_status(places);
  Output output;
  output.buffer() += flags.has("json") ? status_json(report) : status_text(report);
  if (Status status = output.flush(); !status.ok()) return std::move(status.error());
  // Also where scripts that read the rest look for trouble.
  if (!report.module) say(report.module_error);
  return exit_code_of(report);
}

}  // namespace gpuwatch::cli
