// SPDX-License-Identifier: Apache-2.0
// Fuzz target: what reaches the sinks from outside, chosen by the first byte: the
// URL of a webhook, a request to the metrics endpoint, values of labels, texts
// in lines of alerts.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "publish/alert_json.h"
#include "sink/exposition.h"
#include "sink/metrics.h"
#include "sink/url.h"

namespace {

using namespace gpuwatch;

void must(bool holds) {
  if (!holds) std::abort();
}

// Whatever is taken says the same when it is read again, and holds no byte that
// could end a line of a request.
void url(std::string_view text) {
  auto first = sink::parse_url(text);
  if (!first.ok()) return;
  const std::string whole = first->origin() + first->target;
  must(std::all_of(whole.begin(), whole.end(), [](char c) { return c > 0x20 && c < 0x7f; }));
  auto again = sink::parse_url(whole);
  must(again.ok() && again->origin() == first->origin() && again->target == first->target);
  must(again->loopback() == first->loopback());
}

void request(std::string_view text) {
  const sink::Request parsed = sink::parse_request(text);
  if (parsed.asked == sink::Asked::kMetrics)
    must(text.starts_with("GET /metrics") || text.starts_with("HEAD /metrics"));
}

// Three lines, whatever the values are: HELP, TYPE, one series.
void labels(std::string_view text) {
  const std::size_t half = text.size() / 2;
  sink::Metrics metrics;
  metrics.set(sink::Metric::kAlerts, 1, {std::string(text.substr(0, half)), std::string(text.substr(half))});
  const std::string page = sink::render(metrics);
  must(std::count(page.begin(), page.end(), '\n') == 3 && page.ends_with(" 1\n"));
}

void lines(std::string_view text) {
  const std::size_t third = text.size() / 3;
  const std::vector<std::string> attack = {std::string(text.substr(0, third))};
  publish::AlertLine alert;
  alert.rule = text.substr(0, third);
  alert.title = text.substr(third, third);
  alert.host_name = text.substr(2 * third);
  alert.attack = attack;
  std::string out;
  publish::append_json_alert(out, alert);
  must(std::count(out.begin(), out.end(), '\n') == 1 && nlohmann::json::accept(out));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::vector<char> copy(data + 1, data + size);
  const std::string_view text(copy.data(), copy.size());
  switch (data[0] % 4) {
    case 0:
      url(text);
      break;
    case 1:
      request(text);
      break;
    case 2:
      labels(text);
      break;
    default:
      lines(text);
  }
  return 0;
}
