// SPDX-License-Identifier: Apache-2.0
#include "cli/top/rows.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <tuple>
#include <utility>

#include "cli/top/cells.h"

namespace gpuwatch::cli::top {

using report::HeldCode;
using report::HeldContainer;
using report::HeldGpu;
using report::HeldProcess;
using report::HoldingsSnapshot;
using report::Identity;

namespace {

constexpr ColumnInfo kInfo[kColumns] = {
    {"SINCE", "since", 8, true, 1},    {"CTX", "contexts", 3, true, 4}, {"CHAN", "channels", 5, true, 5},
    {"MEM", "memory", 6, true, 0},     {"PEAK", "peak", 6, true, 7},    {"CODE", "verdict", 18, false, 2},
    {"CALL/s", "calls", 6, true, 3},   {"GPU%", "gpu", 4, true, 6},     {"FIND", "findings", 4, true, 8},
    {"DENIED", "denied", 6, true, 11}, {"LAST", "last", 6, true, 10},   {"USER", "user", 10, false, 9},
};

std::size_t at(Column column) {
  return static_cast<std::size_t>(column);
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string base_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string process_text(const HeldProcess& process, bool path) {
  const Identity& who = process.who;
  const std::string& comm = who.comm.empty() ? who.exe : who.comm;
  std::string name = path && !who.exe.empty() ? who.exe : who.comm.empty() ? base_name(who.exe) : comm;
  if (name.empty()) name = "?";
  return name + "/" + std::to_string(who.pid);
}

// Sums over what is shown below a row.
struct Sum {
  std::uint64_t since_ns = ~std::uint64_t{0};
  std::uint64_t last_ns = 0;
  bool partial = false;
  bool ended = true;
  std::uint64_t contexts = 0, channels = 0, memory = 0, findings = 0, denied = 0;
  double calls = 0;
  std::optional<std::uint32_t> gpu;
  HeldCode code;
  std::uint32_t uid = 0;
  bool one_user = true;
  std::size_t processes = 0;

  void add(const HeldProcess& process) {
    since_ns = std::min(since_ns, process.since_ns);
    last_ns = std::max(last_ns, process.last_ns);
    partial = partial || process.partial;
    ended = ended && process.ended_ns != 0;
    contexts += process.contexts;
    channels += process.channels;
    memory += process.memory.live;
    findings += process.findings;
    denied += process.denied;
    calls += process.calls_per_second;
    if (process.gpu_percent) gpu = gpu.value_or(0) + *process.gpu_percent;
    code.loads += process.code.loads;
    code.unjudged += process.code.unjudged;
    code.jit_allowed += process.code.jit_allowed;
    code.silent = code.silent || process.code.silent;
    for (std::size_t i = 0; i < code.verdicts.size(); ++i) code.verdicts[i] += process.code.verdicts[i];
    one_user = one_user && (processes == 0 || uid == process.who.uid);
    uid = process.who.uid;
    ++processes;
  }
};

struct Group {
  const HeldContainer* container = nullptr;
  std::vector<const HeldProcess*> processes;
  Sum sum;
};

class Lister {
 public:
  Lister(const HoldingsSnapshot& snapshot, const ListOptions& options)
      : snapshot_(snapshot), options_(options), wanted_(lower(options.filter)) {}

  Listing run() {
    std::set<std::pair<std::uint64_t, std::uint32_t>> processes;
    std::set<std::string> containers;
    std::vector<std::pair<const HeldGpu*, const HeldProcess*>> flat;
    for (const HeldGpu& gpu : snapshot_.gpus) {
      std::vector<Group> groups;
      Sum sum;
      for (const HeldContainer& container : gpu.containers) {
        Group group;
        group.container = &container;
        for (const HeldProcess& process : container.processes) {
          if (!shown(gpu, process)) {
            ++out_.hidden;
            continue;
          }
          group.processes.push_back(&process);
          group.sum.add(process);
          sum.add(process);
          if (process.ended_ns == 0) processes.emplace(process.who.start_ns, process.who.pid);
          flat.emplace_back(&gpu, &process);
        }
        if (group.processes.empty()) continue;
        const Identity& who = group.processes.front()->who;
        if (!who.container_id.empty() || !who.pod_uid.empty()) containers.insert(container.key);
        groups.push_back(std::move(group));
      }
      if (groups.empty()) continue;
      ++out_.gpus;
      out_.memory += sum.memory;
      if (options_.tree) add_gpu(gpu, groups, sum);
    }
    if (!options_.tree) add_flat(flat);
    out_.containers = containers.size();
    out_.processes = processes.size();
    return std::move(out_);
  }

 private:
  bool shown(const HeldGpu& gpu, const HeldProcess& process) const {
    if (options_.user && process.who.uid != *options_.user) return false;
    if (options_.hide_open && process.contexts == 0 && process.channels == 0 && process.memory.live == 0) return false;
    if (wanted_.empty()) return true;
    const Identity& who = process.who;
    const std::string gpu_words = gpu_text(gpu) + "\n" + gpu.uuid + "\n" + gpu.pci;
    std::string words = gpu_words + "\n" + process_text(process, false) + "\n" + container_text(who);
    for (const std::string* text : {&who.exe, &who.container_id, &who.image, &who.pod_uid, &who.cgroup_path})
      words += "\n" + *text;
    words += "\n" + user_text(who.uid, options_) + "\n" + code_text(process.code);
    return lower(std::move(words)).find(wanted_) != std::string::npos;
  }

  // True where a comes first; most first, but for names and ages.
  template <typename T>
  bool before(const T& a, const T& b) const {
    return options_.turned ? a < b : b < a;
  }

  bool comes_first(const Sum& a, const Sum& b) const {
    const auto gpu = [](const Sum& sum) { return sum.gpu ? static_cast<int>(*sum.gpu) : -1; };
    const auto verdict = [](const Sum& sum) {
      const auto worst = sum.code.worst();
      return std::make_tuple(sum.code.finding(), worst ? static_cast<int>(*worst) : -1, sum.code.loads);
    };
    switch (options_.sort) {
      case Column::kSince:
        return before(b.since_ns, a.since_ns);
      case Column::kContexts:
        return before(a.contexts, b.contexts);
      case Column::kChannels:
        return before(a.channels, b.channels);
      case Column::kCode:
        return before(verdict(a), verdict(b));
      case Column::kCalls:
        return before(a.calls, b.calls);
      case Column::kGpu:
        return before(gpu(a), gpu(b));
      case Column::kFindings:
        return before(a.findings, b.findings);
      case Column::kDenied:
        return before(a.denied, b.denied);
      case Column::kLast:
        return before(a.last_ns, b.last_ns);
      case Column::kUser:
        return before(b.uid, a.uid);
      default:
        return before(a.memory, b.memory);
    }
  }

  bool comes_first(const HeldProcess* a, const HeldProcess* b) const {
    if (options_.sort == Column::kPeak) return before(a->memory.peak, b->memory.peak);
    Sum first, second;
    first.add(*a);
    second.add(*b);
    return comes_first(first, second);
  }

  const char* branch(bool last) const {
    if (options_.ascii) return last ? "`- " : "|- ";
    return last ? "\xe2\x94\x94\xe2\x94\x80 " : "\xe2\x94\x9c\xe2\x94\x80 ";
  }
  const char* trunk(bool last) const { return last ? "   " : options_.ascii ? "|  " : "\xe2\x94\x82  "; }

  void fill(Row& row, const Sum& sum, bool one) const {
    const auto put = [&](Column column, std::string text) { row.cells[at(column)] = std::move(text); };
    const std::uint64_t now = snapshot_.at_ns;
    const auto age = [&](std::uint64_t then) { return age_text(now - std::min(now, then)); };
    put(Column::kSince, (sum.partial ? ">" : "") + age(sum.since_ns));
    put(Column::kContexts, std::to_string(sum.contexts));
    put(Column::kChannels, std::to_string(sum.channels));
    put(Column::kMemory, size_text(sum.memory));
    if (one || sum.code.loads != 0 || sum.code.silent) put(Column::kCode, code_text(sum.code));
    put(Column::kCalls, rate_text(sum.calls));
    if (sum.gpu) put(Column::kGpu, std::to_string(*sum.gpu));
    put(Column::kFindings, sum.findings == 0 ? "" : std::to_string(sum.findings));
    put(Column::kDenied, sum.denied == 0 ? "" : std::to_string(sum.denied));
    put(Column::kLast, age(sum.last_ns));
    if (one || sum.one_user) put(Column::kUser, safe(user_text(sum.uid, options_), options_.ascii));
    row.tone = sum.ended ? Tone::kGone : Tone::kPlain;
    row.code = sum.ended ? Tone::kGone : code_tone(sum.code);
  }

  Row process_row(const HeldGpu& gpu, const HeldProcess& process) const {
    Row row;
    row.kind = Row::Kind::kProcess;
    row.key = "p " + std::to_string(gpu.minor) + " " + std::to_string(gpu.device) + " " +
              std::to_string(process.who.start_ns) + " " + std::to_string(process.who.pid);
    row.name = safe(process_text(process, options_.path), options_.ascii);
    row.process = &process;
    row.gpu = &gpu;
    Sum sum;
    sum.add(process);
    fill(row, sum, true);
    row.cells[at(Column::kPeak)] = size_text(process.memory.peak);
    if (process.ended_ns != 0) row.cells[at(Column::kSince)] = "ended";
    return row;
  }

  void add_gpu(const HeldGpu& gpu, std::vector<Group>& groups, const Sum& sum) {
    Row row;
    row.kind = Row::Kind::kGpu;
    row.key = "g " + std::to_string(gpu.minor) + " " + std::to_string(gpu.device);
    row.name = safe(gpu_text(gpu), options_.ascii);
    row.foldable = true;
    row.folded = options_.folded.contains(row.key);
    row.gpu = &gpu;
    fill(row, sum, false);
    const bool folded = row.folded;
    out_.rows.push_back(std::move(row));
    if (folded) return;
    std::stable_sort(groups.begin(), groups.end(),
                     [&](const Group& a, const Group& b) { return comes_first(a.sum, b.sum); });
    for (Group& group : groups) add_container(gpu, group, &group == &groups.back());
  }

  void add_container(const HeldGpu& gpu, Group& group, bool last) {
    Row row;
    row.kind = Row::Kind::kContainer;
    row.key = "c " + std::to_string(gpu.minor) + " " + std::to_string(gpu.device) + " " + group.container->key;
    row.prefix = branch(last);
    row.name = safe(container_text(group.processes.front()->who), options_.ascii);
    row.foldable = true;
    row.folded = options_.folded.contains(row.key);
    row.gpu = &gpu;
    fill(row, group.sum, false);
    const bool folded = row.folded;
    out_.rows.push_back(std::move(row));
    if (folded) return;
    std::stable_sort(group.processes.begin(), group.processes.end(),
                     [&](const HeldProcess* a, const HeldProcess* b) { return comes_first(a, b); });
    for (const HeldProcess* process : group.processes) {
      Row each = process_row(gpu, *process);
      each.prefix = std::string(trunk(last)) + branch(process == group.processes.back());
      out_.rows.push_back(std::move(each));
    }
  }

  void add_flat(std::vector<std::pair<const HeldGpu*, const HeldProcess*>>& flat) {
    std::stable_sort(flat.begin(), flat.end(),
                     [&](const auto& a, const auto& b) { return comes_first(a.second, b.second); });
    for (const auto& [gpu, process] : flat) {
      Row row = process_row(*gpu, *process);
      const std::string card = gpu->minor >= 0 ? "gpu" + std::to_string(gpu->minor) : gpu_text(*gpu);
      row.name += safe(" " + card + " " + container_text(process->who), options_.ascii);
      out_.rows.push_back(std::move(row));
    }
  }

  const HoldingsSnapshot& snapshot_;
  const ListOptions& options_;
  const std::string wanted_;
  Listing out_;
};

}  // namespace

const ColumnInfo& column_info(Column column) {
  return kInfo[at(column)];
}

std::optional<Column> column_named(std::string_view flag) {
  for (std::size_t i = 0; i < kColumns; ++i)
    if (flag == kInfo[i].flag) return static_cast<Column>(i);
  return std::nullopt;
}

Listing list(const HoldingsSnapshot& snapshot, const ListOptions& options) {
  return Lister(snapshot, options).run();
}

std::vector<std::uint32_t> users_of(const HoldingsSnapshot& snapshot) {
  std::set<std::uint32_t> users;
  for (const HeldGpu& gpu : snapshot.gpus)
    for (const HeldContainer& container : gpu.containers)
      for (const HeldProcess& process : container.processes) users.insert(process.who.uid);
  return {users.begin(), users.end()};
}

std::string user_text(std::uint32_t uid, const ListOptions& options) {
  std::string name = options.user_name ? options.user_name(uid) : std::string();
  return name.empty() ? std::to_string(uid) : name;
}

std::string container_text(const Identity& who) {
  std::string text;
  if (!who.pod_name.empty()) text = (who.pod_namespace.empty() ? "" : who.pod_namespace + "/") + who.pod_name + " ";
  if (!who.container_id.empty()) {
    text += (who.runtime.empty() ? "container" : who.runtime) + ":" + who.container_id.substr(0, 12);
    if (!who.container_name.empty()) text += " " + who.container_name;
    return text;
  }
  if (!who.pod_uid.empty()) return text + "pod " + who.pod_uid;
  if (who.slurm_job >= 0) return "slurm job " + std::to_string(who.slurm_job);
  if (!who.unit.empty()) return who.unit;
  if (!who.cgroup_path.empty()) return who.cgroup_path == "/" ? "no container" : who.cgroup_path;
  return who.cgroup_id <= 1 ? "no container" : "cgroup " + std::to_string(who.cgroup_id);
}

std::string gpu_text(const HeldGpu& gpu) {
  std::string text = gpu.minor >= 0    ? "gpu" + std::to_string(gpu.minor)
                     : gpu.device >= 0 ? "device " + std::to_string(gpu.device)
                                       : "GPU not known";
  if (!gpu.name.empty()) text += " " + gpu.name;
  return text;
}

std::string code_text(const HeldCode& code) {
  if (code.silent && code.loads == 0) return "no load seen";
  const auto worst = code.worst();
  if (!worst) return code.loads == 0 ? "-" : std::to_string(code.loads) + (code.loads == 1 ? " load" : " loads");
  std::string text(model::verdict_name(*worst));
  if (code.loads > 1)
    text += " " + std::to_string(code.verdicts[static_cast<std::size_t>(*worst)]) + "/" + std::to_string(code.loads);
  return text;
}

Tone code_tone(const HeldCode& code) {
  if (code.finding()) return Tone::kBad;
  return code.worst() ? Tone::kGood : Tone::kPlain;
}

}  // namespace gpuwatch::cli::top
