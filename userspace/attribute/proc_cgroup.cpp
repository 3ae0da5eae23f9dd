// SPDX-License-Identifier: Apache-2.0
#include "attribute/proc_cgroup.h"

#include "attribute/container_words.h"

namespace gpuwatch::attribute {

namespace {

bool has_controller(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (list.substr(0, comma) == name) return true;
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
  }
  return false;
}

int rank(const CgroupLine& line) {
  if (has_controller(line.controllers, "memory")) return 4;
  if (has_controller(line.controllers, "pids")) return 3;
  if (line.controllers.empty()) return 2;
  return line.controllers == "name=systemd" ? 1 : 0;
}

int knowledge(const CgroupFacts& facts) {
  if (facts.depth != 0) return 3;
  if (facts.slurm_job || !facts.slurm_sluid.empty() || !facts.pod_uid.empty() || !facts.ecs_task.empty()) return 2;
  return facts.unknown() ? 0 : 1;
}

}  // namespace

std::optional<CgroupLine> parse_cgroup_line(std::string_view line) {
  const std::size_t first = line.find(':');
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t second = line.find(':', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const auto hierarchy = words::number(line.substr(0, first));
  const std::string_view path = line.substr(second + 1);
  if (!hierarchy || !path.starts_with('/')) return std::nullopt;
  return CgroupLine{*hierarchy, line.substr(first + 1, second - first - 1), path};
}

std::optional<ProcCgroup> parse_proc_cgroup(std::string_view text) {
  std::optional<ProcCgroup> best;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const auto line = parse_cgroup_line(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (!line) continue;
    const CgroupFacts facts = parse_cgroup(line->path);
    const int better = best ? knowledge(facts) - knowledge(best->facts) : 1;
    if (better > 0 || (better == 0 && rank(*line) > rank(best->line))) best = ProcCgroup{*line, facts};
  }
  return best;
}

}  // namespace gpuwatch::attribute
