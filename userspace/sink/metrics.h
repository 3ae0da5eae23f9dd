// SPDX-License-Identifier: Apache-2.0
// Metrics: a passive snapshot of what the daemon counts, and its rendering as
// Prometheus text. The rows are those of metrics.def. Nothing here measures, and
// nothing keeps values between two snapshots (tally.h does).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sink/queue.h"

namespace gpuwatch::sink {

enum class Metric : std::uint8_t {
#define METRIC(enumerator, name, type, labels, meaning) enumerator,
#include "sink/metrics.def"
#undef METRIC
  kCount,
};
inline constexpr std::size_t kMetrics = static_cast<std::size_t>(Metric::kCount);

enum class MetricType : std::uint8_t { kCounter, kGauge };

struct MetricInfo {
  std::string_view name;
  MetricType type;
  std::string_view labels;  // names with blanks between
  std::string_view meaning;
};

const MetricInfo& metric_info(Metric metric);

// Series of one metric in a snapshot; what is more is added up under "other".
inline constexpr std::size_t kMaxSeries = 256;
// Bytes of one label value; what is longer is cut.
inline constexpr std::size_t kMaxLabelBytes = 128;

struct Metrics {
  using Values = std::vector<std::string>;  // of the labels, in the order of the table

  std::array<std::map<Values, double>, kMetrics> series;
  std::array<std::uint64_t, kMetrics> overflow{};

  // Too many values are ignored, missing ones are empty. The same labels twice:
  // counters add up, of gauges the last one stays.
  template <typename Number>
  void set(Metric metric, Number value, Values labels = {}) {
    put(metric, static_cast<double>(value), std::move(labels));
  }

  // The rows of a sink and its queue.
  void add_queue(const std::string& name, const QueueCounts& counts, const QueueLimits& limits);

 private:
  void put(Metric metric, double value, Values labels);
};

// Text exposition format 0.0.4. Label values may be any bytes; a label without a
// value and a metric without series are left out.
std::string render(const Metrics& metrics);

// METRICS.md, made from the table.
std::string metrics_page();

}  // namespace gpuwatch::sink
