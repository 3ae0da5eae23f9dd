// SPDX-License-Identifier: Apache-2.0
// AllocationWatch: looks, in the background, whether the GPUs that containers
// open are theirs. Live only. It never holds up who feeds it: what does not fit
// into its queue is counted and not looked at.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attribute/counters.h"
#include "model/actor.h"
#include "model/gpu.h"
#include "model/raw_record.h"

namespace gpuwatch::attribute {

// A use of a GPU that the container was not given.
struct UnallocatedUse {
  gpuwatch_rec head{};  // of the open
  std::int32_t minor = -1;
  std::string reason;
  std::string evidence;
};

class AllocationWatch {
 public:
  AllocationWatch();
  ~AllocationWatch();
  AllocationWatch(const AllocationWatch&) = delete;
  AllocationWatch& operator=(const AllocationWatch&) = delete;

  // Somebody opened something; only good opens of GPU nodes count, each node of
  // a process once.
  void opened(const model::RawRecord& open, const model::Actor& actor, const model::GpuList& gpus);

  // Moves what was found since to the end of `out`. Never waits.
  void take(std::vector<UnallocatedUse>& out);

  // Waits until the queue is worked off, at most so long: for the end.
  void settle(std::uint64_t limit_ns);

  AllocationCounters counters() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuwatch::attribute
