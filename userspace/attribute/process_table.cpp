// SPDX-License-Identifier: Apache-2.0
#include "attribute/process_table.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

#include "attribute/background.h"
#include "attribute/lru_map.h"
#include "attribute/process_lookup.h"
#include "model/definitions.h"

namespace gpuwatch::attribute {

namespace {

// Look-ups that may wait; a storm of unknown processes is not read one by one.
constexpr std::size_t kLookupQueue = 64;

struct Key {
  std::uint64_t start_ns = 0;
  std::uint32_t tgid = 0;
  bool operator==(const Key&) const = default;
};

struct Hash {
  std::size_t operator()(const Key& key) const {
    return static_cast<std::size_t>((key.start_ns ^ (std::uint64_t{key.tgid} << 32)) * 0x9E3779B97F4A7C15ULL >> 16);
  }
};

struct Entry {
  model::Process process;
  bool asked = false;  // /proc, whatever came of it
};

struct Answer {
  Key key;
  std::optional<model::Process> process;
};

// Shared with look-ups, which may outlive the table.
struct Answers {
  std::mutex mutex;
  std::vector<Answer> ready;
  std::atomic<bool> any{false};
};

model::Process from_definition(const model::TaskDef& definition) {
  model::Process process;
  process.source = model::ProcessSource::kRecord;
  process.exe = definition.path;
  process.exe_ino = definition.fixed.exe_ino;
  process.exe_dev = definition.fixed.exe_dev;
  process.exec_id = definition.more.exec_id;
  process.ns_tgid = definition.fixed.ns_tgid;
  process.ns_level = definition.fixed.ns_level;
  process.pid_ns = definition.fixed.pid_ns;
  const std::uint32_t flags = definition.more.flags;
  process.exe_state = (flags & GPUWATCH_TASK_EXE_MEMFD) != 0     ? model::ExeState::kMemfd
                      : (flags & GPUWATCH_TASK_EXE_DELETED) != 0 ? model::ExeState::kDeleted
                      : (flags & GPUWATCH_TASK_EXE_CHANGED) != 0 ? model::ExeState::kChanged
                                                                 : model::ExeState::kPlain;
  for (std::size_t i = 0; i < definition.more.nr_ns; ++i) process.ns_pids.push_back(definition.ns_id(i));
  for (std::size_t i = 0; i < definition.more.nr_ancestors; ++i) {
    const gpuwatch_ancestor from = definition.ancestor(i);
    const std::string_view comm(from.comm, sizeof from.comm);
    process.ancestors.push_back(
        {from.tgid, from.ns_tgid, from.start_ns, std::string(comm.substr(0, std::min(comm.find('\0'), comm.size())))});
  }
  // Records of before schema 2 tell the parent alone.
  if (definition.more.nr_ns == 0 && definition.fixed.parent_tgid != 0)
    process.ancestors.push_back({definition.fixed.parent_tgid, 0, definition.fixed.parent_start_ns, {}});
  return process;
}

}  // namespace

struct ProcessTable::Impl {
  explicit Impl(std::size_t limit) : entries(limit) {}

  LruMap<Key, Entry, Hash> entries;
  ProcessCounters counters;
  bool live = false;
  std::string proc;
  std::shared_ptr<Answers> answers = std::make_shared<Answers>();
  Background background{kLookupQueue};

  void take_answers() {
    if (!answers->any.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(answers->mutex);
    for (Answer& answer : answers->ready) {
      if (!answer.process) ++counters.proc_gone;
      Entry* entry = answer.process ? entries.find(answer.key) : nullptr;
      // A definition that came meanwhile is worth more.
      if (entry == nullptr || entry->process.source == model::ProcessSource::kRecord) continue;
      answer.process->cap_minors = entry->process.cap_minors;
      entry->process = std::move(*answer.process);
    }
    answers->ready.clear();
    answers->any = false;
  }

  void look_up(const Key& key) {
    const bool taken = background.submit([key, proc_place = proc, to = answers] {
      Answer answer{key, read_process(key.tgid, key.start_ns, proc_place)};
      const std::lock_guard lock(to->mutex);
      to->ready.push_back(std::move(answer));
      to->any = true;
    });
    ++(taken ? counters.proc_reads : counters.proc_refused);
  }
};

ProcessTable::ProcessTable(std::size_t limit) : impl_(std::make_unique<Impl>(limit)) {}
ProcessTable::~ProcessTable() = default;

void ProcessTable::go_live(const std::string& proc) {
  impl_->live = true;
  impl_->proc = proc;
}

bool ProcessTable::learn(const model::RawRecord& task) {
  const auto definition = model::parse_task(task);
  if (!definition) return false;
  ++impl_->counters.definitions;
  Entry& entry = impl_->entries.insert_or_get({task.head.start_ns, task.head.tgid});
  const auto caps = entry.process.cap_minors;
  entry.process = from_definition(*definition);
  entry.process.cap_minors = caps;
  return true;
}

void ProcessTable::learn_open(const model::RawRecord& open) {
  if (open.head.node_kind != GPUWATCH_NODE_CAPS) return;
  const auto ret = model::read_at<std::int64_t>(open.payload, offsetof(gpuwatch_rec_open, ret));
  if (!ret || *ret != 0) return;
  const auto minor = static_cast<std::int32_t>(open.head.rdev & 0xfffff);
  auto& caps = impl_->entries.insert_or_get({open.head.start_ns, open.head.tgid}).process.cap_minors;
  if (caps[0] == minor || caps[1] == minor) return;
  caps[caps[0] < 0 ? 0 : 1] = minor;
}

const model::Process* ProcessTable::find(const gpuwatch_rec& head) {
  const Key key{head.start_ns, head.tgid};
  impl_->take_answers();
  Entry* entry = impl_->entries.find(key);
  if (entry != nullptr && entry->process.source != model::ProcessSource::kNone) {
    ++impl_->counters.hits;
    return &entry->process;
  }
  ++impl_->counters.misses;
  // Kernel threads have no address space and nothing to look up; the preload
  // recorder sees ids of its own namespace.
  if (!impl_->live || head.tgid == 0 || (head.flags & (GPUWATCH_F_KTHREAD | GPUWATCH_F_PRELOAD)) != 0)
    return entry != nullptr ? &entry->process : nullptr;
  if (entry == nullptr) entry = &impl_->entries.insert_or_get(key);
  if (!entry->asked) impl_->look_up(key);
  entry->asked = true;
  return &entry->process;
}

ProcessCounters ProcessTable::counters() const {
  ProcessCounters counters = impl_->counters;
  counters.known = impl_->entries.size();
  counters.evictions = impl_->entries.evicted();
  return counters;
}

}  // namespace gpuwatch::attribute
