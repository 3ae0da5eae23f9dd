// SPDX-License-Identifier: Apache-2.0
// The kernel's clocks as nanoseconds, and the distances between them. Records
// are stamped with CLOCK_MONOTONIC; people want wall-clock time.
#pragma once

#include <cstdint>

namespace gpuwatch::base {

std::uint64_t monotonic_ns();
std::uint64_t boottime_ns();
std::uint64_t realtime_ns();

// What to add to a CLOCK_MONOTONIC value to get the other clock's.
struct ClockOffsets {
  std::int64_t realtime_minus_monotonic_ns = 0;
  std::int64_t boottime_minus_monotonic_ns = 0;
};

// Reads the clocks in pairs and keeps the tightest pair, so that being
// preempted between two reads does not spoil the result.
ClockOffsets measure_clock_offsets();

}  // namespace gpuwatch::base
