// SPDX-License-Identifier: Apache-2.0
#include "cli/status_report.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "cli/commands.h"
#include "control/client.h"
#include "judge/baseline.h"
#include "pipeline/code_prints.h"
#include "source/host_info.h"
#include "source/kmod_device.h"

namespace gpuwatch::cli {

using base::Code;
using nlohmann::json;

namespace {

constexpr std::chrono::milliseconds kAnswerTimeout{2000};

void look_at_module(const StatusPlaces& places, StatusReport& report) {
  auto device = source::KmodDevice::open(places.device);
  if (!device) {
    report.module_error = device.error().message();
    return;
  }
  report.module = device->info_at_open();
  // These need more privilege; the rest is worth telling without.
  if (auto listed = device->targets(); listed.ok())
    report.functions = std::move(*listed);
  else
    report.functions_error = listed.error().message();
  if (auto images = device->image_status(); images.ok())
    report.images = *images;
  else
    report.images_error = images.error().message();
}

void look_at_daemon(const StatusPlaces& places, StatusReport& report) {
  control::Request request;
  request.verb = control::Verb::kStatus;
  auto answer = control::ask(request, places.socket, kAnswerTimeout);
  if (!answer) {
    const bool absent = answer.error().code() == Code::kNotFound;
    if (!absent || places.socket_asked) report.daemon_error = answer.error().message();
    if (absent) report.daemon_running = false;
    return;
  }
  report.daemon_running = true;
  if (json::parse(*answer, nullptr, false).is_object())
    report.daemon_status = std::move(*answer);
  else
    report.daemon_error = places.socket + ": its answer is no JSON object";
}

// Those asked for, else those of the environment, else the default one; and
// those that the daemon says it uses.
std::vector<std::string> baseline_paths(const StatusPlaces& places, const StatusReport& report) {
  std::vector<std::string> paths = places.baselines;
  if (paths.empty()) {
    const char* set = std::getenv("GPUWATCH_BASELINE");
    std::string_view left = set == nullptr ? std::string_view() : std::string_view(set);
    while (!left.empty()) {
      const std::string_view one = left.substr(0, left.find(':'));
      left.remove_prefix(std::min(one.size() + 1, left.size()));
      if (!one.empty()) paths.emplace_back(one);
    }
    struct stat info {};
    if (paths.empty() && ::stat(pipeline::kDefaultBaseline, &info) == 0) paths.emplace_back(pipeline::kDefaultBaseline);
  }
  const json daemon = json::parse(report.daemon_status, nullptr, false);
  if (daemon.is_object() && daemon.contains("baselines") && daemon["baselines"].is_array())
    for (const json& each : daemon["baselines"]) {
      if (!each.is_object() || !each.contains("path") || !each["path"].is_string()) continue;
      const auto& path = each["path"].get_ref<const std::string&>();
      if (paths.size() < 64 && std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
    }
  return paths;
}

BaselineState look_at_baseline(const std::string& path) {
  BaselineState state;
  state.path = path;
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) state.modified_unix = info.st_mtime;
  auto baseline = judge::Baseline::open(path, judge::Baseline::Access::kRead);
  if (!baseline) {
    state.error = baseline.error().message();
    return state;
  }
  state.label = baseline->info().label;
  state.deny = baseline->info().stance != judge::Stance::kKnown;
  state.created_unix = baseline->info().created_unix;
  auto counts = baseline->counts();
  auto signature = baseline->signature();
  if (!counts || !signature) {
    state.error = !counts ? counts.error().message() : signature.error().message();
    return state;
  }
  state.modules = counts->modules;
  state.kernels = counts->kernels;
  if (*signature) state.signed_by = (*signature)->public_key;
  return state;
}

void check_module(const StatusReport& report, std::vector<Attention>& out) {
  const gpuwatch_info& info = *report.module;
  if (info.schema > GPUWATCH_SCHEMA)
    out.push_back({"the module's record schema " + std::to_string(info.schema) + " is newer than this program's " +
                       std::to_string(GPUWATCH_SCHEMA),
                   "update the programs: what is new in records is not shown"});
  if (info.probe_missed != 0)
    out.push_back(
        {std::to_string(info.probe_missed) + " calls were not seen, as probes ran out",
         "since the module was loaded; see the kernel log, and reload it without kretprobe=1 where that is set"});
  if (info.stage_exhausted != 0)
    out.push_back({std::to_string(info.stage_exhausted) + " calls were recorded without what they point to",
                   "since the module was loaded; more threads call at once than it has room to copy for"});
  if (!report.driver_version.empty() && info.attached == 0 && (info.nr_consumers != 0 || info.pinned != 0))
    out.push_back({"somebody reads, and the driver is not hooked", "see the kernel log, then `gpuwatch attach`"});
  for (const gpuwatch_target& target : report.functions)
    if (target.error != 0) {
      const auto* name = static_cast<const char*>(target.module);
      out.push_back({"a function of " + std::string(name, ::strnlen(name, sizeof target.module)) +
                         " could not be hooked: " + std::strerror(-target.error),
                     "its calls are not seen; see the kernel log"});
    }
  if (!report.images) return;
  for (std::size_t i = 0; i < GPUWATCH_IMAGE_LOSS_MAX; ++i) {
    if (report.images->lost[i] == 0 || i == GPUWATCH_IMAGE_LOSS_MALFORMED || i == GPUWATCH_IMAGE_LOSS_KILLED) continue;
    const std::string_view name = image_loss_name(i);
    out.push_back({std::to_string(report.images->lost[i]) + " images of GPU code were lost: " +
                       (name.empty() ? "reason " + std::to_string(i) : std::string(name)),
                   i == GPUWATCH_IMAGE_LOSS_OVER_BUDGET || i == GPUWATCH_IMAGE_LOSS_TOO_BIG
                       ? "raise the module's parameters image_total_bytes and image_max_bytes"
                       : "their loads are told as unverified"});
  }
}

void check_daemon(const StatusReport& report, std::vector<Attention>& out) {
  if (!report.daemon_error.empty()) {
    out.push_back({report.daemon_error, report.daemon_running ? "" : "what the daemon does cannot be said"});
    return;
  }
  const json daemon = json::parse(report.daemon_status, nullptr, false);
  if (!daemon.is_object()) return;
  const auto count = [&](const json& of, const char* key) -> std::uint64_t {
    const auto at = of.find(key);
    return at != of.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
  };
  const auto text = [&](const json& of, const char* key) -> std::string {
    const auto at = of.find(key);
    return at != of.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  if (const std::uint64_t lost = count(daemon, "lost_total"); lost != 0)
    out.push_back({"the daemon lost " + std::to_string(lost) + " records since it started",
                   "raise ring_bytes or queue_bytes in its configuration; the reasons are above"});
  if (const auto at = daemon.find("last_reload_good"); at != daemon.end() && at->is_boolean() && !at->get<bool>())
    out.push_back({"the daemon refused its new configuration: " + text(daemon, "last_reload_error"),
                   "`gpuwatchd --check-config` names file and line; the former configuration is in use"});
  if (text(daemon, "last_end") == "killed")
    out.push_back({"the daemon before this one was killed", "see its journal; what it missed is counted"});
  for (const char* key : {"code_trouble"})
    if (const std::string trouble = text(daemon, key); !trouble.empty())
      out.push_back({"the daemon cannot judge code: " + trouble, "repair or replace that baseline"});
  if (const auto probe = daemon.find("probe"); probe != daemon.end() && probe->is_object()) {
    if (const std::uint64_t differ = count(*probe, "differ"); differ != 0)
      out.push_back({std::to_string(differ) + " functions in GPU memory are not what was loaded",
                     "see the events code.differs; gpuwatch probe --pid N asks again"});
    if (const std::string trouble = text(*probe, "trouble"); !trouble.empty())
      out.push_back({"the daemon asks no agents any more: " + trouble, "restart gpuwatchd"});
  }
  if (const auto sinks = daemon.find("sinks"); sinks != daemon.end() && sinks->is_array())
    for (const json& sink : *sinks) {
      if (!sink.is_object()) continue;
      const std::string name = text(sink, "name");
      const auto failing = sink.find("failing");
      if (failing != sink.end() && failing->is_boolean() && failing->get<bool>())
        out.push_back({"the daemon's output " + name + " fails: " + text(sink, "last_error"),
                       "others are not affected; what it cannot take is dropped and counted"});
      const std::uint64_t dropped =
          count(sink, "dropped_full_total") + count(sink, "dropped_failed_total") + count(sink, "dropped_closed_total");
      if (dropped != 0)
        out.push_back({"the daemon's output " + name + " dropped " + std::to_string(dropped) + " items",
                       "it is too slow or was away; sinks.queue_items says how many may wait"});
    }
}

}  // namespace

std::string_view image_loss_name(std::size_t reason) {
  static constexpr std::string_view kNames[] = {"fault",     "malformed", "too_big", "over_budget",
                                                "no_memory", "deadline",  "killed",  "expired"};
  return reason < std::size(kNames) ? kNames[reason] : std::string_view();
}

StatusReport look_at_status(const StatusPlaces& places) {
  StatusReport report;
  report.kernel_release = source::kernel_release();
  report.driver_version = source::driver_version();
  report.now_unix = static_cast<std::int64_t>(base::realtime_ns() / 1'000'000'000);
  look_at_module(places, report);
  look_at_daemon(places, report);
  for (const std::string& path : baseline_paths(places, report)) report.baselines.push_back(look_at_baseline(path));
  return report;
}

std::vector<Attention> attention_of(const StatusReport& report) {
  std::vector<Attention> out;
  if (!report.module)
    out.push_back({"the kernel module's state cannot be seen", "`gpuwatch doctor` says what is missing"});
  else
    check_module(report, out);
  check_daemon(report, out);
  for (const BaselineState& baseline : report.baselines)
    if (!baseline.error.empty())
      out.push_back({"a baseline cannot be read: " + baseline.error,
                     "loads are not compared with it; `gpuwatch baseline show` says more"});
  return out;
}

int exit_code_of(const StatusReport& report) {
  if (!report.module) return kExitTrouble;
  return attention_of(report).empty() ? kExitOk : kExitFinding;
}

}  // namespace gpuwatch::cli
