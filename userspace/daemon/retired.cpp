// SPDX-License-Identifier: Apache-2.0
#include "daemon/retired.h"

#include <string>

#include "base/clock.h"
#include "daemon/log.h"

namespace gpuwatch::daemon {

namespace {

// Each may hold full queues: with more of them a reload waits for the oldest.
constexpr std::size_t kMost = 8;
// A worker that is busy for longer keeps the outputs, but they end.
constexpr std::uint64_t kHeldNs = 10'000'000'000;

bool has_ended(const std::future<void>& ended) {
  return ended.valid() && ended.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

void RetiredOutputs::end(One& one) {
  if (one.ended.valid()) return;
  one.ended = std::async(std::launch::async, [outputs = one.outputs.get(), limit = one.stop_time] {
    outputs->stop(limit);
    if (const std::string left = outputs->left_behind(); !left.empty())
      say(Level::kWarning, "sinks of the configuration before did not take all in stop_time; dropped: " + left);
  });
}

void RetiredOutputs::add(std::shared_ptr<Outputs> outputs, std::chrono::milliseconds stop_time) {
  if (all_.size() >= kMost) {
    end(all_.front());
    all_.front().ended.wait();
    all_.pop_front();
  }
  all_.push_back({std::move(outputs), stop_time, base::monotonic_ns(), {}});
}

void RetiredOutputs::look() {
  for (One& one : all_)
    if (one.outputs.use_count() == 1 || base::monotonic_ns() - one.since_ns > kHeldNs) end(one);
  std::erase_if(all_, [](const One& one) { return has_ended(one.ended) && one.outputs.use_count() == 1; });
}

void RetiredOutputs::begin_end() {
  for (One& one : all_) end(one);
}

void RetiredOutputs::finish() {
  begin_end();
  for (One& one : all_) one.ended.wait();
  all_.clear();
}

}  // namespace gpuwatch::daemon
