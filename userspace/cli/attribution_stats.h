// SPDX-License-Identifier: Apache-2.0
// The counters of attribution as JSON and as text for people. It counts nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/gpu.h"
#include "pipeline/attribution_stats.h"

namespace gpuwatch::cli {

// Names end in _total where they only grow.
std::vector<std::pair<std::string_view, std::uint64_t>> list_of(const pipeline::AttributionStats& stats);

// One JSON object and its newline.
void append_stats_json(std::string& out, const pipeline::AttributionStats& stats);

// For people: what was known at once, what was looked up, which GPUs.
void append_stats_text(std::string& out, const pipeline::AttributionStats& stats, const model::GpuList& gpus);

}  // namespace gpuwatch::cli
