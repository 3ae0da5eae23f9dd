// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <time.h>

#include <limits>

namespace gpuwatch::base {

namespace {

std::uint64_t now_ns(clockid_t clock) {
  timespec ts{};
  ::clock_gettime(clock, &ts);
  return static_cast<std::uint64_t>(ts.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(ts.tv_nsec);
}

std::int64_t offset_to(clockid_t clock) {
  std::uint64_t best_gap = std::numeric_limits<std::uint64_t>::max();
  std::int64_t best = 0;
  for (int round = 0; round < 8; ++round) {
    const std::uint64_t before = now_ns(CLOCK_MONOTONIC);
    const std::uint64_t other = now_ns(clock);
    const std::uint64_t after = now_ns(CLOCK_MONOTONIC);
    if (after - before >= best_gap) continue;
    best_gap = after - before;
    best = static_cast<std::int64_t>(other) - static_cast<std::int64_t>(before + best_gap / 2);
  }
  return best;
}

}  // namespace

std::uint64_t monotonic_ns() {
  return now_ns(CLOCK_MONOTONIC);
}
std::uint64_t boottime_ns() {
  return now_ns(CLOCK_BOOTTIME);
}
std::uint64_t realtime_ns() {
  return now_ns(CLOCK_REALTIME);
}

ClockOffsets measure_clock_offsets() {
  return {offset_to(CLOCK_REALTIME), offset_to(CLOCK_BOOTTIME)};
}

}  // namespace gpuwatch::base
