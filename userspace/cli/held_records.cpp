// SPDX-License-Identifier: Apache-2.0
#include "cli/held_records.h"

#include <algorithm>
#include <utility>

namespace gpuwatch::cli {

bool HeldRecords::keep(const model::RawRecord& record, std::string_view container, std::uint64_t now_ns) {
  auto at = until_ns_.find(std::string(container));
  if (at == until_ns_.end()) {
    if (until_ns_.size() >= limits_.containers)
      std::erase_if(until_ns_, [&](const auto& known) { return known.second <= now_ns; });
    if (until_ns_.size() >= limits_.containers) {
      ++dropped_;
      return false;
    }
    at = until_ns_.emplace(container, now_ns + limits_.wait_ns).first;
  }
  if (at->second <= now_ns) return false;
  Held held(record);
  if (bytes_ + held.bytes() > limits_.bytes) {
    ++dropped_;
    return false;
  }
  first_until_ns_ = held_.empty() ? at->second : std::min(first_until_ns_, at->second);
  bytes_ += held.bytes();
  held_.push_back(std::move(held));
  return true;
}

bool HeldRecords::due(std::uint64_t generation, std::uint64_t now_ns) {
  if (held_.empty() || (generation == generation_ && now_ns < first_until_ns_)) return false;
  generation_ = generation;
  return true;
}

std::vector<HeldRecords::Held> HeldRecords::take() {
  bytes_ = 0;
  return std::exchange(held_, {});
}

}  // namespace gpuwatch::cli
