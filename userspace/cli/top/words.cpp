// SPDX-License-Identifier: Apache-2.0
// The sentences of top: header, loss, help, what is known of a process; and
// which columns have room.
#include <algorithm>

#include "cli/top/cells.h"
#include "cli/top/ui.h"

namespace gpuwatch::cli::top {

using report::HeldProcess;
using report::HoldingsSnapshot;
using report::Identity;

namespace {

struct KeyHelp {
  const char* keys;
  const char* help;
};

constexpr KeyHelp kKeys[] = {
#define KEY(keys, help) {keys, help},
#include "cli/top/keys.def"
#undef KEY
};

std::string count(std::size_t number, const char* one, const char* many) {
  return std::to_string(number) + " " + (number == 1 ? one : many);
}

// Folded at blanks, what follows below indented.
void append_folded(std::vector<std::string>& out, const std::string& head, std::string_view text) {
  constexpr std::size_t kWidth = 78;
  constexpr std::size_t kIndent = 18;
  std::string line = head;
  line.append(head.size() < kIndent ? kIndent - head.size() : 1, ' ');
  bool fresh = true;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (!fresh && line.size() + 1 + word.size() > kWidth) {
      out.push_back(std::move(line));
      line.assign(kIndent, ' ');
      fresh = true;
    }
    if (!fresh) line += ' ';
    line += word;
    fresh = false;
  }
  out.push_back(std::move(line));
}

}  // namespace

std::string headline(const HoldingsSnapshot& snapshot, const Listing& listing, std::int32_t utc_offset_s) {
  std::string text = "gpuwatch top " + clock_text(snapshot.at_ns, snapshot.realtime_offset_ns, utc_offset_s) + "  ";
  text += count(listing.gpus, "GPU", "GPUs") + ", " + count(listing.containers, "container", "containers") + ", " +
          count(listing.processes, "process", "processes") + ", " + size_text(listing.memory) + "  from " +
          safe(snapshot.source.empty() ? "nowhere" : snapshot.source, true);
  if (!snapshot.driver_version.empty()) text += ", driver " + safe(snapshot.driver_version, true);
  return text;
}

const char* name_title(const ListOptions& options) {
  return options.tree ? "GPU / CONTAINER / PROCESS" : "PROCESS / GPU / CONTAINER";
}

std::size_t name_width(const ListOptions& options) {
  return options.tree ? 24 : 40;
}

std::string loss_text(const HoldingsSnapshot& snapshot) {
  const std::uint64_t lost = snapshot.lost_total();
  std::string text = "lost " + std::to_string(lost) + " of " + std::to_string(snapshot.records + lost) + " records";
  bool first = true;
  for (const auto& [reason, number] : snapshot.lost) {
    if (number == 0) continue;
    text += (first ? ": " : ", ") + safe(reason, true) + " " + std::to_string(number);
    first = false;
  }
  if (snapshot.overflow_processes != 0)
    text += "; " + count(snapshot.overflow_processes, "process", "processes") + " too many";
  return text;
}

std::vector<Column> columns_for(std::size_t width, std::size_t name_width, const Listing& listing) {
  std::vector<Column> by_priority;
  for (std::size_t i = 0; i < kColumns; ++i) by_priority.push_back(static_cast<Column>(i));
  // What nobody has takes no room.
  const auto empty = [&](Column column) {
    return std::all_of(listing.rows.begin(), listing.rows.end(),
                       [&](const Row& row) { return row.cells[static_cast<std::size_t>(column)].empty(); });
  };
  std::erase_if(by_priority, [&](Column column) {
    return (column == Column::kGpu || column == Column::kFindings || column == Column::kDenied) && empty(column);
  });
  std::sort(by_priority.begin(), by_priority.end(),
            [](Column a, Column b) { return column_info(a).priority < column_info(b).priority; });
  std::vector<Column> columns;
  std::size_t used = name_width;
  for (const Column column : by_priority) {
    if (used + column_info(column).width + 1 > width) break;
    used += column_info(column).width + 1;
    columns.push_back(column);
  }
  std::sort(columns.begin(), columns.end());
  return columns;
}

