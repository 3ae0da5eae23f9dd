// SPDX-License-Identifier: Apache-2.0
// See metrics.h.
#include "sink/metrics.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "base/escape.h"

namespace gpuwatch::sink {

namespace {

constexpr MetricInfo kTable[] = {
#define METRIC(enumerator, name, type, labels, meaning) {name, MetricType::type, labels, meaning},
#include "sink/metrics.def"
#undef METRIC
};

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> found;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    found.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return found;
}

std::string_view type_name(MetricType type) {
  return type == MetricType::kCounter ? "counter" : "gauge";
}

// As the format wants it: backslash, quote and newline escaped, UTF-8.
void append_label(std::string& out, std::string_view value) {
  for (const char c : base::to_utf8(value)) {
    if (c == '\n') {
      out += "\\n";
    } else {
      if (c == '\\' || c == '"') out += '\\';
      out += c;
    }
  }
}

void append_value(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
  } else if (std::fabs(value) < 9.0e15 && value == std::floor(value)) {
    out += std::to_string(static_cast<std::int64_t>(value));
  } else {
    char digits[40];
    const auto result = std::to_chars(digits, digits + sizeof digits, value);
    out.append(digits, result.ptr);
  }
}

void append_series(std::string& out, const MetricInfo& info, const Metrics::Values& values, double value) {
  out += info.name;
  const auto names = words(info.labels);
  char before = '{';
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (values[i].empty()) continue;
    out += std::exchange(before, ',');
    out += names[i];
    out += "=\"";
    append_label(out, values[i]);
    out += '"';
  }
  if (before == ',') out += '}';
  out += ' ';
  append_value(out, value);
  out += '\n';
}

void append_head(std::string& out, const MetricInfo& info) {
  out += "# HELP ";
  out += info.name;
  out += ' ';
  out += info.meaning;
  out += "\n# TYPE ";
  out += info.name;
  out += ' ';
  out += type_name(info.type);
  out += '\n';
}

double seconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

}  // namespace

const MetricInfo& metric_info(Metric metric) {
  return kTable[static_cast<std::size_t>(metric)];
}

void Metrics::put(Metric metric, double value, Values labels) {
  const MetricInfo& info = metric_info(metric);
  const auto at = static_cast<std::size_t>(metric);
  labels.resize(words(info.labels).size());
  for (std::string& label : labels)
    if (label.size() > kMaxLabelBytes) label.resize(kMaxLabelBytes);
  auto& map = series[at];
  if (map.size() >= kMaxSeries && !map.contains(labels)) {
    labels.assign(labels.size(), "other");
    ++overflow[at];
    map[labels] += value;
    return;
  }
  double& place = map[std::move(labels)];
  place = info.type == MetricType::kCounter ? place + value : value;
}

void Metrics::add_queue(const std::string& name, const QueueCounts& counts, const QueueLimits& limits) {
  set(Metric::kQueueItems, counts.items, {name});
  set(Metric::kQueueBytes, counts.bytes, {name});
  set(Metric::kQueueLimit, limits.items, {name});
  set(Metric::kSinkSent, counts.sent, {name});
  set(Metric::kSinkDropped, counts.dropped_full, {name, "full"});
  set(Metric::kSinkDropped, counts.dropped_failed, {name, "failed"});
  set(Metric::kSinkDropped, counts.dropped_closed + counts.rejected_closed, {name, "closed"});
  set(Metric::kSinkFailures, counts.failures, {name});
  set(Metric::kSinkRetries, counts.retries, {name});
  set(Metric::kSinkSuccess, !counts.failing, {name});
  if (counts.last_success_unix_ns != 0) set(Metric::kSinkSuccessTime, seconds(counts.last_success_unix_ns), {name});
}

std::string render(const Metrics& metrics) {
  std::string out;
  for (std::size_t i = 0; i < kMetrics; ++i) {
    if (static_cast<Metric>(i) == Metric::kLabelOverflow) continue;
    if (metrics.series[i].empty()) continue;
    append_head(out, kTable[i]);
    for (const auto& [values, value] : metrics.series[i]) append_series(out, kTable[i], values, value);
  }
  // What this snapshot folded, on top of what its maker says.
  auto overflow = metrics.series[static_cast<std::size_t>(Metric::kLabelOverflow)];
  for (std::size_t i = 0; i < kMetrics; ++i)
    if (metrics.overflow[i] != 0) overflow[{std::string(kTable[i].name)}] += static_cast<double>(metrics.overflow[i]);
  if (!overflow.empty()) {
    append_head(out, metric_info(Metric::kLabelOverflow));
    for (const auto& [values, value] : overflow) append_series(out, metric_info(Metric::kLabelOverflow), values, value);
  }
  return out;
}

std::string metrics_page() {
  std::string out =
      "<!-- SPDX-License-Identifier: Apache-2.0 -->\n# Metrics\n\n"
      "Made from metrics.def; change that, then `GPUWATCH_REGEN=1 build/user/tests/unit-sink\n"
      "--gtest_filter=Metrics.PageIsThatOfTheTable`. A metric whose value is not known is left out.\n\n"
      "| metric | type | labels | meaning |\n|---|---|---|---|\n";
  for (const MetricInfo& info : kTable) {
    out += "| `";
    out += info.name;
    out += "` | ";
    out += type_name(info.type);
    out += " | ";
    std::string_view comma;
    for (const std::string_view label : words(info.labels)) {
      out += comma;
      out += '`';
      out += label;
      out += '`';
      comma = ", ";
    }
    out += " | ";
    out += info.meaning;
    out += " |\n";
  }
  out +=
      "\nNo label carries a pid or a container id. A metric has at most 256 series; counts beyond go to the label "
      "value\n"
      "`other` and are told by `gpuwatch_label_overflow_total`. `gpu` (minor of the node), `UUID` and `Hostname` are "
      "the\n"
      "labels of dcgm-exporter, where they are asked for.\n";
  return out;
}

}  // namespace gpuwatch::sink
