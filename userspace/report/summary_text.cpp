// SPDX-License-Identifier: Apache-2.0
// The page for people. Columns are as wide as their content needs; names that
// programs chose are escaped.
#include <algorithm>

#include "model/story.h"
#include "publish/format.h"
#include "publish/text.h"
#include "publish/words.h"
#include "report/summary_print.h"
#include "report/words.h"

namespace gpuwatch::report {

namespace {

namespace format = publish::format;

void append_title(std::string& out, const Group& group, GroupBy by) {
  const Identity& who = group.who;
  const auto word = [&out](std::string_view text) { publish::append_word(out, text); };
  const auto append_container = [&] {
    word(who.runtime);
    out += ' ';
    word(who.container_id.substr(0, 12));
    if (!who.container_name.empty()) {
      out += ' ';
      word(who.container_name);
    }
    if (!who.pod_name.empty()) {
      out += " pod ";
      if (!who.pod_namespace.empty()) {
        word(who.pod_namespace);
        out += '/';
      }
      word(who.pod_name);
    } else if (!who.pod_uid.empty()) {
      out += " pod ";
      word(who.pod_uid);
    }
  };
  if (by == GroupBy::kProcess) {
    word(who.comm);
    out += '/' + std::to_string(who.pid);
    if (!who.exe.empty()) {
      out += "  ";
      word(who.exe);
    }
    if (!who.container_id.empty()) {
      out += "  in ";
      append_container();
    }
  } else {
    if (!who.container_id.empty()) {
      append_container();
    } else if (who.slurm_job >= 0) {
      out += "Slurm job " + std::to_string(who.slurm_job);
    } else if (!who.unit.empty()) {
      out += "no container: ";
      word(who.unit);
    } else if (!who.cgroup_path.empty()) {
      out += "no container: ";
      word(who.cgroup_path);
    } else {
      out += "cgroup " + std::to_string(who.cgroup_id);
    }
    out += "  (" + plural(group.processes, "process", "processes") + ")";
  }
  out += '\n';
}

std::string gpu_name(const GpuAmount& gpu) {
  if (gpu.minor >= 0) return "GPU " + std::to_string(gpu.minor);
  return gpu.device >= 0 ? "device " + std::to_string(gpu.device) : "a GPU";
}

void append_memory(std::string& out, const Group& group) {
  std::string line;
  const auto add = [&line](const std::string& what, const Amount& amount) {
    if (amount.peak == 0 && amount.live == 0) return;
    line += (line.empty() ? "" : "; ") + what + " peak " + bytes_text(amount.peak) + ", now " + bytes_text(amount.live);
  };
  for (const GpuAmount& gpu : group.gpus) add(gpu_name(gpu), gpu.memory);
  add("host", group.host);
  add("pinned", group.pinned);
  if (!line.empty()) out += "  memory    " + line + "\n";
}

void append_objects(std::string& out, const Group& group) {
  if (group.contexts_made == 0 && group.channels_made == 0) return;
  out += "  objects   " + plural(group.contexts_made, "context", "contexts") + " made, " +
         grouped(group.contexts.live) + " now; " + plural(group.channels_made, "channel", "channels") + " made, " +
         grouped(group.channels.peak) + " at once, " + grouped(group.channels.live) + " now\n";
}

// What deserves a look: everything else is in the tables.
void append_marks(std::string& out, const Group& group) {
  using model::StoryKind;
  constexpr StoryKind kTold[] = {StoryKind::kSecurityFinding, StoryKind::kGpuFault,      StoryKind::kMemoryRefused,
                                 StoryKind::kOpenFailed,      StoryKind::kShareExported, StoryKind::kShareImported,
                                 StoryKind::kShareDuplicated, StoryKind::kPeerEnabled,   StoryKind::kMigUsed,
                                 StoryKind::kMpsUsed};
  std::string line;
  for (const StoryKind kind : kTold)
    if (const std::uint64_t count = group.events[static_cast<std::size_t>(kind)]; count > 0)
      line += (line.empty() ? "" : ", ") + std::string(model::story_kind_info(kind).name) + " " + grouped(count);
  if (!line.empty()) out += "  events    " + line + "\n";
}

void append_refusals(std::string& out, const Group& group) {
  std::size_t shown = 0;
  for (const NameRow& row : group.names) {
    if (row.denied == 0 || shown >= 8) continue;
    out += std::string(shown++ == 0 ? "  denied    " : "            ") + grouped(row.denied) + " x " + label_of(row);
    if (!row.last_status.empty()) {
      out += ": ";
      out += row.last_status;
    } else if (row.last_ret < 0) {
      out += ": ";
      format::append_errno(out, row.last_ret);
    }
    out += '\n';
  }
}

struct Line {
  std::string cells[8];
};

void append_table(std::string& out, const std::vector<Line>& lines) {
  std::size_t widths[8] = {};
  for (const Line& line : lines)
    for (std::size_t i = 0; i < 8; ++i) widths[i] = std::max(widths[i], line.cells[i].size());
  for (const Line& line : lines) {
    out += "  ";
    for (std::size_t i = 0; i < 7; ++i) {
      out.append(widths[i] - line.cells[i].size() + 2, ' ');
      out += line.cells[i];
    }
    out += "  " + line.cells[7] + "\n";
  }
}

void append_names(std::string& out, const Group& group, std::size_t limit) {
  std::vector<Line> lines;
  lines.push_back({{"CALLS", "PER S", "TIME", "SHARE", "MEDIAN", "P99", "FAILED", "CALL"}});
  const std::size_t shown = std::min(limit, group.names.size());
  std::uint64_t calls = group.unlisted, time_ns = 0;
  for (std::size_t i = 0; i < group.names.size(); ++i) {
    const NameRow& row = group.names[i];
    const Durations& times = row.durations;
    if (i >= shown) {
      calls += times.count();
      time_ns += times.total_ns();
      continue;
    }
    lines.push_back({{grouped(times.count()), rate(times.count(), group.span_ns), duration(times.total_ns()),
                      percent(times.total_ns(), group.driver_ns), duration(times.quantile_ns(0.5)),
                      duration(times.quantile_ns(0.99)), row.failed == 0 ? "" : grouped(row.failed), label_of(row)}});
  }
  append_table(out, lines);
  if (calls > 0)
    out += "    and " + plural(group.names.size() - shown, "name", "names") +
           " more: " + plural(calls, "call", "calls") + ", " + duration(time_ns) + "\n";
}

}  // namespace

std::string label_of(const NameRow& row) {
  std::string label(row.name);
  if (row.name.empty()) {
    label = row.node.empty() ? "?" : std::string(row.node);
    label += " ioctl ";
    format::append_hex(label, row.number);
    return label;
  }
  if (!row.detail.empty()) {
    label += ' ';
    label += row.detail;
  } else if (row.number != 0) {
    label += ' ';
    format::append_hex(label, row.number);
  } else if (label == "open" || label == "mmap" || label == "release") {
    label += ' ';
    label += row.node;
  }
  return label;
}

void append_summary_text(std::string& out, const SummaryResult& result, const Origin& origin,
                         const SummaryTextOptions& options) {
  out += seconds(result.to_ns - result.from_ns) + ": " + plural(result.calls, "call", "calls") + " of " +
         plural(result.processes, "process", "processes") + ", " + duration(result.driver_ns) + " in the driver";
  if (!origin.driver_version.empty()) {
    out += "; driver ";
    publish::append_word(out, origin.driver_version);
  }
  for (const Origin::Gpu& gpu : origin.gpus) {
    out += "; GPU " + std::to_string(gpu.minor) + " ";
    base::append_escaped(out, gpu.name);
  }
  out += '\n';
  if (result.from_ns != result.origin_ns && result.origin_ns != 0)
    out += "counted from " + seconds(result.from_ns - result.origin_ns) + " to " +
           seconds(result.to_ns - result.origin_ns) + " after the first call\n";
  std::size_t shown = 0;
  for (const Group& group : result.groups) {
    if (shown++ >= options.groups) break;
    out += '\n';
    append_title(out, group, result.by);
    out += "  calls     " + grouped(group.calls) + " in " + seconds(group.span_ns) + ", " +
           rate(group.calls, group.span_ns) + " per s; in the driver " + duration(group.driver_ns) + ", " +
           percent(group.driver_ns, group.span_ns) + " of the time; median " +
           duration(group.durations.quantile_ns(0.5)) + ", p99 " + duration(group.durations.quantile_ns(0.99)) + "; " +
           grouped(group.failed) + " failed, " + grouped(group.denied) + " denied\n";
    append_memory(out, group);
    append_objects(out, group);
    append_marks(out, group);
    append_refusals(out, group);
    if (group.calls > 0) append_names(out, group, options.names);
  }
  std::uint64_t groups = result.folded.groups, calls = result.folded.calls, driver_ns = result.folded.driver_ns;
  for (std::size_t i = options.groups; i < result.groups.size(); ++i) {
    ++groups;
    calls += result.groups[i].calls;
    driver_ns += result.groups[i].driver_ns;
  }
  if (groups > 0)
    out += "\nand " +
           plural(groups, result.by == GroupBy::kProcess ? "process" : "group",
                  result.by == GroupBy::kProcess ? "processes" : "groups") +
           " more: " + plural(calls, "call", "calls") + ", " + duration(driver_ns) + " in the driver\n";
}

}  // namespace gpuwatch::report
