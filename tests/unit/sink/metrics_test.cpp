// SPDX-License-Identifier: Apache-2.0
// The exposition is what promtool accepts, labels are harmless and few, and the
// page of metrics is that of the table.
#include "sink/metrics.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>

#include "nlohmann/json.hpp"
#include "unit/support.h"

namespace gpuwatch::sink {
namespace {

std::string sources_of(const std::string& room) {
  std::string all;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(USERSPACE_DIR) + "/" + room))
    if (entry.path().extension() == ".cpp") all += test::slurp(entry.path().string());
  return all;
}

// A value for every metric of the table, with labels a hostile program chose.
Metrics full_metrics() {
  Metrics metrics;
  for (std::size_t i = 0; i < kMetrics; ++i) {
    metrics.set(static_cast<Metric>(i), 1 + i, {"a\"b\\c\nd", "\xff\xfe", "plain"});
    metrics.set(static_cast<Metric>(i), 0.5, {"z"});
  }
  QueueCounts counts;
  counts.sent = 5;
  counts.last_success_unix_ns = 1'700'000'000'000'000'000;
  metrics.add_queue("file", counts, {});
  return metrics;
}

TEST(Metrics, TableFollowsTheConventions) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kMetrics; ++i) {
    const MetricInfo& info = metric_info(static_cast<Metric>(i));
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_TRUE(info.name.starts_with("gpuwatch_")) << info.name;
    EXPECT_EQ(info.name.ends_with("_total"), info.type == MetricType::kCounter) << info.name;
    EXPECT_TRUE(info.meaning.ends_with(".")) << info.name;
    for (const std::string_view banned : {"pid", "container", "comm", "uid"})
      EXPECT_EQ(info.labels.find(banned), std::string_view::npos) << info.name;
  }
}

// Whoever reads the page finds the metric: some line of code gives it a value.
TEST(Metrics, EveryMetricIsFilled) {
  const std::string sources = sources_of("sink") + sources_of("daemon");
  const std::string table = test::slurp(std::string(USERSPACE_DIR) + "/sink/metrics.def");
  const std::regex row(R"(\nMETRIC\((k\w+), )");
  std::size_t rows = 0;
  for (std::sregex_iterator at(table.begin(), table.end(), row), end; at != end; ++at, ++rows)
    EXPECT_NE(sources.find("Metric::" + at->str(1)), std::string::npos) << at->str(1);
  EXPECT_EQ(rows, kMetrics);
}

TEST(Metrics, Renders) {
  Metrics metrics;
  metrics.set(Metric::kEvents, 3, {"module.load"});
  metrics.set(Metric::kEvents, 4, {"module.load"});  // counters add up
  metrics.set(Metric::kGpuMemory, 5, {"0", "GPU-1", "host"});
  metrics.set(Metric::kGpuMemory, 1e17, {"0", "GPU-1", "host"});  // of a gauge the last one stays
  metrics.set(Metric::kGpuMemory, 7, {"1"});
  metrics.set(Metric::kStartTime, 1.25);
  EXPECT_EQ(render(metrics),
            "# HELP gpuwatch_start_time_seconds When the daemon started, since 1970.\n"
            "# TYPE gpuwatch_start_time_seconds gauge\n"
            "gpuwatch_start_time_seconds 1.25\n"
            "# HELP gpuwatch_events_total Events by kind, as in gpuwatch-json(5).\n"
            "# TYPE gpuwatch_events_total counter\n"
            "gpuwatch_events_total{kind=\"module.load\"} 7\n"
            "# HELP gpuwatch_gpu_memory_bytes GPU memory that watched processes hold.\n"
            "# TYPE gpuwatch_gpu_memory_bytes gauge\n"
            "gpuwatch_gpu_memory_bytes{gpu=\"0\",UUID=\"GPU-1\",Hostname=\"host\"} 1e+17\n"
            "gpuwatch_gpu_memory_bytes{gpu=\"1\"} 7\n");
}