std::vector<std::string> details(const Row& row, const HoldingsSnapshot& snapshot, const ListOptions& options,
                                 std::int32_t utc_offset_s) {
  std::vector<std::string> out;
  const HeldProcess& process = *row.process;
  const Identity& who = process.who;
  const auto put = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    std::string line = key;
    line.append(line.size() < 14 ? 14 - line.size() : 1, ' ');
    out.push_back(line + safe(value, options.ascii));
  };
  put("process", (who.comm.empty() ? "?" : who.comm) + "/" + std::to_string(who.pid) +
                     (who.ns_pid != 0 && who.ns_pid != who.pid ? ", inside " + std::to_string(who.ns_pid) : ""));
  put("executable", who.exe);
  put("user", user_text(who.uid, options));
  put("container", container_text(who));
  put("container id", who.container_id);
  put("image", who.image);
  put("pod uid", who.pod_uid);
  put("unit", who.unit);
  put("cgroup", who.cgroup_path);
  put("GPU", gpu_text(*row.gpu) + (row.gpu->uuid.empty() ? "" : ", " + row.gpu->uuid) +
                 (row.gpu->pci.empty() ? "" : ", " + row.gpu->pci));
  put("since", clock_text(process.since_ns, snapshot.realtime_offset_ns, utc_offset_s) + ", " +
                   age_text(snapshot.at_ns - std::min(snapshot.at_ns, process.since_ns)) +
                   (process.partial ? "; it began before gpuwatch looked" : ""));
  put("last call", age_text(snapshot.at_ns - std::min(snapshot.at_ns, process.last_ns)) + " ago");
  put("card", process.ended_ns != 0 ? "holds nothing any more" : process.open ? "open" : "not open");
  put("contexts", std::to_string(process.contexts) + ", " + count(process.channels, "channel", "channels") +
                      "; submission is not execution");
  put("GPU memory", size_text(process.memory.live) + ", at most " + size_text(process.memory.peak));
  put("calls", std::to_string(process.calls) + ", " + rate_text(process.calls_per_second) + " a second");
  put("GPU time", process.gpu_percent ? std::to_string(*process.gpu_percent) + " %, by NVML" : "not told");
  std::string code = code_text(process.code);
  for (std::size_t i = model::kVerdicts; i-- > 0;)
    if (process.code.verdicts[i] != 0)
      code += ", " + std::string(model::verdict_name(static_cast<model::Verdict>(i))) + " " +
              std::to_string(process.code.verdicts[i]);
  if (process.code.unjudged != 0) code += ", without a verdict " + std::to_string(process.code.unjudged);
  put("code", code);
  put("findings", std::to_string(process.findings) + ", calls denied " + std::to_string(process.denied));
  return out;
}

std::vector<std::string> help_lines() {
  std::vector<std::string> out;
  out.emplace_back("gpuwatch top: who holds which GPU.");
  out.emplace_back("");
  for (const KeyHelp& key : kKeys) append_folded(out, std::string("  ") + key.keys, key.help);
  out.emplace_back("");
  append_folded(out, "  SINCE", "how long; with > it began before gpuwatch looked");
  append_folded(out, "  CTX CHAN",
                "contexts and channels; a channel says that work can be given, not that any runs: "
                "submission is not execution");
  append_folded(out, "  MEM PEAK", "GPU memory now and at most");
  append_folded(out, "  CODE", "the worst verdict on loaded code, and how many of the loads have it");
  append_folded(out, "  CALL/s", "driver calls a second, in the last 10 seconds");
  append_folded(out, "  GPU%", "share of the GPU's time, where NVML tells it; calls cannot");
  append_folded(out, "  FIND DENIED", "security findings and uses outside of the allocation; calls refused");
  append_folded(out, "  LAST", "since the process's last call");
  return out;
}

}  // namespace gpuwatch::cli::top
