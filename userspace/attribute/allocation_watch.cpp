// SPDX-License-Identifier: Apache-2.0
#include "attribute/allocation_watch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "attribute/allocation.h"
#include "attribute/allocation_facts.h"
#include "attribute/background.h"
#include "attribute/lru_map.h"
#include "base/clock.h"
#include "model/definitions.h"

namespace gpuwatch::attribute {

namespace {

constexpr std::size_t kQueue = 256;
constexpr std::size_t kSeen = 8192;

struct UseKey {
  std::uint64_t start_ns = 0;
  std::uint64_t node_ino = 0;
  std::uint32_t tgid = 0;
  std::uint32_t minor = 0;
  bool operator==(const UseKey&) const = default;
};

struct UseHash {
  std::size_t operator()(const UseKey& key) const {
    const std::uint64_t mix = key.start_ns ^ (std::uint64_t{key.tgid} << 32) ^ (key.node_ino << 8) ^ key.minor;
    return static_cast<std::size_t>(mix * 0x9E3779B97F4A7C15ULL >> 16);
  }
};

// Shared with jobs, which may outlive the watch.
struct Shared {
  std::mutex mutex;
  std::vector<UnallocatedUse> found;
  std::atomic<bool> any{false};
  std::atomic<std::uint64_t> waiting{0};
  std::atomic<std::uint64_t> looked{0};
  std::atomic<std::uint64_t> unknown{0};
  std::atomic<std::uint64_t> findings{0};
};

// The first process of the pid namespace tells what the container was given;
// the one that opened, where that is gone.
std::vector<ProcessName> candidates_of(const gpuwatch_rec& head, const model::Actor& actor) {
  std::vector<ProcessName> names;
  if (actor.process != nullptr && !actor.process->ancestors.empty() && actor.process->ancestors.back().ns_tgid == 1)
    names.push_back({actor.process->ancestors.back().tgid, actor.process->ancestors.back().start_ns});
  names.push_back({head.tgid, head.start_ns});
  return names;
}

void look(Shared& shared, const gpuwatch_rec& head, const std::vector<ProcessName>& names, GpuUse use,
          const model::GpuList& gpus, const std::string& container_id) {
  const ContainerFacts facts = read_container_facts(names, container_id);
  use.host_node = read_host_node(use.minor);
  shared.looked.fetch_add(1);
  if (!facts.nodes && !facts.visible_devices) shared.unknown.fetch_add(1);
  auto finding = judge(facts, use, gpus);
  if (!finding) return;
  shared.findings.fetch_add(1);
  const std::lock_guard lock(shared.mutex);
  shared.found.push_back({head, use.minor, std::move(finding->reason), std::move(finding->evidence)});
  shared.any = true;
}

}  // namespace

struct AllocationWatch::Impl {
  std::shared_ptr<Shared> shared = std::make_shared<Shared>();
  LruMap<UseKey, bool, UseHash> seen{kSeen};
  Background background{kQueue};
};

AllocationWatch::AllocationWatch() : impl_(std::make_unique<Impl>()) {}
AllocationWatch::~AllocationWatch() = default;

void AllocationWatch::opened(const model::RawRecord& open, const model::Actor& actor, const model::GpuList& gpus) {
  const gpuwatch_rec& head = open.head;
  if (head.type != GPUWATCH_REC_OPEN || head.node_kind != GPUWATCH_NODE_GPU || (head.flags & GPUWATCH_F_PRELOAD) != 0)
    return;
  const auto ret = model::read_at<std::int64_t>(open.payload, offsetof(gpuwatch_rec_open, ret));
  // Neither a namespace nor a name of its own: no container that was given GPUs.
  if (!ret || *ret != 0 || actor.process == nullptr) return;
  if (actor.process->ns_level == 0 && actor.container_id.empty()) return;
  GpuUse use;
  use.minor = static_cast<std::int32_t>(head.rdev & 0xfffff);
  use.node = model::parse_open_node(open);
  const UseKey key{head.start_ns, use.node ? use.node->ino : 0, head.tgid, head.rdev};
  bool& seen = impl_->seen.insert_or_get(key);
  if (seen) return;
  seen = true;
  impl_->shared->waiting.fetch_add(1);
  const bool taken = impl_->background.submit([shared = impl_->shared, head, names = candidates_of(head, actor), use,
                                               gpus, id = std::string(actor.container_id)] {
    look(*shared, head, names, use, gpus, id);
    shared->waiting.fetch_sub(1);
  });
  if (!taken) impl_->shared->waiting.fetch_sub(1);
}

void AllocationWatch::take(std::vector<UnallocatedUse>& out) {
  if (!impl_->shared->any.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(impl_->shared->mutex);
  std::move(impl_->shared->found.begin(), impl_->shared->found.end(), std::back_inserter(out));
  impl_->shared->found.clear();
  impl_->shared->any = false;
}

void AllocationWatch::settle(std::uint64_t limit_ns) {
  const std::uint64_t begin = base::monotonic_ns();
  while (impl_->shared->waiting.load() != 0 && base::monotonic_ns() - begin < limit_ns)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

AllocationCounters AllocationWatch::counters() const {
  AllocationCounters counters;
  counters.looks = impl_->shared->looked.load();
  counters.unknown = impl_->shared->unknown.load();
  counters.findings = impl_->shared->findings.load();
  counters.refused = impl_->background.refused();
  return counters;
}

}  // namespace gpuwatch::attribute
