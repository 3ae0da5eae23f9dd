// SPDX-License-Identifier: Apache-2.0
// See tally.h.
#include "sink/tally.h"

#include "model/loss.h"
#include "model/verdict.h"

namespace gpuwatch::sink {

Tally::Tally(std::size_t max_values) : max_values_(max_values) {
  for (std::size_t i = 0; i < model::kVerdicts; ++i)
    declare(Metric::kVerdicts, {std::string(model::verdict_name(static_cast<model::Verdict>(i)))});
  for (std::size_t i = 0; !model::loss_name(i).empty(); ++i)
    declare(Metric::kEventsLost, {std::string(model::loss_name(i))});
}

void Tally::add_locked(Metric metric, Metrics::Values labels, std::uint64_t count) {
  const auto at = static_cast<std::size_t>(metric);
  for (std::string& label : labels)
    if (label.size() > kMaxLabelBytes) label.resize(kMaxLabelBytes);
  auto& map = counts_[at];
  if (map.size() >= max_values_ && !map.contains(labels)) {
    if (count == 0) return;
    labels.assign(labels.size(), "other");
    overflow_[at] += count;
  }
  map[std::move(labels)] += count;
}

void Tally::add(Metric metric, Metrics::Values labels, std::uint64_t count) {
  std::unique_lock lock(mutex_);
  add_locked(metric, std::move(labels), count);
}

void Tally::count(const Item& item) {
  std::unique_lock lock(mutex_);
  switch (item.kind) {
    case ItemKind::kEvent:
      add_locked(Metric::kEvents, {item.event}, 1);
      if (!item.verdict.empty()) add_locked(Metric::kVerdicts, {item.verdict}, 1);
      break;
    case ItemKind::kAlert:
      add_locked(Metric::kAlerts, {item.rule, std::string(severity_name(item.severity))}, 1);
      break;
    case ItemKind::kLoss:
      add_locked(Metric::kEventsLost, {item.reason}, item.lost);
      break;
  }
}

void Tally::fill(Metrics& metrics) const {
  std::unique_lock lock(mutex_);
  for (std::size_t i = 0; i < kMetrics; ++i) {
    for (const auto& [labels, count] : counts_[i]) metrics.set(static_cast<Metric>(i), count, labels);
    metrics.overflow[i] += overflow_[i];
  }
}

}  // namespace gpuwatch::sink
