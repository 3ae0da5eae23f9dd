// SPDX-License-Identifier: Apache-2.0
#include "daemon/retired.h"

#include <algorithm>
#include <string>

#include "daemon/log.h"

namespace gpuwatch::daemon {

namespace {

// Each may hold full queues: with more of them a reload waits for one to end.
constexpr std::size_t kMost = 8;

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
  all_.push_back({std::move(outputs), stop_time, {}});
  look();
  // What the worker still holds is not ended under its hands: it would lose items.
  while (all_.size() > kMost) {
    const auto ending = std::find_if(all_.begin(), all_.end(), [](const One& one) { return one.ended.valid(); });
    if (ending == all_.end()) return;
    ending->ended.wait();
    all_.erase(ending);
  }
}

void RetiredOutputs::look() {
  for (One& one : all_)
    if (one.outputs.use_count() == 1) end(one);
  std::erase_if(all_, [](const One& one) { return has_ended(one.ended); });
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
