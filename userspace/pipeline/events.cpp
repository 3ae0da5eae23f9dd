// SPDX-License-Identifier: Apache-2.0
#include "pipeline/events.h"

#include <unistd.h>

#include "decode/driver_seen.h"
#include "model/definitions.h"

namespace gpuwatch::pipeline {

namespace {

// At the end, for looks that still go on.
constexpr std::uint64_t kLastLookNs = 500'000'000;

}  // namespace

Events::Events(EventsOptions options, Take take)
    : options_(options), take_(std::move(take)), decoder_(options.driver), driver_known_(options.driver.known()) {
  if (options_.live) {
    attributor_.go_live();
    allocation_ = std::make_unique<attribute::AllocationWatch>();
  }
  attributor_.set_names(options_.names);
}

// A card is looked up once somebody uses it. Not because of ourselves: the
// look-up uses it too.
void Events::note_gpu(const gpuwatch_rec& head, std::int32_t minor) {
  if (options_.gpus != nullptr && minor >= 0 && head.tgid != static_cast<std::uint32_t>(::getpid()))
    options_.gpus->used(minor);
}

void Events::follow_gpus(const model::RawRecord& record) {
  const gpuwatch_rec& head = record.head;
  if (head.type == GPUWATCH_REC_OPEN && head.node_kind == GPUWATCH_NODE_GPU)
    note_gpu(head, static_cast<std::int32_t>(head.rdev & 0xfffff));
  if (head.type != GPUWATCH_REC_STATE || options_.gpus == nullptr) return;
  const auto state = model::parse_state(record);
  if (state && (state->event == GPUWATCH_STATE_DRIVER_LIVE || state->event == GPUWATCH_STATE_DRIVER_GOING))
    options_.gpus->forget();
}

void Events::give(const std::vector<model::StoryEvent>& events) {
  for (const model::StoryEvent& event : events) {
    note_gpu(event.head, event.gpu_minor);
    // An event may be about another process than the one whose call completed it.
    take_(event, attributor_.actor_of(event.head));
  }
}

void Events::give_unallocated() {
  std::vector<attribute::UnallocatedUse> found;
  allocation_->take(found);
  for (const attribute::UnallocatedUse& use : found) {
    model::StoryEvent event;
    event.kind = model::StoryKind::kUnallocatedUse;
    event.head = use.head;
    event.gpu_minor = use.minor;
    event.body = model::AllocationBody{use.reason, use.evidence};
    take_(event, attributor_.actor_of(event.head));
  }
}

void Events::observe(const model::RawRecord& record) {
  attributor_.learn(record);
  follow_gpus(record);
  if (allocation_) {
    if (record.head.type == GPUWATCH_REC_OPEN && options_.gpus != nullptr)
      allocation_->opened(record, attributor_.actor_of(record.head), options_.gpus->gpus());
    give_unallocated();
  }
  const model::Call call = decoder_.decode(record);
  if (!driver_known_) {
    if (const auto driver = decode::driver_seen(call)) {
      driver_known_ = true;
      decoder_.use(*driver);
    }
  }
  events_.clear();
  story_.observe(call, events_);
  if (!events_.empty()) give(events_);
  if (options_.code == nullptr) return;
  code_events_.clear();
  options_.code->observe(
      record, events_, [this](const gpuwatch_rec& head) { return attributor_.actor_of(head); }, code_events_);
  if (!code_events_.empty()) give(code_events_);
}

void Events::settle(std::uint64_t now_ns) {
  if (allocation_) give_unallocated();
  events_.clear();
  story_.settle(now_ns, events_);
  give(events_);
  if (options_.code == nullptr) return;
  code_events_.clear();
  options_.code->settle(now_ns, events_, code_events_);
  give(code_events_);
}

void Events::finish() {
  if (allocation_) {
    allocation_->settle(kLastLookNs);
    give_unallocated();
  }
  events_.clear();
  story_.finish(events_);
  give(events_);
  if (options_.code == nullptr) return;
  code_events_.clear();
  options_.code->finish(events_, code_events_);
  give(code_events_);
}

AttributionStats Events::stats() const {
  AttributionStats stats;
  stats.processes = attributor_.process_counters();
  stats.cgroups = attributor_.cgroup_counters();
  if (options_.gpus != nullptr) stats.gpus = options_.gpus->counters();
  if (allocation_) stats.allocation = allocation_->counters();
  if (options_.names != nullptr) stats.names = options_.names->counters();
  return stats;
}

}  // namespace gpuwatch::pipeline
