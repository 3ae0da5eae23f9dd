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
  // Begins with a 0 for each verdict and each reason of loss in the rings.
  explicit Tally(std::size_t max_values = kMaxSeries - 1);

  // A counter that is there with 0 before it counts: Prometheus does not see the
  // step of one that comes with its first value. To be called for each rule.
  void declare(Metric metric, Metrics::Values labels) { add(metric, std::move(labels), 0); }

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
