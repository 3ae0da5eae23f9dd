// SPDX-License-Identifier: Apache-2.0
// `gpuwatch status`, `attach` and `detach`: the state of all that watches, and
// the explicit steps that change the kernel module's.
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

Result<int> run_attach(const Flags&) {
  auto device = source::KmodDevice::open();
  if (!device) return std::move(device.error());
  if (Status status = device->attach(); !status.ok()) return std::move(status.error());
  auto info = device->info();
  if (!info) return std::move(info.error());
  say("attached; " + std::to_string(info->nr_targets) + " driver functions known" +
      (info->nr_targets == 0 ? ": no NVIDIA driver is loaded, it is hooked when it comes" : ""));
  return kExitOk;
}

Result<int> run_detach(const Flags& flags) {
  auto device = source::KmodDevice::open();
  if (!device) return std::move(device.error());
  const auto timeout = flags.duration("timeout").value_or(std::chrono::seconds(5));
  const auto timeout_ms = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
  auto in_flight = device->detach(static_cast<std::uint32_t>(std::min<std::int64_t>(timeout_ms, 60'000)));
  if (!in_flight) return std::move(in_flight.error());
  if (*in_flight == 0) {
    say("detached");
    return kExitOk;
  }
  say(std::to_string(*in_flight) + (*in_flight == 1 ? " call in flight" : " calls in flight") +
      ": nothing new is recorded, but the hooks stay until it returns; repeat the detach then");
  return kExitFinding;
}

}  // namespace gpuwatch::cli
