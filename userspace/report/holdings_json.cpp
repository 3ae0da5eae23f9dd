// SPDX-License-Identifier: Apache-2.0
// Holdings as one JSON line, and back. Keys are in gpuwatch-json(5), HOLDINGS;
// a test compares. What is read may come from anybody who can answer on a
// socket: types are checked, numbers bounded, lists and strings cut.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "publish/json.h"
#include "report/holdings.h"

namespace gpuwatch::report {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostGpus = 1024;
constexpr std::size_t kMostProcesses = 65536;
constexpr std::size_t kMostText = 4096;
constexpr std::size_t kMostBytes = 64 << 20;

void put_text(Json& json, const char* key, std::string_view text) {
  if (!text.empty()) json[key] = base::to_utf8(text);
}

void put_count(Json& json, const char* key, std::uint64_t count) {
  if (count != 0) json[key] = count;
}

Json code_json(const HeldCode& code) {
  Json json = {{"loads", code.loads}};
  put_count(json, "unjudged", code.unjudged);
  put_count(json, "jit_allowed", code.jit_allowed);
  Json verdicts = Json::object();
  for (std::size_t i = 0; i < model::kVerdicts; ++i)
    if (code.verdicts[i] != 0)
      verdicts[std::string(model::verdict_name(static_cast<model::Verdict>(i)))] = code.verdicts[i];
  if (!verdicts.empty()) json["verdicts"] = std::move(verdicts);
  if (const auto worst = code.worst()) json["worst"] = model::verdict_name(*worst);
  if (code.silent) json["unverified"] = true;
  json["finding"] = code.finding();
  return json;
}

Json process_json(const HeldProcess& process) {
  const Identity& who = process.who;
  Json json = {{"pid", who.pid}, {"process_start_ns", who.start_ns}, {"uid", who.uid}};
  if (who.ns_pid != 0) json["ns_pid"] = who.ns_pid;
  put_text(json, "comm", who.comm);
  put_text(json, "exe_path", who.exe);
  json["since_ns"] = process.since_ns;
  json["last_ns"] = process.last_ns;
  if (process.partial) json["partial"] = true;
  json["open"] = process.open;
  put_count(json, "ended_ns", process.ended_ns);
  json["contexts"] = process.contexts;
  json["channels"] = process.channels;
  json["live_bytes"] = process.memory.live;
  json["peak_bytes"] = process.memory.peak;
  json["code"] = code_json(process.code);
  json["calls"] = process.calls;
  json["calls_per_second"] = process.calls_per_second;
  put_count(json, "findings", process.findings);
  put_count(json, "denied_calls", process.denied);
  if (process.gpu_percent) json["gpu_percent"] = *process.gpu_percent;
  return json;
}

Json container_json(const HeldContainer& container) {
  Json json = Json::object();
  if (!container.processes.empty()) {
    const Identity& who = container.processes.front().who;
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
  Json processes = Json::array();
  for (const HeldProcess& process : container.processes) processes.push_back(process_json(process));
  json["processes"] = std::move(processes);
  return json;
}

// Reads one object; the first thing that is wrong is kept, with its key.
class Reader {
 public:
  explicit Reader(std::string& wrong) : wrong_(wrong) {}

  const Json* find(const Json& json, const char* key, bool (Json::*is)() const noexcept, const char* what) {
    const auto at = json.find(key);
    if (at == json.end()) return nullptr;
    if (((*at).*is)()) return &*at;
    fail(std::string(key) + ": no " + what);
    return nullptr;
  }

  std::uint64_t count(const Json& json, const char* key) {
    const Json* value = find(json, key, &Json::is_number_unsigned, "whole number of 0 or more");
    return value == nullptr ? 0 : value->get<std::uint64_t>();
  }

  std::int64_t number(const Json& json, const char* key, std::int64_t otherwise) {
    const Json* value = find(json, key, &Json::is_number_integer, "whole number");
    return value == nullptr ? otherwise : value->get<std::int64_t>();
  }

  std::uint32_t count32(const Json& json, const char* key) {
    const std::uint64_t value = count(json, key);
    if (value > 0xffffffffU) fail(std::string(key) + ": above 32 bits");
    return static_cast<std::uint32_t>(value);
  }

  std::int32_t minor(const Json& json, const char* key) {
    const std::int64_t value = number(json, key, -1);
    if (value < -1 || value > 0xfffff) fail(std::string(key) + ": no number of a GPU");
    return static_cast<std::int32_t>(value);
  }

  double real(const Json& json, const char* key) {
    const Json* value = find(json, key, &Json::is_number, "number");
    const double number = value == nullptr ? 0 : value->get<double>();
    return std::isfinite(number) && number >= 0 ? number : 0;
  }

  bool flag(const Json& json, const char* key) {
    const Json* value = find(json, key, &Json::is_boolean, "boolean");
    return value != nullptr && value->get<bool>();
  }

  std::string text(const Json& json, const char* key) {
    const Json* value = find(json, key, &Json::is_string, "string");
    return value == nullptr ? std::string() : value->get_ref<const std::string&>().substr(0, kMostText);
  }

  const Json* list(const Json& json, const char* key) { return find(json, key, &Json::is_array, "list"); }
  const Json* object(const Json& json, const char* key) { return find(json, key, &Json::is_object, "object"); }

  // Every element of a list must be an object.
  bool is_object(const Json& json, const char* of) {
    if (json.is_object()) return true;
    fail(std::string(of) + ": an element that is no object");
    return false;
  }

  bool ok() const { return wrong_.empty(); }

 private:
  void fail(std::string why) {
    if (wrong_.empty()) wrong_ = std::move(why);
  }

  std::string& wrong_;
};

HeldCode read_code(Reader& reader, const Json& json) {
  HeldCode code;
  code.loads = reader.count(json, "loads");
  code.unjudged = reader.count(json, "unjudged");
  code.jit_allowed = reader.count(json, "jit_allowed");
  code.silent = reader.flag(json, "unverified");
  if (const Json* verdicts = reader.object(json, "verdicts"))
    for (std::size_t i = 0; i < model::kVerdicts; ++i)
      code.verdicts[i] =
          reader.count(*verdicts, std::string(model::verdict_name(static_cast<model::Verdict>(i))).c_str());
  return code;
}

Identity read_container(Reader& reader, const Json& json) {
  Identity who;
  who.cgroup_id = reader.count(json, "cgroup_id");
  who.cgroup_path = reader.text(json, "cgroup_path");
  who.runtime = reader.text(json, "container_runtime");
  who.container_id = reader.text(json, "container_id");
  who.container_name = reader.text(json, "container_name");
  who.image = reader.text(json, "container_image");
  who.pod_uid = reader.text(json, "pod_uid");
  who.pod_name = reader.text(json, "pod_name");
  who.pod_namespace = reader.text(json, "pod_namespace");
  who.unit = reader.text(json, "unit");
  who.slurm_job = std::clamp<std::int64_t>(reader.number(json, "slurm_job", -1), -1, 0xffffffffLL);
  return who;
}

HeldProcess read_process(Reader& reader, const Json& json, const Identity& container) {
  HeldProcess process;
  Identity& who = process.who;
  who = container;
  who.pid = reader.count32(json, "pid");
  who.ns_pid = reader.count32(json, "ns_pid");
  who.uid = reader.count32(json, "uid");
  who.start_ns = reader.count(json, "process_start_ns");
  who.comm = reader.text(json, "comm");
  who.exe = reader.text(json, "exe_path");
  process.since_ns = reader.count(json, "since_ns");
  process.last_ns = reader.count(json, "last_ns");
  process.partial = reader.flag(json, "partial");
  process.open = reader.flag(json, "open");
  process.ended_ns = reader.count(json, "ended_ns");
  process.contexts = reader.count(json, "contexts");
  process.channels = reader.count(json, "channels");
  process.memory.live = reader.count(json, "live_bytes");
  process.memory.peak = reader.count(json, "peak_bytes");
  if (const Json* code = reader.object(json, "code")) process.code = read_code(reader, *code);
  process.calls = reader.count(json, "calls");
  process.calls_per_second = reader.real(json, "calls_per_second");
  process.findings = reader.count(json, "findings");
  process.denied = reader.count(json, "denied_calls");
  if (json.contains("gpu_percent")) process.gpu_percent = reader.count32(json, "gpu_percent");
  return process;
}

void read_gpu(Reader& reader, const Json& json, std::size_t& processes, HoldingsSnapshot& out) {
  HeldGpu gpu;
  gpu.minor = reader.minor(json, "gpu_minor");
  gpu.device = reader.minor(json, "gpu_device");
  gpu.pci = reader.text(json, "gpu_pci");
  gpu.uuid = reader.text(json, "gpu_uuid");
  gpu.name = reader.text(json, "gpu_name");
  if (const Json* containers = reader.list(json, "containers"))
    for (const Json& each : *containers) {
      if (!reader.is_object(each, "containers")) return;
      HeldContainer container;
      const Identity who = read_container(reader, each);
      container.key = container_key(who);
      if (const Json* list = reader.list(each, "processes"))
        for (const Json& process : *list) {
          if (!reader.is_object(process, "processes") || !reader.ok()) return;
          if (++processes <= kMostProcesses)
            container.processes.push_back(read_process(reader, process, who));
          else
            ++out.overflow_processes;
        }
      gpu.containers.push_back(std::move(container));
    }
  out.gpus.push_back(std::move(gpu));
}

}  // namespace

std::string holdings_json(const HoldingsSnapshot& snapshot) {
  Json json = {{"schema", publish::kJsonSchema}, {"type", "holdings"},
               {"time_ns", snapshot.at_ns},      {"realtime_offset_ns", snapshot.realtime_offset_ns},
               {"source", snapshot.source},      {"window_ns", snapshot.window_ns},
               {"records", snapshot.records},    {"lost_records", snapshot.lost_total()}};
  Json lost = Json::object();
  for (const auto& [reason, count] : snapshot.lost) lost[base::to_utf8(reason)] = count;
  json["lost_by_reason"] = std::move(lost);
  put_text(json, "driver_version", snapshot.driver_version);
  json["overflow_processes"] = snapshot.overflow_processes;
  json["overflow_gpus"] = snapshot.overflow_gpus;
  json["cut_strings"] = snapshot.cut_strings;
  Json gpus = Json::array();
  for (const HeldGpu& gpu : snapshot.gpus) {
    Json one = Json::object();
    if (gpu.minor >= 0) one["gpu_minor"] = gpu.minor;
    if (gpu.device >= 0) one["gpu_device"] = gpu.device;
    put_text(one, "gpu_pci", gpu.pci);
    put_text(one, "gpu_uuid", gpu.uuid);
    put_text(one, "gpu_name", gpu.name);
    Json containers = Json::array();
    for (const HeldContainer& container : gpu.containers) containers.push_back(container_json(container));
    one["containers"] = std::move(containers);
    gpus.push_back(std::move(one));
  }
  json["gpus"] = std::move(gpus);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<HoldingsSnapshot> holdings_from_json(std::string_view text) {
  if (text.size() > kMostBytes) return Error(Code::kBadInput, "holdings: longer than 64 MiB");
  // The parser calls itself for nothing, but what it makes is freed level by level.
  std::size_t depth = 0;
  const auto shallow = [&](int level, Json::parse_event_t, Json&) {
    depth = std::max(depth, static_cast<std::size_t>(level));
    return level <= 16;
  };
  const Json json = Json::parse(text, shallow, false);
  if (json.is_discarded() || !json.is_object()) return Error(Code::kBadInput, "holdings: no JSON object");
  if (depth > 16) return Error(Code::kBadInput, "holdings: nested too deep");
  HoldingsSnapshot out;
  std::string wrong;
  Reader reader(wrong);
  if (reader.text(json, "type") != "holdings") return Error(Code::kBadInput, "holdings: type is not holdings");
  if (const std::uint64_t schema = reader.count(json, "schema"); schema > publish::kJsonSchema)
    return Error(Code::kUnsupported, "holdings: schema " + std::to_string(schema) + ", this program reads " +
                                         std::to_string(publish::kJsonSchema) + "; update gpuwatch");
  out.at_ns = reader.count(json, "time_ns");
  out.realtime_offset_ns = reader.number(json, "realtime_offset_ns", 0);
  out.window_ns = reader.count(json, "window_ns");
  out.source = reader.text(json, "source");
  out.driver_version = reader.text(json, "driver_version");
  out.records = reader.count(json, "records");
  if (const Json* lost = reader.object(json, "lost_by_reason"))
    for (const auto& [reason, count] : lost->items()) {
      if (out.lost.size() >= 64) break;
      out.lost.emplace_back(reason.substr(0, 64), reader.count(*lost, reason.c_str()));
    }
  out.overflow_processes = reader.count(json, "overflow_processes");
  out.overflow_gpus = reader.count(json, "overflow_gpus");
  out.cut_strings = reader.count(json, "cut_strings");
  std::size_t processes = 0;
  if (const Json* gpus = reader.list(json, "gpus"))
    for (const Json& gpu : *gpus) {
      if (out.gpus.size() >= kMostGpus || !reader.is_object(gpu, "gpus")) break;
      read_gpu(reader, gpu, processes, out);
    }
  if (!reader.ok()) return Error(Code::kBadInput, "holdings: " + wrong);
  return out;
}

}  // namespace gpuwatch::report
