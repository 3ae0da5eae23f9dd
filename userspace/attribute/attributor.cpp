// SPDX-License-Identifier: Apache-2.0
#include "attribute/attributor.h"

#include <string>

#include "attribute/cgroup_entry.h"
#include "attribute/lru_map.h"
#include "model/definitions.h"

namespace gpuwatch::attribute {

namespace {

struct TaskKey {
  std::uint64_t start_ns = 0;
  std::uint32_t tgid = 0;
  bool operator==(const TaskKey&) const = default;
};

struct TaskHash {
  std::size_t operator()(const TaskKey& key) const {
    return static_cast<std::size_t>((key.start_ns ^ (std::uint64_t{key.tgid} << 32)) * 0x9E3779B97F4A7C15ULL >> 16);
  }
};

struct CgroupHash {
  std::size_t operator()(std::uint64_t id) const { return static_cast<std::size_t>(id * 0x9E3779B97F4A7C15ULL >> 16); }
};

struct Task {
  std::uint32_t ns_tgid = 0;
  std::string exe;
};

// A v1 id and a v2 id may be the same number.
std::uint64_t cgroup_key(const gpuwatch_rec& head) {
  return head.cgroup_id << 1 | ((head.flags & GPUWATCH_F_CGROUP_V1) != 0 ? 1 : 0);
}

}  // namespace

struct Attributor::Impl {
  explicit Impl(AttributorLimits limits) : tasks(limits.processes), cgroups(limits.cgroups) {}

  LruMap<TaskKey, Task, TaskHash> tasks;
  LruMap<std::uint64_t, CgroupEntry, CgroupHash> cgroups;
  std::uint64_t malformed = 0;

  void learn_task(const model::RawRecord& record) {
    const auto definition = model::parse_task(record);
    if (!definition) {
      ++malformed;
      return;
    }
    Task& task = tasks.insert_or_get({record.head.start_ns, record.head.tgid});
    task.ns_tgid = definition->fixed.ns_tgid;
    task.exe = definition->path;
  }

  void learn_cgroup(const model::RawRecord& record) {
    const auto definition = model::parse_cgroup(record);
    if (!definition) {
      ++malformed;
      return;
    }
    cgroups.insert_or_get(cgroup_key(record.head)).set_path(definition->path);
  }
};

Attributor::Attributor(AttributorLimits limits) : impl_(std::make_unique<Impl>(limits)) {}
Attributor::~Attributor() = default;
Attributor::Attributor(Attributor&&) noexcept = default;
Attributor& Attributor::operator=(Attributor&&) noexcept = default;

void Attributor::learn(const model::RawRecord& record) {
  if (record.head.type == GPUWATCH_REC_TASK)
    impl_->learn_task(record);
  else if (record.head.type == GPUWATCH_REC_CGROUP)
    impl_->learn_cgroup(record);
}

model::Actor Attributor::actor_of(const gpuwatch_rec& head) {
  model::Actor actor;
  actor.tgid = head.tgid;
  actor.start_ns = head.start_ns;
  actor.cgroup_id = head.cgroup_id;
  if (const Task* task = impl_->tasks.find({head.start_ns, head.tgid})) {
    actor.ns_tgid = task->ns_tgid;
    actor.exe = task->exe;
  }
  if (const CgroupEntry* cgroup = impl_->cgroups.find(cgroup_key(head))) cgroup->tell(actor);
  return actor;
}

std::uint64_t Attributor::evicted() const {
  return impl_->tasks.evicted() + impl_->cgroups.evicted();
}
std::uint64_t Attributor::malformed() const {
  return impl_->malformed;
}

}  // namespace gpuwatch::attribute
