// SPDX-License-Identifier: Apache-2.0
// Items are counted under their labels, without end in number, with an end in
// labels.
#include "sink/tally.h"

#include <gtest/gtest.h>

namespace gpuwatch::sink {
namespace {

double value(const Metrics& metrics, Metric metric, const Metrics::Values& labels) {
  const auto& series = metrics.series[static_cast<std::size_t>(metric)];
  const auto found = series.find(labels);
  return found == series.end() ? -1 : found->second;
}

TEST(Tally, CountsByKind) {
  Tally tally;
  Item event;
  event.event = "module.load";
  event.verdict = "unknown";
  Item alert;
  alert.kind = ItemKind::kAlert;
  alert.rule = "miner";
  alert.severity = Severity::kWarning;
  Item loss;
  loss.kind = ItemKind::kLoss;
  loss.reason = "ring_full";
  loss.lost = 7;
  for (int i = 0; i < 3; ++i) {
    tally.count(event);
    tally.count(alert);
    tally.count(loss);
  }
  tally.add(Metric::kReloads, {"success"});
  Metrics metrics;
  tally.fill(metrics);
  EXPECT_EQ(value(metrics, Metric::kEvents, {"module.load"}), 3);
  EXPECT_EQ(value(metrics, Metric::kVerdicts, {"unknown"}), 3);
  EXPECT_EQ(value(metrics, Metric::kAlerts, {"miner", "warning"}), 3);
  EXPECT_EQ(value(metrics, Metric::kEventsLost, {"ring_full"}), 21);
  EXPECT_EQ(value(metrics, Metric::kReloads, {"success"}), 1);
  EXPECT_EQ(value(metrics, Metric::kVerdicts, {"denied"}), 0);
  EXPECT_EQ(value(metrics, Metric::kEventsLost, {"overwritten"}), 0);
}

TEST(Tally, OverflowNeverTakesASeriesAway) {
  Tally tally(10);
  Item alert;
  alert.kind = ItemKind::kAlert;
  for (int round = 0; round < 2; ++round) {
    for (int i = 99; i >= 0; --i) {
      alert.rule = "rule-" + std::to_string(i);
      tally.count(alert);
    }
    Metrics metrics;
    tally.fill(metrics);
    const double rounds = round + 1;
    EXPECT_EQ(value(metrics, Metric::kAlerts, {"rule-99", "info"}), rounds);
    EXPECT_EQ(value(metrics, Metric::kAlerts, {"rule-0", "info"}), -1);
    EXPECT_EQ(value(metrics, Metric::kAlerts, {"other", "other"}), 90 * rounds);
    EXPECT_NE(render(metrics).find("gpuwatch_label_overflow_total{metric=\"gpuwatch_alerts_total\"} " +
                                   std::to_string(90 * (round + 1)) + "\n"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace gpuwatch::sink
