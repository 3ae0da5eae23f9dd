// SPDX-License-Identifier: Apache-2.0
// Unverified: processes that have channels and of which no load of code was
// seen for some time. Time is that of the records, so a recording tells what a
// live look told. State is bounded; what it knows comes from events and loads.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "model/story.h"

namespace gpuwatch::pipeline {

class Unverified {
 public:
  static constexpr std::size_t kProcessesMax = 65'536;

  explicit Unverified(std::uint64_t after_ns) : after_ns_(after_ns) {}

  // Events of the driver's calls: channels come and go.
  void observe(const model::StoryEvent& event);
  // A load by that process, whatever was in it.
  void loaded(const gpuwatch_rec& head);
  // Appends an event for each process whose time is over by `now_ns`, once.
  void advance(std::uint64_t now_ns, std::vector<model::StoryEvent>& out);

  // Processes with channels right now.
  std::vector<std::uint32_t> holders() const;
  std::uint64_t told() const { return told_; }
  // GPU of the process's channels; -1: none, several, or not known.
  std::int32_t gpu_of(const gpuwatch_rec& head) const;

 private:
  struct Process {
    gpuwatch_rec head{};  // of its first channel
    std::uint64_t since_ns = 0;
    std::uint64_t channels = 0;
    std::int32_t gpu_minor = -1;
    bool several_gpus = false;
    bool loaded = false;
    bool told = false;
    bool waits = false;  // is in due_
  };
  using Key = std::pair<std::uint64_t, std::uint32_t>;  // start, process id
  static Key key_of(const gpuwatch_rec& head) { return {head.start_ns, head.tgid}; }

  Process* process_of(const gpuwatch_rec& head);
  void stop_waiting(const Key& key, Process& process);

  std::uint64_t after_ns_;
  std::map<Key, Process> processes_;
  std::map<std::pair<std::uint64_t, Key>, bool> due_;  // ordered by the moment
  std::uint64_t told_ = 0;
};

}  // namespace gpuwatch::pipeline
