// SPDX-License-Identifier: Apache-2.0
// LossCounts: records that did not reach the reader, by reason. Every source
// and every sink carries it; nothing here decides what a loss means.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "model/raw_record.h"

namespace gpuwatch::model {

struct LossCounts {
  std::array<std::uint64_t, GPUWATCH_LOSS_MAX> by_reason{};

  std::uint64_t total() const { return std::accumulate(by_reason.begin(), by_reason.end(), std::uint64_t{0}); }
  LossCounts& operator+=(const LossCounts& other) {
    for (std::size_t i = 0; i < by_reason.size(); ++i) by_reason[i] += other.by_reason[i];
    return *this;
  }
  bool operator==(const LossCounts&) const = default;
};

// snake_case name of an enum gpuwatch_loss; empty for slots without meaning.
constexpr std::string_view loss_name(std::size_t reason) {
  constexpr std::array<std::string_view, 4> kNames = {"ring_full", "too_big", "probe_missed", "overwritten"};
  return reason < kNames.size() ? kNames[reason] : std::string_view{};
}

}  // namespace gpuwatch::model
