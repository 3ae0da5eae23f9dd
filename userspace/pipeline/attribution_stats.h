// SPDX-License-Identifier: Apache-2.0
// Counters of attribution as lines for --stats, and for status: one list, so
// that both spell them alike.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attribute/counters.h"
#include "attribute/gpu_directory.h"
#include "attribute/names.h"
#include "model/gpu.h"

namespace gpuwatch::pipeline {

struct AttributionStats {
  attribute::ProcessCounters processes;
  attribute::CgroupCounters cgroups;
  attribute::GpuCounters gpus;
  attribute::AllocationCounters allocation;
  attribute::NamesCounters names;
  std::uint64_t held_dropped = 0;  // records that waited for a name and found no room
};

// Names end in _total where they only grow.
std::vector<std::pair<std::string_view, std::uint64_t>> list_of(const AttributionStats& stats);

// One JSON object and its newline.
void append_stats_json(std::string& out, const AttributionStats& stats);

// For people: what was known at once, what was looked up, which GPUs.
void append_stats_text(std::string& out, const AttributionStats& stats, const model::GpuList& gpus);

}  // namespace gpuwatch::pipeline
