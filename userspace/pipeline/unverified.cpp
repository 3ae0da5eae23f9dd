// SPDX-License-Identifier: Apache-2.0
#include "pipeline/unverified.h"

namespace gpuwatch::pipeline {

using model::StoryEvent;
using model::StoryKind;

// At the bound somebody without channels goes, else the oldest process.
Unverified::Process* Unverified::process_of(const gpuwatch_rec& head) {
  const Key key = key_of(head);
  if (const auto at = processes_.find(key); at != processes_.end()) return &at->second;
  if (processes_.size() >= kProcessesMax) {
    auto victim = processes_.begin();
    for (auto at = processes_.begin(); at != processes_.end(); ++at)
      if (at->second.channels == 0) {
        victim = at;
        break;
      }
    stop_waiting(victim->first, victim->second);
    processes_.erase(victim);
  }
  return &processes_[key];
}

void Unverified::stop_waiting(const Key& key, Process& process) {
  if (process.waits) due_.erase({process.since_ns, key});
  process.waits = false;
}

void Unverified::observe(const StoryEvent& event) {
  if (event.kind == StoryKind::kChannelCreated) {
    Process& process = *process_of(event.head);
    if (process.channels++ == 0 && !process.loaded && !process.told) {
      process.head = event.head;
      process.since_ns = event.head.time_ns;
      process.waits = due_.emplace(std::pair(process.since_ns, key_of(event.head)), true).second;
    }
    if (event.gpu_minor >= 0) {
      process.several_gpus = process.several_gpus || (process.gpu_minor >= 0 && process.gpu_minor != event.gpu_minor);
      process.gpu_minor = event.gpu_minor;
    }
  } else if (event.kind == StoryKind::kChannelDestroyed) {
    const auto at = processes_.find(key_of(event.head));
    if (at == processes_.end() || at->second.channels == 0) return;
    if (--at->second.channels != 0) return;
    stop_waiting(at->first, at->second);
  }
}

void Unverified::loaded(const gpuwatch_rec& head) {
  Process& process = *process_of(head);
  stop_waiting(key_of(head), process);
  process.loaded = true;
}

void Unverified::advance(std::uint64_t now_ns, std::vector<StoryEvent>& out) {
  while (!due_.empty()) {
    const auto [since_ns, key] = due_.begin()->first;
    if (now_ns < since_ns || now_ns - since_ns < after_ns_) return;
    due_.erase(due_.begin());
    Process& process = processes_[key];
    process.waits = false;
    process.told = true;
    ++told_;
    StoryEvent event;
    event.kind = StoryKind::kUnverified;
    event.head = process.head;
    event.head.time_ns = since_ns + after_ns_;
    event.gpu_minor = gpu_of(process.head);
    event.body = model::UnverifiedBody{after_ns_, process.channels};
    out.push_back(event);
  }
}

std::int32_t Unverified::gpu_of(const gpuwatch_rec& head) const {
  const auto at = processes_.find(key_of(head));
  return at == processes_.end() || at->second.several_gpus ? -1 : at->second.gpu_minor;
}

std::vector<std::uint32_t> Unverified::holders() const {
  std::vector<std::uint32_t> pids;
  for (const auto& [key, process] : processes_)
    if (process.channels != 0) pids.push_back(key.second);
  return pids;
}

}  // namespace gpuwatch::pipeline
