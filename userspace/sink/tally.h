// SPDX-License-Identifier: Apache-2.0
// Tally: counts items as they pass, by the labels of the metrics, over the life
// of the daemon. Bounded: a label value that comes when the table is full counts
// as "other", for good, so that no series ever goes back. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "sink/metrics.h"

namespace gpuwatch::sink {

class Tally {
 public:
  explicit Tally(std::size_t max_values = kMaxSeries - 1) : max_values_(max_values) {}

  // gpuwatch_events_total, _verdicts_total, _alerts_total, _events_lost_total.
  void count(const Item& item);

  // Any counter of the table that is counted one by one.
  void add(Metric metric, Metrics::Values labels, std::uint64_t count = 1);

  void fill(Metrics& metrics) const;

 private:
  void add_locked(Metric metric, Metrics::Values labels, std::uint64_t count);

  const std::size_t max_values_;
  mutable std::mutex mutex_;
  std::array<std::map<Metrics::Values, std::uint64_t>, kMetrics> counts_;
  std::array<std::uint64_t, kMetrics> overflow_{};
};

}  // namespace gpuwatch::sink
