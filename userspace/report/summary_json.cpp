// SPDX-License-Identifier: Apache-2.0
// JSON lines of a summary. Every key has its entry in gpuwatch-json(5); a test
// compares both ways.
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "publish/json.h"
#include "report/summary_print.h"

namespace gpuwatch::report {

namespace {

using Json = nlohmann::ordered_json;

void put_text(Json& json, const char* key, std::string_view text) {
  if (!text.empty()) json[key] = base::to_utf8(text);
}

double per_second(std::uint64_t count, std::uint64_t span_ns) {
  return span_ns == 0 ? 0 : static_cast<double>(count) * 1e9 / static_cast<double>(span_ns);
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

Json row_json(const NameRow& row, std::uint64_t span_ns) {
  const Durations& times = row.durations;
  Json json = {{"call", label_of(row)},
               {"count", times.count()},
               {"per_second", per_second(times.count(), span_ns)},
               {"driver_ns", times.total_ns()},
               {"median_ns", times.quantile_ns(0.5)},
               {"p99_ns", times.quantile_ns(0.99)},
               {"max_ns", times.max_ns()},
               {"failed", row.failed},
               {"denied", row.denied}};
  put_text(json, "last_status_name", row.last_status);
  return json;
}

Json amount_json(const Amount& amount) {
  return {{"live_bytes", amount.live}, {"peak_bytes", amount.peak}};
}

void put_identity(Json& json, const Group& group, GroupBy by) {
  const Identity& who = group.who;
  if (by == GroupBy::kProcess) {
    json["pid"] = who.pid;
    json["process_start_ns"] = who.start_ns;
    if (who.ns_pid != 0) json["ns_pid"] = who.ns_pid;
    json["uid"] = who.uid;
    put_text(json, "comm", who.comm);
    put_text(json, "exe_path", who.exe);
  }
  if (who.cgroup_id != 0) json["cgroup_id"] = who.cgroup_id;
  put_text(json, "cgroup_path", who.cgroup_path);
  put_text(json, "container_runtime", who.runtime);
  put_text(json, "container_id", who.container_id);
  put_text(json, "container_name", who.container_name);
  put_text(json, "container_image", who.image);
  put_text(json, "pod_uid", who.pod_uid);
  put_text(json, "pod_name", who.pod_name);
  put_text(json, "pod_namespace", who.pod_namespace);
  put_text(json, "unit", who.unit);
  if (who.slurm_job >= 0) json["slurm_job"] = who.slurm_job;
}

Json group_json(const Group& group, GroupBy by) {
  Json json = {
      {"schema", publish::kJsonSchema}, {"type", "summary"}, {"by", by == GroupBy::kProcess ? "process" : "container"}};
  put_identity(json, group, by);
  json["processes"] = group.processes;
  if (group.calls > 0) {
    json["first_ns"] = group.first_ns;
    json["last_ns"] = group.last_ns;
  }
  json["span_ns"] = group.span_ns;
  json["calls"] = group.calls;
  json["calls_per_second"] = per_second(group.calls, group.span_ns);
  json["failed"] = group.failed;
  json["denied"] = group.denied;
  json["driver_ns"] = group.driver_ns;
  json["driver_share"] = share(group.driver_ns, group.span_ns);
  json["median_ns"] = group.durations.quantile_ns(0.5);
  json["p99_ns"] = group.durations.quantile_ns(0.99);
  json["max_ns"] = group.durations.max_ns();
  Json gpus = Json::array();
  for (const GpuAmount& gpu : group.gpus) {
    Json one = Json::object();
    if (gpu.minor >= 0) one["gpu_minor"] = gpu.minor;
    if (gpu.device >= 0) one["gpu_device"] = gpu.device;
    one.update(amount_json(gpu.memory));
    gpus.push_back(std::move(one));
  }
  json["gpu_memory"] = std::move(gpus);
  json["host_memory"] = amount_json(group.host);
  json["pinned_memory"] = amount_json(group.pinned);
  json["contexts_made"] = group.contexts_made;
  json["contexts_live"] = group.contexts.live;
  json["channels_made"] = group.channels_made;
  json["channels_live"] = group.channels.live;
  json["channels_peak"] = group.channels.peak;
  Json events = Json::object();
  for (std::size_t kind = 0; kind < group.events.size(); ++kind)
    if (group.events[kind] > 0)
      events[std::string(model::story_kind_info(static_cast<model::StoryKind>(kind)).name)] = group.events[kind];
  json["events"] = std::move(events);
  Json rows = Json::array();
  for (const NameRow& row : group.names) rows.push_back(row_json(row, group.span_ns));
  json["by_call"] = std::move(rows);
  if (group.unlisted > 0) json["unlisted_calls"] = group.unlisted;
  return json;
}

}  // namespace

void append_summary_json(std::string& out, const SummaryResult& result, const Origin& origin) {
  for (const Group& group : result.groups) out += group_json(group, result.by).dump() + "\n";
  Json json = {{"schema", publish::kJsonSchema},
               {"type", "summary_total"},
               {"by", result.by == GroupBy::kProcess ? "process" : "container"},
               {"processes", result.processes},
               {"records", result.records},
               {"lost_records", origin.lost},
               {"span_ns", result.to_ns - result.from_ns},
               {"calls", result.calls},
               {"calls_per_second", per_second(result.calls, result.to_ns - result.from_ns)},
               {"driver_ns", result.driver_ns},
               {"folded_groups", result.folded.groups},
               {"folded_calls", result.folded.calls}};
  put_text(json, "driver_version", origin.driver_version);
  put_text(json, "recorder", origin.recorder);
  Json gpus = Json::array();
  for (const Origin::Gpu& gpu : origin.gpus)
    gpus.push_back({{"gpu_minor", gpu.minor}, {"gpu_name", base::to_utf8(gpu.name)}});
  json["gpus"] = std::move(gpus);
  out += json.dump() + "\n";
}

}  // namespace gpuwatch::report
