// SPDX-License-Identifier: Apache-2.0
#include "daemon/status.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/escape.h"
#include "base/io.h"
#include "daemon/version.h"
#include "publish/json.h"

namespace gpuwatch::daemon {

using Json = nlohmann::json;
using sink::Metric;

namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

std::uint64_t resident_bytes() {
  auto text = base::read_text_file("/proc/self/statm", 256);
  unsigned long long total = 0, resident = 0;
  if (!text || std::sscanf(text->c_str(), "%llu %llu", &total, &resident) != 2) return 0;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Json sinks_json(const Outputs& outputs) {
  Json list = Json::array();
  for (const Outputs::Named& named : outputs.all()) {
    const sink::QueueCounts counts = named.queue->counts();
    Json one = {{"name", named.queue->name()},
                {"items", counts.items},
                {"bytes", counts.bytes},
                {"limit_items", named.queue->limits().items},
                {"sent_total", counts.sent},
                {"dropped_full_total", counts.dropped_full},
                {"dropped_failed_total", counts.dropped_failed},
                {"dropped_closed_total", counts.dropped_closed},
                {"failures_total", counts.failures},
                {"failing", counts.failing}};
    if (!counts.last_error.empty()) one["last_error"] = base::to_utf8(counts.last_error);
    list.push_back(std::move(one));
  }
  return list;
}

Json probe_json(const ProbeCounts& counts) {
  Json json = {{"enabled", counts.enabled},       {"runs", Json::object()},
               {"with_agent", counts.with_agent}, {"without_agent", counts.without_agent},
               {"differ", counts.differ},         {"last_unix_ns", counts.last_unix_ns}};
  for (const auto& [result, count] : counts.runs) json["runs"][result] = count;
  if (!counts.trouble.empty()) json["trouble"] = base::to_utf8(counts.trouble);
  return json;
}

void probe_metrics(const ProbeCounts& counts, sink::Metrics& metrics) {
  metrics.set(Metric::kProbeRuns, 0, {"match"});
  metrics.set(Metric::kProbeRuns, 0, {"differ"});
  for (const auto& [result, count] : counts.runs) metrics.set(Metric::kProbeRuns, count, {result});
  metrics.set(Metric::kProbeProcesses, counts.with_agent, {"yes"});
  metrics.set(Metric::kProbeProcesses, counts.without_agent, {"no"});
  metrics.set(Metric::kProbeDifferent, counts.differ);
}

void gpu_metrics(const StatusFacts& facts, sink::Metrics& metrics) {
  for (const report::HeldGpu& gpu : facts.view->holdings.gpus) {
    const std::string minor = gpu.minor >= 0 ? std::to_string(gpu.minor) : "unknown";
    std::uint64_t processes = 0, contexts = 0, channels = 0, bytes = 0;
    for (const report::HeldContainer& container : gpu.containers)
      for (const report::HeldProcess& process : container.processes) {
        if (process.ended_ns != 0) continue;
        ++processes;
        contexts += process.contexts;
        channels += process.channels;
        bytes += process.memory.live;
      }
    metrics.set(Metric::kGpuInfo, 1, {minor, gpu.uuid, facts.host_name, gpu.name});
    metrics.set(Metric::kGpuProcesses, processes, {minor, gpu.uuid, facts.host_name});
    metrics.set(Metric::kGpuContexts, contexts, {minor, gpu.uuid, facts.host_name});
    metrics.set(Metric::kGpuChannels, channels, {minor, gpu.uuid, facts.host_name});
    metrics.set(Metric::kGpuMemory, bytes, {minor, gpu.uuid, facts.host_name});
  }
}

}  // namespace

std::string status_json(const StatusFacts& facts) {
  const EngineView& view = *facts.view;
  Json lost = Json::object(), unsent = Json::object(), suppressed = Json::object(), worst = Json::array();
  std::uint64_t lost_total = 0;
  for (const Unsent::Left& left : facts.unsent) unsent[base::to_utf8(left.sink)] = left.items;
  for (const LossTotal& loss : view.losses) {
    if (loss.total == 0) continue;
    lost[loss.reason] = loss.total;
    lost_total += loss.total;
  }
  for (const auto& [rule, count] : view.suppressed) suppressed[rule] = count + suppressed.value(rule, std::uint64_t{0});
  for (const auto& [cgroup, count] : facts.worst) worst.push_back({{"cgroup_id", cgroup}, {"dropped", count}});
  Json json = {
      {"version", kDaemonVersion},
      {"pid", ::getpid()},
      {"host_name", base::to_utf8(facts.host_name)},
      {"live", facts.live},
      {"started_unix_ns", facts.started_unix_ns},
      {"uptime_ns", base::realtime_ns() - facts.started_unix_ns},
      {"privileges", facts.how_run},
      {"config_files", facts.config_files},
      {"rules", facts.rules},
      {"reloads_total", facts.reloads},
      {"reloads_refused_total", facts.reloads_refused},
      {"last_reload_good", facts.last_reload_good},
      {"records_read_total", facts.records_read},
      {"records_total", view.records},
      {"events_total", view.events},
      {"alerts_total", view.alerts},
      {"alerts_suppressed", suppressed},
      {"loads_total", view.loads},
      {"findings_total", view.findings},
      {"forgotten_total", view.forgotten},
      {"lost_total", lost_total},
      {"lost", lost},
      {"queue",
       {{"items", facts.intake.items},
        {"bytes", facts.intake.bytes},
        {"limit_bytes", facts.intake_limit},
        {"dropped_flood_total", facts.intake.dropped_flood},
        {"dropped_full_total", facts.intake.dropped_full},
        {"worst", worst}}},
      {"sinks", sinks_json(*facts.outputs)},
      {"recorder", {{"bytes", facts.recorder_bytes}, {"limit_bytes", facts.recorder_limit}}},
      {"decode", {{"branch", view.branch}, {"inherited", view.inherited}, {"malformed_total", view.decoded.malformed}}},
      {"baselines", Json::array()},
      {"resumed", facts.resumed},
      {"calls_total", facts.calls},
      {"missed_total", facts.missed},
      {"last_end", facts.last_end},
      {"unsent", unsent},
      {"cpu_seconds", cpu_seconds()},
      {"resident_bytes", resident_bytes()}};
  for (const std::string& path : facts.baselines) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) continue;
    json["baselines"].push_back({{"path", base::to_utf8(path)},
                                 {"modified_unix_ns", static_cast<std::uint64_t>(info.st_mtime) * 1'000'000'000}});
  }
  if (facts.probe) json["probe"] = probe_json(*facts.probe);
  if (!facts.last_reload_error.empty()) json["last_reload_error"] = base::to_utf8(facts.last_reload_error);
  if (!view.code_gaps.empty()) json["code_gaps"] = base::to_utf8(view.code_gaps);
  if (!view.code_trouble.empty()) json["code_trouble"] = base::to_utf8(view.code_trouble);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

sink::Metrics metrics_of(const StatusFacts& facts) {
  sink::Metrics metrics;
  const EngineView& view = *facts.view;
  if (facts.tally != nullptr) facts.tally->fill(metrics);
  metrics.set(Metric::kBuildInfo, 1,
              {kDaemonVersion, std::to_string(GPUWATCH_ABI_MAJOR) + "." + std::to_string(GPUWATCH_ABI_MINOR),
               std::to_string(publish::kJsonSchema)});
  metrics.set(Metric::kStartTime, static_cast<double>(facts.started_unix_ns) / 1e9);
  metrics.set(Metric::kCpu, cpu_seconds());
  metrics.set(Metric::kResident, resident_bytes());
  if (facts.live) {
    metrics.set(Metric::kModuleLoaded, facts.module ? 1 : 0);
    metrics.set(Metric::kHooksAttached, facts.hooks);
    metrics.set(Metric::kCollectSuccess, facts.module ? 1 : 0, {"module"});
  }
  metrics.set(Metric::kRecords, facts.records_read);
  for (const auto& [rule, count] : view.suppressed) metrics.set(Metric::kAlertsSuppressed, count, {rule});
  metrics.set(Metric::kRules, facts.rules);
  gpu_metrics(facts, metrics);
  if (facts.probe) probe_metrics(*facts.probe, metrics);
  metrics.set(Metric::kQueueItems, facts.intake.items, {"records"});
  metrics.set(Metric::kQueueBytes, facts.intake.bytes, {"records"});
  for (const Outputs::Named& named : facts.outputs->all())
    metrics.add_queue(named.queue->name(), named.queue->counts(), named.queue->limits());
  double newest = 0;
  for (const std::string& path : facts.baselines) {
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0) newest = std::max(newest, static_cast<double>(info.st_mtime));
  }
  if (newest > 0) metrics.set(Metric::kBaselineTime, newest);
  metrics.set(Metric::kReloads, facts.reloads, {"success"});
  metrics.set(Metric::kReloads, facts.reloads_refused, {"refused"});
  metrics.set(Metric::kReloadSuccess, facts.last_reload_good ? 1 : 0);
  metrics.set(Metric::kScrapes, facts.scrapes);
  return metrics;
}

}  // namespace gpuwatch::daemon
