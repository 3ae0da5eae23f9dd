// SPDX-License-Identifier: Apache-2.0
// Summary: what each process (or container) did in all, from the stream of
// calls and story events: calls by name with their times, what was refused,
// memory, contexts, channels. Bounded: over a limit the longest idle group is
// folded into one line of its own, and counted. Prints nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/actor.h"
#include "model/call.h"
#include "model/story.h"
#include "report/durations.h"

namespace gpuwatch::report {

enum class GroupBy : std::uint8_t { kProcess, kContainer };

struct SummaryLimits {
  std::size_t groups = 512;
  std::size_t names = 32768;      // rows of calls by name, of all groups together
  std::size_t processes = 16384;  // told apart within one group
};

struct SummaryOptions {
  GroupBy by = GroupBy::kProcess;
  // Calls that completed outside of it are not counted; memory, contexts and
  // channels are what they are all the same. After the first call, nanoseconds.
  std::uint64_t since_ns = 0;
  std::uint64_t until_ns = ~std::uint64_t{0};
  SummaryLimits limits;
};

// All calls of one name. Views point into static tables.
struct NameRow {
  std::string_view name;     // "NV_ESC_RM_ALLOC", "open"; empty: not known
  std::string_view detail;   // class, control, or the node of a call without
  std::string_view node;     // family
  std::uint32_t number = 0;  // of what has no name
  Durations durations;
  std::uint64_t failed = 0;
  std::uint64_t denied = 0;
  std::string_view last_status;  // of a call that failed
  std::int64_t last_ret = 0;
};

struct Amount {
  std::uint64_t live = 0;
  std::uint64_t peak = 0;
};

struct GpuAmount {
  std::int32_t minor = -1;   // /dev/nvidiaN; -1 not known
  std::int32_t device = -1;  // RM device instance; -1 not known
  Amount memory;
};

// Who a group is; untrusted bytes. For a container `comm` and `pid` are those
// of the process seen first.
struct Identity {
  std::uint32_t pid = 0;
  std::uint32_t ns_pid = 0;
  std::uint32_t uid = 0;
  std::uint64_t start_ns = 0;
  std::uint64_t cgroup_id = 0;
  std::string comm, exe, cgroup_path;
  std::string runtime, container_id, container_name, image;
  std::string pod_uid, pod_name, pod_namespace;
  std::string unit;
  std::int64_t slurm_job = -1;
};

struct Group {
  Identity who;
  std::uint64_t processes = 0;  // 1 of a process
  std::uint64_t first_ns = 0;   // begin of the first call counted, CLOCK_MONOTONIC
  std::uint64_t last_ns = 0;    // end of the last
  std::uint64_t span_ns = 0;    // what rates are over: the window, or first to last
  std::uint64_t calls = 0;
  std::uint64_t failed = 0;
  std::uint64_t denied = 0;
  std::uint64_t driver_ns = 0;  // of all threads together
  Durations durations;          // of all calls
  std::uint64_t unlisted = 0;   // calls without a row, because of the limit
  std::vector<NameRow> names;   // by time in the driver, most first

  std::vector<GpuAmount> gpus;
  Amount host, pinned;
  Amount contexts, channels;  // `made` is beside them
  std::uint64_t contexts_made = 0;
  std::uint64_t channels_made = 0;
  std::vector<std::uint64_t> events;  // by StoryKind
};

struct Folded {
  std::uint64_t groups = 0;
  std::uint64_t calls = 0;
  std::uint64_t driver_ns = 0;
};

struct SummaryResult {
  GroupBy by = GroupBy::kProcess;
  std::uint64_t records = 0;  // seen, definitions included
  std::uint64_t calls = 0;    // counted
  std::uint64_t driver_ns = 0;
  std::uint64_t origin_ns = 0;  // begin of the first call; what since and until count from
  std::uint64_t from_ns = 0;    // begin and end of what was counted
  std::uint64_t to_ns = 0;
  std::uint64_t processes = 0;
  std::vector<Group> groups;  // by time in the driver, most first
  Folded folded;
};

class Summary {
 public:
  // `who` is asked rarely: when a group or its definition is new.
  using ActorLookup = std::function<model::Actor(const gpuwatch_rec&)>;

  Summary(SummaryOptions options, ActorLookup who);
  ~Summary();
  Summary(Summary&&) noexcept;
  Summary& operator=(Summary&&) noexcept;

  void observe(const model::Call& call);
  void observe(const model::StoryEvent& event);

  // May be asked at any time.
  SummaryResult result() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// "NV_ESC_RM_ALLOC AMPERE_CHANNEL_GPFIFO_A", "open nvidiactl",
// "NV_ESC_RM_CONTROL 0x20800a2c": our own words and numbers only.
std::string label_of(const NameRow& row);

}  // namespace gpuwatch::report
