// SPDX-License-Identifier: Apache-2.0
// Events: one record in, the story events that it completes out, each with who
// did it: driver calls, uses outside of the allocation, loads of GPU code and
// their verdicts. It joins attribute, decode and code_story; it prints nothing,
// chooses nothing and reads no file. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "attribute/allocation_watch.h"
#include "attribute/attributor.h"
#include "attribute/gpu_directory.h"
#include "decode/decoder.h"
#include "decode/story.h"
#include "model/driver_version.h"
#include "pipeline/attribution_stats.h"
#include "pipeline/code_story.h"

namespace gpuwatch::pipeline {

struct EventsOptions {
  bool live = false;                        // records are made on this machine, now
  model::DriverVersion driver;              // not known: the records may tell
  attribute::Names* names = nullptr;        // what containers are called; these three outlive the object
  attribute::GpuDirectory* gpus = nullptr;  // which cards the minors are
  CodeStory* code = nullptr;                // tells loads of GPU code
};

class Events {
 public:
  // Views in both arguments end with the call.
  using Take = std::function<void(const model::StoryEvent& event, const model::Actor& actor)>;

  Events(EventsOptions options, Take take);
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  void observe(const model::RawRecord& record);
  // When nothing came for a while, and at the end: what waited for more.
  void settle(std::uint64_t now_ns);
  void finish();

  // Of any record; valid until the next one is observed.
  model::Actor actor_of(const gpuwatch_rec& head) { return attributor_.actor_of(head); }

  AttributionStats stats() const;
  const decode::Decoder& decoder() const { return decoder_; }
  std::uint64_t forgotten() const { return story_.forgotten(); }

 private:
  void give(const std::vector<model::StoryEvent>& events);
  void give_unallocated();
  void follow_gpus(const model::RawRecord& record);
  void note_gpu(const gpuwatch_rec& head, std::int32_t minor);

  EventsOptions options_;
  Take take_;
  attribute::Attributor attributor_;
  std::unique_ptr<attribute::AllocationWatch> allocation_;  // live only
  decode::Decoder decoder_;
  bool driver_known_;
  decode::StoryBuilder story_;
  std::vector<model::StoryEvent> events_, code_events_;
};

}  // namespace gpuwatch::pipeline
