// SPDX-License-Identifier: Apache-2.0
// A StatusReport as lines and as JSON. What comes from the daemon is untrusted
// text: escaped here, passed on as a value in JSON.
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "cli/status_report.h"
#include "cli/version.h"
#include "report/words.h"

namespace gpuwatch::cli {

using nlohmann::json;

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

std::string age_words(std::int64_t seconds) {
  if (seconds < 0) return "in the future";
  if (seconds < 120) return std::to_string(seconds) + " seconds";
  if (seconds < 7200) return std::to_string(seconds / 60) + " minutes";
  if (seconds < 2 * 86400) return std::to_string(seconds / 3600) + " hours";
  return std::to_string(seconds / 86400) + " days";
}

std::string date_words(std::int64_t unix_s) {
  const std::time_t time = unix_s;
  std::tm parts{};
  char text[32] = "";
  if (unix_s == 0 || ::gmtime_r(&time, &parts) == nullptr) return "-";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string abi_text(std::uint32_t major, std::uint32_t minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

class Lines {
 public:
  void add(std::string_view key, std::string_view value) {
    out += key;
    out.append(key.size() < 14 ? 14 - key.size() : 1, ' ');
    base::append_escaped(out, value);
    out += "\n";
  }
  std::string out;
};

void add_module(Lines& lines, const StatusReport& report) {
  if (!report.module) {
    lines.add("module", "cannot be seen: " + report.module_error);
    return;
  }
  const gpuwatch_info& info = *report.module;
  lines.add("module", std::string(text_of(info.release, sizeof info.release)) + " (ABI " +
                          abi_text(info.abi_major, info.abi_minor) + ", schema " + std::to_string(info.schema) + ")");
  const bool newer = info.abi_minor > GPUWATCH_ABI_MINOR || info.schema > GPUWATCH_SCHEMA;
  const bool older = info.abi_minor < GPUWATCH_ABI_MINOR || info.schema < GPUWATCH_SCHEMA;
  lines.add("versions", newer   ? "the module is newer than this program; they fit"
                        : older ? "the module is older than this program; they fit"
                                : "module and program fit");
  lines.add("features", features_text(info.features));
  lines.add("attached", info.attached == 0 ? "no" : info.pinned != 0 ? "yes, by attach" : "yes, by a consumer");
  lines.add("consumers", std::to_string(info.nr_consumers) +
                             (info.nr_consumers == 0 ? "" : ", each with a ring per CPU") + "; " +
                             std::to_string(info.nr_cpus) + " CPUs");
  lines.add("in flight", std::to_string(info.in_flight) + " calls");
  lines.add("capture plan", info.plan_generation == 0 ? "built-in" : "number " + std::to_string(info.plan_generation));
  lines.add("missed",
            std::to_string(info.probe_missed) + " calls, " + std::to_string(info.stage_exhausted) + " captures");
  if (!report.functions_error.empty()) lines.add("functions", "cannot be seen: " + report.functions_error);
  for (const gpuwatch_target& target : report.functions) {
    std::string value = std::string(text_of(target.module, sizeof target.module)) + " " +
                        std::string(op_name(target.op)) + ": " + std::string(method_name(target.method)) + ", " +
                        std::to_string(target.calls) + " calls, " + std::to_string(target.in_flight) + " in flight";
    if (target.error != 0) value += std::string(", error ") + std::strerror(-target.error);
    lines.add("function", value);
  }
  if (!report.images) {
    lines.add("images", "cannot be seen: " + report.images_error);
    return;
  }
  const gpuwatch_image_status& images = *report.images;
  std::string lost;
  for (std::size_t i = 0; i < GPUWATCH_IMAGE_LOSS_MAX; ++i) {
    if (images.lost[i] == 0) continue;
    const std::string_view name = image_loss_name(i);
    lost += (lost.empty() ? "" : ", ") + (name.empty() ? "reason " + std::to_string(i) : std::string(name)) + " " +
            std::to_string(images.lost[i]);
  }
  lines.add("images", std::to_string(images.stored) + " stored from " + std::to_string(images.nr_probes) +
                          " probes; budget " + report::bytes_text(images.used_bytes) + " of " +
                          report::bytes_text(images.total_max_bytes) + ", one at most " +
                          report::bytes_text(images.image_max_bytes) + "; lost " + (lost.empty() ? "none" : lost));
}

// What of the daemon's own words is for a person; all of it is in the JSON.
void add_daemon(Lines& lines, const StatusReport& report) {
  if (report.daemon_status.empty()) {
    lines.add("daemon", !report.daemon_error.empty() ? "cannot be asked: " + report.daemon_error : "does not run");
    return;
  }
  const json daemon = json::parse(report.daemon_status, nullptr, false);
  const auto number = [&](const json& of, const char* key) {
    const auto at = of.find(key);
    return at != of.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : std::uint64_t{0};
  };
  const auto text = [&](const json& of, const char* key) {
    const auto at = of.find(key);
    return at != of.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  std::string value = "gpuwatchd " + text(daemon, "version") + ", pid " + std::to_string(number(daemon, "pid"));
  if (const std::uint64_t since = number(daemon, "started_unix_ns"); since != 0) {
    const auto seconds = static_cast<std::int64_t>(since / 1'000'000'000);
    value += ", since " + date_words(seconds) + " (" + age_words(report.now_unix - seconds) + ")";
  }
  lines.add("daemon", value);
  if (const auto files = daemon.find("config_files"); files != daemon.end() && files->is_array()) {
    std::string names;
    for (const json& file : *files)
      if (file.is_string()) names += (names.empty() ? "" : ", ") + file.get<std::string>();
    lines.add("  config", (names.empty() ? "built-in" : names) + "; " + std::to_string(number(daemon, "rules")) +
                              " rules, " + std::to_string(number(daemon, "reloads_total")) + " reloads");
  }
  lines.add("  records", std::to_string(number(daemon, "records_total")) + ", " +
                             std::to_string(number(daemon, "events_total")) + " events, " +
                             std::to_string(number(daemon, "alerts_total")) + " alerts");
  std::string lost = std::to_string(number(daemon, "lost_total"));
  if (const auto reasons = daemon.find("lost"); reasons != daemon.end() && reasons->is_object())
    for (const auto& [reason, count] : reasons->items())
      if (count.is_number_unsigned()) lost += ", " + reason + " " + std::to_string(count.get<std::uint64_t>());
  lines.add("  lost", lost);
  if (const auto queue = daemon.find("queue"); queue != daemon.end() && queue->is_object())
    lines.add("  queue", std::to_string(number(*queue, "items")) + " records, " +
                             report::bytes_text(number(*queue, "bytes")) + " of " +
                             report::bytes_text(number(*queue, "limit_bytes")));
  if (const auto probe = daemon.find("probe"); probe != daemon.end() && probe->is_object()) {
    std::string runs;
    if (const auto results = probe->find("runs"); results != probe->end() && results->is_object())
      for (const auto& [result, count] : results->items())
        if (count.is_number_unsigned())
          runs += (runs.empty() ? "" : ", ") + result + " " + std::to_string(count.get<std::uint64_t>());
    lines.add("  probe", std::to_string(number(*probe, "with_agent")) + " processes with an agent, " +
                             std::to_string(number(*probe, "without_agent")) +
                             " without; asked: " + (runs.empty() ? "not yet" : runs) + "; " +
                             std::to_string(number(*probe, "differ")) + " functions differ");
  }
  if (const auto sinks = daemon.find("sinks"); sinks != daemon.end() && sinks->is_array())
    for (const json& sink : *sinks) {
      if (!sink.is_object()) continue;
      const std::uint64_t dropped = number(sink, "dropped_full_total") + number(sink, "dropped_failed_total") +
                                    number(sink, "dropped_closed_total");
      std::string line = text(sink, "name") + ": " + std::to_string(number(sink, "sent_total")) + " sent, " +
                         std::to_string(number(sink, "items")) + " wait, " + std::to_string(dropped) + " dropped";
      if (const std::string error = text(sink, "last_error"); !error.empty()) line += ", last error: " + error;
      lines.add("  output", line);
    }
}

void add_baselines(Lines& lines, const StatusReport& report) {
  if (report.baselines.empty()) lines.add("baseline", "none");
  for (const BaselineState& baseline : report.baselines) {
    if (!baseline.error.empty()) {
      lines.add("baseline", "cannot be read: " + baseline.error);
      continue;
    }
    std::string value = baseline.path;
    if (!baseline.label.empty()) value += " \"" + baseline.label + "\"";
    value += std::string(baseline.deny ? ", a deny list" : "") + ", changed " + date_words(baseline.modified_unix) +
             " (" + age_words(report.now_unix - baseline.modified_unix) + "), " + std::to_string(baseline.modules) +
             " modules, " + std::to_string(baseline.kernels) + " kernels, " +
             (baseline.signed_by.empty() ? "not signed"
                                         : "signed by " + baseline.signed_by.substr(0, 16) + ", not verified");
    lines.add("baseline", value);
  }
}

json module_json(const StatusReport& report) {
  const gpuwatch_info& info = *report.module;
  json list = json::array();
  for (const gpuwatch_target& target : report.functions)
    list.push_back(
        {{"module", base::to_utf8(text_of(target.module, sizeof target.module))},
         {"op", op_name(target.op)},
         {"method", target.method == GPUWATCH_METHOD_NONE ? "none" : std::string(method_name(target.method))},
         {"errno", -target.error},
         {"calls", target.calls},
         {"in_flight", target.in_flight}});
  return {{"release", base::to_utf8(text_of(info.release, sizeof info.release))},
          {"abi_major", info.abi_major},
          {"abi_minor", info.abi_minor},
          {"schema", info.schema},
          {"features", features_text(info.features)},
          {"attached", info.attached != 0},
          {"pinned", info.pinned != 0},
          {"consumers", info.nr_consumers},
          {"cpus", info.nr_cpus},
          {"in_flight", info.in_flight},
          {"plan_generation", info.plan_generation},
          {"probe_missed_total", info.probe_missed},
          {"stage_exhausted_total", info.stage_exhausted},
          {"functions", list}};
}

json images_json(const gpuwatch_image_status& images) {
  json lost = json::object();
  for (std::size_t i = 0; i < GPUWATCH_IMAGE_LOSS_MAX; ++i) {
    const std::string_view name = image_loss_name(i);
    if (!name.empty())
      lost[std::string(name)] = images.lost[i];
    else if (images.lost[i] != 0)
      lost["reason_" + std::to_string(i)] = images.lost[i];
  }
  return {{"probes", images.nr_probes},
          {"stored", images.nr_stored},
          {"used_bytes", images.used_bytes},
          {"budget_bytes", images.total_max_bytes},
          {"image_max_bytes", images.image_max_bytes},
          {"hits_total", images.hits},
          {"stored_total", images.stored},
          {"stored_bytes_total", images.stored_bytes},
          {"lost", lost}};
}

}  // namespace

std::string status_text(const StatusReport& report) {
  Lines lines;
  lines.add("program", std::string("gpuwatch ") + kVersion + " (ABI " +
                           abi_text(GPUWATCH_ABI_MAJOR, GPUWATCH_ABI_MINOR) + ", schema " +
                           std::to_string(GPUWATCH_SCHEMA) + ")");
  lines.add("kernel", report.kernel_release);
  add_module(lines, report);
  lines.add("driver", report.driver_version.empty() ? "none loaded" : report.driver_version);
  add_daemon(lines, report);
  add_baselines(lines, report);
  for (const Attention& attention : attention_of(report))
    lines.add("attention", attention.what + (attention.remedy.empty() ? "" : ": " + attention.remedy));
  return std::move(lines.out);
}

std::string status_json(const StatusReport& report) {
  json out = report.module ? module_json(report) : json::object();
  out["type"] = "status";
  out["program_version"] = kVersion;
  out["program_abi"] = abi_text(GPUWATCH_ABI_MAJOR, GPUWATCH_ABI_MINOR);
  out["program_schema"] = GPUWATCH_SCHEMA;
  out["kernel_release"] = base::to_utf8(report.kernel_release);
  out["driver_version"] = base::to_utf8(report.driver_version);
  out["module_seen"] = report.module.has_value();
  if (!report.module)
    out["module_error"] = base::to_utf8(report.module_error);
  else
    out["abi_match"] = report.module->abi_major == GPUWATCH_ABI_MAJOR && report.module->schema <= GPUWATCH_SCHEMA;
  if (!report.functions_error.empty()) out["functions_error"] = base::to_utf8(report.functions_error);
  if (report.images)
    out["images"] = images_json(*report.images);
  else if (!report.images_error.empty())
    out["images_error"] = base::to_utf8(report.images_error);
  if (report.daemon_running) out["daemon_running"] = *report.daemon_running;
  if (!report.daemon_error.empty()) out["daemon_error"] = base::to_utf8(report.daemon_error);
  if (const json daemon = json::parse(report.daemon_status, nullptr, false); daemon.is_object()) out["daemon"] = daemon;
  out["baselines"] = json::array();
  for (const BaselineState& baseline : report.baselines) {
    json one = {{"path", base::to_utf8(baseline.path)}, {"modified_unix", baseline.modified_unix}};
    if (!baseline.error.empty()) {
      one["error"] = base::to_utf8(baseline.error);
    } else {
      one["label"] = base::to_utf8(baseline.label);
      one["stance"] = baseline.deny ? "denied" : "known";
      one["created_unix"] = baseline.created_unix;
      one["age_s"] = report.now_unix - baseline.modified_unix;
      one["modules"] = baseline.modules;
      one["kernels"] = baseline.kernels;
      if (!baseline.signed_by.empty()) one["signed_by"] = base::to_utf8(baseline.signed_by);
    }
    out["baselines"].push_back(std::move(one));
  }
  out["attention"] = json::array();
  for (const Attention& attention : attention_of(report))
    out["attention"].push_back({{"what", base::to_utf8(attention.what)}, {"remedy", base::to_utf8(attention.remedy)}});
  out["exit_code"] = exit_code_of(report);
  return out.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace gpuwatch::cli