TEST(Metrics, HostileLabelsAreEscapedAndCut) {
  Metrics metrics;
  metrics.set(Metric::kAlerts, 1, {"a\"} 1\n# \\", std::string(5000, 's')});
  const std::string text = render(metrics);
  EXPECT_NE(text.find("{rule=\"a\\\"} 1\\n# \\\\\",severity=\"" + std::string(kMaxLabelBytes, 's') + "\"} 1\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

TEST(Metrics, CardinalityIsBounded) {
  Metrics metrics;
  for (int i = 0; i < 10'000; ++i) metrics.set(Metric::kEvents, 1, {std::to_string(i)});
  const std::string text = render(metrics);
  EXPECT_NE(text.find("gpuwatch_events_total{kind=\"other\"} 9744\n"), std::string::npos);
  EXPECT_NE(text.find("gpuwatch_label_overflow_total{metric=\"gpuwatch_events_total\"} 9744\n"), std::string::npos);
  EXPECT_LE(metrics.series[static_cast<std::size_t>(Metric::kEvents)].size(), kMaxSeries + 1);
}

TEST(Metrics, PromtoolAcceptsAll) {
  if (std::system("command -v promtool >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "promtool is not installed (Debian package prometheus)";
  const test::ScratchDir dir;
  test::spill(dir.file("metrics"), render(full_metrics()));
  const std::string out = dir.file("out");
  const std::string command = "promtool check metrics <" + dir.file("metrics") + " >" + out + " 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << test::slurp(out);
  EXPECT_EQ(test::slurp(out), "");
  // And it does tell: a broken exposition fails.
  test::spill(dir.file("metrics"), render(full_metrics()) + "gpuwatch_events_total{kind=\"x} 1\n");
  EXPECT_NE(std::system(command.c_str()), 0);
}

std::set<std::string> metrics_named_in(const std::string& text) {
  std::set<std::string> names;
  const std::regex name("gpuwatch_[a-z_]+");
  for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) names.insert(at->str());
  return names;
}

void expect_in_table(const std::set<std::string>& names) {
  std::set<std::string_view> table;
  for (std::size_t i = 0; i < kMetrics; ++i) table.insert(metric_info(static_cast<Metric>(i)).name);
  for (const std::string& name : names) EXPECT_TRUE(table.contains(name)) << name;
}

TEST(Metrics, DashboardShowsMetricsThatAre) {
  const auto dashboard = nlohmann::json::parse(test::slurp(std::string(USERSPACE_DIR) + "/sink/grafana/gpuwatch.json"));
  std::set<int> ids;
  std::size_t expressions = 0;
  std::set<std::string> names;
  for (const auto& panel : dashboard["panels"]) {
    EXPECT_TRUE(ids.insert(panel["id"].get<int>()).second);
    EXPECT_LE(panel["gridPos"]["x"].get<int>() + panel["gridPos"]["w"].get<int>(), 24);
    if (panel["type"] == "row") continue;
    ASSERT_FALSE(panel["targets"].empty()) << panel["title"];
    for (const auto& target : panel["targets"]) {
      const auto found = metrics_named_in(target["expr"].get<std::string>());
      EXPECT_FALSE(found.empty()) << target["expr"];
      names.insert(found.begin(), found.end());
      ++expressions;
    }
  }
  expect_in_table(names);
  EXPECT_GT(expressions, 20U);
  EXPECT_GT(names.size(), 15U);
}

TEST(Metrics, RulesAreAboutMetricsThatAreAndFire) {
  const std::string path = std::string(USERSPACE_DIR) + "/sink/prometheus/gpuwatch.rules.yml";
  std::string rules = test::slurp(path);
  const auto names = metrics_named_in(rules);
  EXPECT_GT(names.size(), 6U);
  expect_in_table(names);
  if (std::system("command -v promtool >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "promtool is not installed (Debian package prometheus)";
  const test::ScratchDir dir;
  const std::string out = dir.file("out");
  EXPECT_EQ(std::system(("promtool check rules " + path + " >" + out + " 2>&1").c_str()), 0) << test::slurp(out);
  std::string cases = test::slurp(std::string(TESTS_DIR) + "/unit/sink/rules_test.yml");
  cases.replace(cases.find("RULES"), 5, path);
  test::spill(dir.file("cases.yml"), cases);
  EXPECT_EQ(std::system(("promtool test rules " + dir.file("cases.yml") + " >" + out + " 2>&1").c_str()), 0)
      << test::slurp(out);
}

TEST(Metrics, PageIsThatOfTheTable) {
  const std::string path = std::string(USERSPACE_DIR) + "/sink/METRICS.md";
  if (std::getenv("GPUWATCH_REGEN") != nullptr) test::spill(path, metrics_page());
  EXPECT_EQ(test::slurp(path), metrics_page()) << "make it again: GPUWATCH_REGEN=1 unit-sink "
                                                  "--gtest_filter=Metrics.PageIsThatOfTheTable";
  for (std::size_t i = 0; i < kMetrics; ++i)
    EXPECT_NE(metrics_page().find("`" + std::string(metric_info(static_cast<Metric>(i)).name) + "`"),
              std::string::npos);
}

}  // namespace
}  // namespace gpuwatch::sink
