// SPDX-License-Identifier: Apache-2.0
// `gpuwatch status`, `attach` and `detach`: the kernel module's state, and the
// explicit steps that change it.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "source/host_info.h"
#include "source/kmod_device.h"

namespace gpuwatch::cli {

using base::Result;
using base::Status;

namespace {

std::string_view text_of(const char* bytes, std::size_t size) {
  const std::string_view all(bytes, size);
  return all.substr(0, std::min(all.find('\0'), all.size()));
}

std::string_view op_name(std::uint32_t op) {
  constexpr std::string_view kNames[] = {"open", "ioctl", "compat_ioctl", "mmap", "mmap_prepare", "release"};
  return op < std::size(kNames) ? kNames[op] : "?";
}

std::string_view method_name(std::uint32_t method) {
  constexpr std::string_view kNames[] = {"not hooked", "redirect", "kretprobe"};
  return method < std::size(kNames) ? kNames[method] : "?";
}

std::string features_text(std::uint64_t features) {
  constexpr std::pair<std::uint64_t, std::string_view> kBits[] = {{GPUWATCH_FEAT_REDIRECT, "redirect"},
                                                                  {GPUWATCH_FEAT_KRETPROBE, "kretprobe"},
                                                                  {GPUWATCH_FEAT_CGROUP_V2, "cgroup-v2"},
                                                                  {GPUWATCH_FEAT_CGROUP_V1, "cgroup-v1"}};
  std::string out;
  for (const auto& [bit, name] : kBits) {
    if ((features & bit) == 0) continue;
    if (!out.empty()) out += ' ';
    out += name;
  }
  return out;
}

void print_text(std::string& out, const gpuwatch_info& info, const std::vector<gpuwatch_target>& targets,
                const std::string& driver) {
  const auto line = [&](std::string_view key, const std::string& value) {
    out += key;
    out.append(key.size() < 14 ? 14 - key.size() : 1, ' ');
    out += value + "\n";
  };
  line("module", base::escaped(text_of(info.release, sizeof info.release)) + " (ABI " + std::to_string(info.abi_major) +
                     "." + std::to_string(info.abi_minor) + ", schema " + std::to_string(info.schema) + ")");
  line("features", features_text(info.features));
  line("driver", driver.empty() ? "none loaded" : driver);
  line("attached", info.attached == 0 ? "no" : info.pinned != 0 ? "yes, by attach" : "yes, by a consumer");
  line("consumers", std::to_string(info.nr_consumers));
  line("in flight", std::to_string(info.in_flight) + " calls");
  line("capture plan", info.plan_generation == 0 ? "built-in" : "number " + std::to_string(info.plan_generation));
  line("missed", std::to_string(info.probe_missed) + " calls, " + std::to_string(info.stage_exhausted) + " captures");
  for (const gpuwatch_target& target : targets) {
    std::string value = base::escaped(text_of(target.module, sizeof target.module)) + " " +
                        std::string(op_name(target.op)) + ": " + std::string(method_name(target.method)) + ", " +
                        std::to_string(target.calls) + " calls, " + std::to_string(target.in_flight) + " in flight";
    if (target.error != 0) value += std::string(", error ") + std::strerror(-target.error);
    line("function", value);
  }
}

void print_json(std::string& out, const gpuwatch_info& info, const std::vector<gpuwatch_target>& targets,
                const std::string& driver) {
  nlohmann::json list = nlohmann::json::array();
  for (const gpuwatch_target& target : targets)
    list.push_back(
        {{"module", base::to_utf8(text_of(target.module, sizeof target.module))},
         {"op", op_name(target.op)},
         {"method", target.method == GPUWATCH_METHOD_NONE ? "none" : std::string(method_name(target.method))},
         {"errno", -target.error},
         {"calls", target.calls},
         {"in_flight", target.in_flight}});
  const nlohmann::json json = {{"release", base::to_utf8(text_of(info.release, sizeof info.release))},
                               {"abi_major", info.abi_major},
                               {"abi_minor", info.abi_minor},
                               {"schema", info.schema},
                               {"features", features_text(info.features)},
                               {"driver_version", driver},
                               {"attached", info.attached != 0},
                               {"pinned", info.pinned != 0},
                               {"consumers", info.nr_consumers},
                               {"in_flight", info.in_flight},
                               {"plan_generation", info.plan_generation},
                               {"probe_missed_total", info.probe_missed},
                               {"stage_exhausted_total", info.stage_exhausted},
                               {"functions", list}};
  out += json.dump() + "\n";
}

}  // namespace

Result<int> run_status(const Flags& flags) {
  auto device = source::KmodDevice::open();
  if (!device) return std::move(device.error());
  std::vector<gpuwatch_target> targets;
  // Needs more privilege than the rest; the state is worth printing without.
  if (auto listed = device->targets(); listed.ok())
    targets = std::move(*listed);
  else
    say(listed.error().message());
  Output output;
  const auto print = flags.has("json") ? print_json : print_text;
  print(output.buffer(), device->info_at_open(), targets, source::driver_version());
  if (Status status = output.flush(); !status.ok()) return std::move(status.error());
  return kExitOk;
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
