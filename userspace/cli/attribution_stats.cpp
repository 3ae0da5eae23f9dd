// SPDX-License-Identifier: Apache-2.0
#include "cli/attribution_stats.h"

#include <nlohmann/json.hpp>

#include "publish/json.h"

namespace gpuwatch::cli {

namespace {

std::string share(std::uint64_t hits, std::uint64_t misses) {
  if (hits + misses == 0) return "none asked for";
  // Rounded down: 100 % means all of them.
  const std::uint64_t tenths = hits * 1000 / (hits + misses);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " % known at once";
}

}  // namespace

std::vector<std::pair<std::string_view, std::uint64_t>> list_of(const pipeline::AttributionStats& stats) {
  return {
      {"processes", stats.processes.known},
      {"process_hits_total", stats.processes.hits},
      {"process_misses_total", stats.processes.misses},
      {"process_evictions_total", stats.processes.evictions},
      {"process_definitions_total", stats.processes.definitions},
      {"proc_reads_total", stats.processes.proc_reads},
      {"proc_gone_total", stats.processes.proc_gone},
      {"proc_refused_total", stats.processes.proc_refused},
      {"cgroups", stats.cgroups.known},
      {"cgroup_hits_total", stats.cgroups.hits},
      {"cgroup_misses_total", stats.cgroups.misses},
      {"cgroup_evictions_total", stats.cgroups.evictions},
      {"gpus", stats.gpus.gpus},
      {"gpu_looks_total", stats.gpus.looks},
      {"nvml_calls_total", stats.gpus.nvml_calls},
      {"nvml_errors_total", stats.gpus.nvml_errors},
      {"nvml_timeouts_total", stats.gpus.nvml_timeouts},
      {"allocation_looks_total", stats.allocation.looks},
      {"allocation_unknown_total", stats.allocation.unknown},
      {"allocation_findings_total", stats.allocation.findings},
      {"allocation_refused_total", stats.allocation.refused},
      {"name_hits_total", stats.names.hits},
      {"name_misses_total", stats.names.misses},
      {"name_lookups_total", stats.names.lookups},
      {"names_found_total", stats.names.found},
      {"names_not_found_total", stats.names.not_found},
      {"name_errors_total", stats.names.failed},
      {"name_timeouts_total", stats.names.timed_out},
      {"name_refused_total", stats.names.queue_full},
      {"name_evictions_total", stats.names.evicted},
      {"name_wait_dropped_total", stats.held_dropped},
  };
}

void append_stats_json(std::string& out, const pipeline::AttributionStats& stats) {
  nlohmann::ordered_json json = {{"schema", publish::kJsonSchema}, {"type", "stats"}};
  for (const auto& [name, value] : list_of(stats)) json[std::string(name)] = value;
  out += json.dump() + "\n";
}

void append_stats_text(std::string& out, const pipeline::AttributionStats& stats, const model::GpuList& gpus) {
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  out += "processes: " + number(stats.processes.known) + " in the cache, " + number(stats.processes.evictions) +
         " evicted; " + share(stats.processes.hits, stats.processes.misses) + "; " +
         number(stats.processes.proc_reads) + " looked up in /proc, " + number(stats.processes.proc_gone) +
         " of them gone\n";
  out += "cgroups: " + number(stats.cgroups.known) + " in the cache, " + number(stats.cgroups.evictions) +
         " evicted; " + share(stats.cgroups.hits, stats.cgroups.misses) + "\n";
  out += "GPUs: " + number(stats.gpus.gpus) + " known; NVML: " + number(stats.gpus.nvml_calls) + " calls, " +
         number(stats.gpus.nvml_errors) + " failed, " + number(stats.gpus.nvml_timeouts) + " unanswered\n";
  out += "allocation: " + number(stats.allocation.looks) + " looks, " + number(stats.allocation.findings) +
         " uses outside, " + number(stats.allocation.unknown) + " not known, " + number(stats.allocation.refused) +
         " left out\n";
  out += "names: " + share(stats.names.hits, stats.names.misses) + "; " + number(stats.names.lookups) + " looked up, " +
         number(stats.names.found) + " found, " + number(stats.names.not_found) + " not known, " +
         number(stats.names.failed) + " errors, " + number(stats.names.timed_out) + " unanswered, " +
         number(stats.names.queue_full) + " left out, " + number(stats.names.evicted) + " evicted\n";
  for (const model::Gpu& gpu : gpus) {
    out += "gpu" + std::to_string(gpu.minor) + ": ";
    out += gpu.name.empty() ? "name not known" : gpu.name;
    if (!gpu.pci.empty()) out += ", " + gpu.pci;
    if (!gpu.uuid.empty()) out += ", " + gpu.uuid;
    if (!gpu.mig.empty()) out += ", " + std::to_string(gpu.mig.size()) + " MIG instances";
    out += "\n";
  }
}

}  // namespace gpuwatch::cli
