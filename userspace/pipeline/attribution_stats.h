// SPDX-License-Identifier: Apache-2.0
// What attribution knew at once, looked up and missed, as counters.
#pragma once

#include <cstdint>

#include "attribute/counters.h"
#include "attribute/gpu_directory.h"
#include "attribute/names.h"

namespace gpuwatch::pipeline {

struct AttributionStats {
  attribute::ProcessCounters processes;
  attribute::CgroupCounters cgroups;
  attribute::GpuCounters gpus;
  attribute::AllocationCounters allocation;
  attribute::NamesCounters names;
  std::uint64_t held_dropped = 0;  // records that waited for a name and found no room
};

}  // namespace gpuwatch::pipeline
