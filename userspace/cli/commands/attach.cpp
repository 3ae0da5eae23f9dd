// SPDX-License-Identifier: Apache-2.0
// `gpuwatch attach` and `detach`: the explicit steps that change the kernel
// module's state, by generic netlink; by its device where the module is older
// than that or this is another network namespace than the host's.
#include <algorithm>

#include "cli/commands.h"
#include "cli/output.h"
#include "netlink/control.h"
#include "source/kmod_device.h"

namespace gpuwatch::cli {

using base::Result;
using base::Status;

namespace {

int tell_attached(std::uint32_t functions) {
  say("attached; " + std::to_string(functions) + " driver functions known" +
      (functions == 0 ? ": no NVIDIA driver is loaded, it is hooked when it comes" : ""));
  return kExitOk;
}

int tell_detached(std::uint32_t in_flight) {
  if (in_flight == 0) {
    say("detached");
    return kExitOk;
  }
  say(std::to_string(in_flight) + (in_flight == 1 ? " call in flight" : " calls in flight") +
      ": nothing new is recorded, but the hooks stay until it returns; repeat the detach then");
  return kExitFinding;
}

Result<int> attach_by_device() {
  auto device = source::KmodDevice::open();
  if (!device) return std::move(device.error());
  if (Status status = device->attach(); !status.ok()) return std::move(status.error());
  auto info = device->info();
  if (!info) return std::move(info.error());
  return tell_attached(info->nr_targets);
}

Result<int> detach_by_device(std::chrono::milliseconds timeout) {
  auto device = source::KmodDevice::open();
  if (!device) return std::move(device.error());
  auto in_flight = device->detach(static_cast<std::uint32_t>(std::min<std::int64_t>(timeout.count(), 60'000)));
  if (!in_flight) return std::move(in_flight.error());
  return tell_detached(*in_flight);
}

}  // namespace

Result<int> run_attach(const Flags&) {
  auto control = netlink::Control::open();
  if (!control) return attach_by_device();
  if (Status status = control->attach(); !status.ok()) return std::move(status.error());
  auto state = control->state();
  if (!state) return std::move(state.error());
  return tell_attached(static_cast<std::uint32_t>(state->hooks.size()));
}

Result<int> run_detach(const Flags& flags) {
  const auto timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
      flags.duration("timeout").value_or(std::chrono::seconds(5)));
  auto control = netlink::Control::open();
  if (!control) return detach_by_device(timeout);
  auto in_flight = control->detach(timeout);
  if (!in_flight) return std::move(in_flight.error());
  return tell_detached(*in_flight);
}

}  // namespace gpuwatch::cli
