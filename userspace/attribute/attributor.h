// SPDX-License-Identifier: Apache-2.0
// Attributor: remembers the definition records of processes and cgroups and
// answers who made a call. Bounded: the least recently used definition goes
// first and is counted. It never asks the running system, so it works from a
// file; container names and pods by lookup are another part's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "attribute/counters.h"
#include "attribute/names.h"
#include "model/actor.h"
#include "model/raw_record.h"

namespace gpuwatch::attribute {

struct AttributorLimits {
  std::size_t processes = 16384;
  std::size_t cgroups = 8192;
};

class Attributor {
 public:
  explicit Attributor(AttributorLimits limits = {});
  ~Attributor();
  Attributor(Attributor&&) noexcept;
  Attributor& operator=(Attributor&&) noexcept;

  // Records come from this machine, now: processes without a definition may be
  // looked up in /proc, in the background, and users have names.
  void go_live();

  // Asks these for names of containers from now on; nullptr: for none. Not
  // owned, must outlive this.
  void set_names(Names* names);

  // Takes TASK and CGROUP records and opens of capability nodes, ignores all
  // others: feed it everything.
  void learn(const model::RawRecord& record);

  // Views in the answer are valid until the next learn().
  model::Actor actor_of(const gpuwatch_rec& head);

  std::uint64_t evicted() const;
  ProcessCounters process_counters() const;
  CgroupCounters cgroup_counters() const;
  std::uint64_t malformed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuwatch::attribute
