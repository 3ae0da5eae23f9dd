// SPDX-License-Identifier: Apache-2.0
// Holdings: who holds which GPU now, from the stream of story events and calls:
// GPU -> container -> process, with contexts, channels, memory, code verdicts
// and calls per second. Time is the records' own, so that a recording gives the
// same answer each time. Bounded: over a limit the longest idle process goes,
// and is counted. Asks nobody and prints nothing.
//
//   observe(event, actor)   a story event, and who it is about
//   count_call(head)        a call: for calls per second
//   advance(now_ns)         when nothing came for a while: time goes on
//   snapshot()              what is held now; holdings_json() makes a line of it
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/actor.h"
#include "model/gpu.h"
#include "model/story.h"
#include "model/verdict.h"
#include "report/summary.h"

namespace gpuwatch::report {

struct HoldingsLimits {
  std::size_t processes = 4096;
  std::size_t gpus = 64;                      // of one process
  std::size_t text = 512;                     // bytes of each string
  std::uint64_t grace_ns = 5'000'000'000;     // how long a process is shown that holds nothing any more
  std::uint64_t window_ns = 10'000'000'000u;  // of calls per second, whole seconds up to 60
};

// What a process's code was judged to be, load by load.
struct HeldCode {
  std::uint64_t loads = 0;  // module.load and module.found
  std::array<std::uint64_t, model::kVerdicts> verdicts{};
  std::uint64_t unjudged = 0;     // there was no baseline and no policy
  std::uint64_t jit_allowed = 0;  // of the verdicts jit: the policy says so explicitly
  bool silent = false;            // process.unverified: channels, and no load was seen

  std::optional<model::Verdict> worst() const;
  // One that asks for a look: worse than known, or code that nobody saw.
  bool finding() const;
};

// One process on one GPU. Identity, calls and code are those of the process.
struct HeldProcess {
  Identity who;
  std::uint64_t since_ns = 0;  // first seen on this GPU, CLOCK_MONOTONIC
  std::uint64_t last_ns = 0;   // last event or call of the process
  bool partial = false;        // it began before gpuwatch looked
  bool open = false;           // holds a descriptor of the card's own node
  std::uint64_t ended_ns = 0;  // since then it holds nothing; 0: it does
  std::uint64_t contexts = 0;
  std::uint64_t channels = 0;
  Amount memory;
  HeldCode code;
  std::uint64_t calls = 0;
  double calls_per_second = 0;
  std::uint64_t findings = 0;                // security.finding, gpu.unallocated_use and code.differs
  std::uint64_t denied = 0;                  // call.denied and gpu.open_failed
  std::optional<std::uint32_t> gpu_percent;  // of its time on the GPU, where NVML told; never from records
};

struct HeldContainer {
  std::string key;  // container_key() of its processes
  std::vector<HeldProcess> processes;
};

struct HeldGpu {
  std::int32_t minor = -1;   // /dev/nvidiaN; -1 not known
  std::int32_t device = -1;  // RM device instance; -1 not known
  std::string pci, uuid, name;
  std::vector<HeldContainer> containers;
};

struct HoldingsSnapshot {
  std::uint64_t at_ns = 0;  // CLOCK_MONOTONIC
  std::int64_t realtime_offset_ns = 0;
  std::uint64_t window_ns = 0;
  std::vector<HeldGpu> gpus;
  std::uint64_t overflow_processes = 0;  // left out because of the limits, since the start
  std::uint64_t overflow_gpus = 0;
  std::uint64_t cut_strings = 0;

  // Told by who reads the records.
  std::string source;  // "daemon", "rings", "recording"
  std::string driver_version;
  std::uint64_t records = 0;
  std::vector<std::pair<std::string, std::uint64_t>> lost;  // by reason, only those that are not 0

  std::uint64_t lost_total() const;
};

class Holdings {
 public:
  explicit Holdings(HoldingsLimits limits = {});
  ~Holdings();
  Holdings(Holdings&&) noexcept;
  Holdings& operator=(Holdings&&) noexcept;

  void observe(const model::StoryEvent& event, const model::Actor& actor);
  void count_call(const gpuwatch_rec& head);
  void advance(std::uint64_t now_ns);

  // Who is followed, for those who can see that a process is gone (a loss may
  // have taken its releases) or how it is called by now.
  std::vector<gpuwatch_rec> heads() const;
  void ended(const model::ProcessKey& process);
  void refresh(const std::function<model::Actor(const gpuwatch_rec&)>& who);

  // Sorted by GPU, then by what was there first.
  HoldingsSnapshot snapshot(const model::GpuList& gpus = {}) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One line without newline, see HOLDINGS in gpuwatch-json(5).
std::string holdings_json(const HoldingsSnapshot& snapshot);
// Back again. The text may come from anybody: what is no such line is an error
// that names the key, what is too much is cut.
base::Result<HoldingsSnapshot> holdings_from_json(std::string_view text);

// What groups processes: the container, else the Slurm job, unit or cgroup.
std::string container_key(const Identity& who);

}  // namespace gpuwatch::report
