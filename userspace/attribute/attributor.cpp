// SPDX-License-Identifier: Apache-2.0
#include "attribute/attributor.h"

#include <optional>
#include <string>

#include "attribute/cgroup_entry.h"
#include "attribute/lru_map.h"
#include "attribute/process_table.h"
#include "attribute/user_names.h"
#include "model/definitions.h"

namespace gpuwatch::attribute {

namespace {

struct CgroupHash {
  std::size_t operator()(std::uint64_t id) const { return static_cast<std::size_t>(id * 0x9E3779B97F4A7C15ULL >> 16); }
};

// A v1 id and a v2 id may be the same number.
std::uint64_t cgroup_key(const gpuwatch_rec& head) {
  return head.cgroup_id << 1 | ((head.flags & GPUWATCH_F_CGROUP_V1) != 0 ? 1 : 0);
}

}  // namespace

struct Attributor::Impl {
  explicit Impl(AttributorLimits limits) : processes(limits.processes), cgroups(limits.cgroups) {}

  ProcessTable processes;
  std::optional<UserNames> users;  // live only: a recording's uids are another machine's
  CgroupCounters cgroup_counters;
  LruMap<std::uint64_t, CgroupEntry, CgroupHash> cgroups;
  std::uint64_t malformed = 0;
  Names* names = nullptr;

  void learn_cgroup(const model::RawRecord& record) {
    const auto definition = model::parse_cgroup(record);
    if (!definition) {
      ++malformed;
      return;
    }
    CgroupEntry& cgroup = cgroups.insert_or_get(cgroup_key(record.head));
    cgroup.set_path(definition->path);
    if (names != nullptr) cgroup.ask(*names);
  }
};

Attributor::Attributor(AttributorLimits limits) : impl_(std::make_unique<Impl>(limits)) {}
Attributor::~Attributor() = default;
Attributor::Attributor(Attributor&&) noexcept = default;
Attributor& Attributor::operator=(Attributor&&) noexcept = default;

void Attributor::go_live() {
  impl_->processes.go_live();
  impl_->users.emplace();
}

void Attributor::set_names(Names* names) {
  impl_->names = names;
}

void Attributor::learn(const model::RawRecord& record) {
  if (record.head.type == GPUWATCH_REC_TASK)
    impl_->malformed += impl_->processes.learn(record) ? 0 : 1;
  else if (record.head.type == GPUWATCH_REC_CGROUP)
    impl_->learn_cgroup(record);
  else if (record.head.type == GPUWATCH_REC_OPEN)
    impl_->processes.learn_open(record);
}

model::Actor Attributor::actor_of(const gpuwatch_rec& head) {
  model::Actor actor;
  actor.tgid = head.tgid;
  actor.start_ns = head.start_ns;
  actor.cgroup_id = head.cgroup_id;
  if (const model::Process* process = impl_->processes.find(head)) {
    actor.process = process;
    actor.ns_tgid = process->ns_tgid;
    actor.exe = process->exe;
  }
  if (impl_->users) actor.user_name = impl_->users->name(head.uid);
  if (CgroupEntry* cgroup = impl_->cgroups.find(cgroup_key(head))) {
    ++impl_->cgroup_counters.hits;
    if (impl_->names != nullptr) cgroup->ask(*impl_->names);
    cgroup->tell(actor);
  } else {
    ++impl_->cgroup_counters.misses;
  }
  return actor;
}

std::uint64_t Attributor::evicted() const {
  return impl_->processes.counters().evictions + impl_->cgroups.evicted();
}
ProcessCounters Attributor::process_counters() const {
  return impl_->processes.counters();
}
CgroupCounters Attributor::cgroup_counters() const {
  CgroupCounters counters = impl_->cgroup_counters;
  counters.known = impl_->cgroups.size();
  counters.evictions = impl_->cgroups.evicted();
  return counters;
}
std::uint64_t Attributor::malformed() const {
  return impl_->malformed;
}

}  // namespace gpuwatch::attribute
