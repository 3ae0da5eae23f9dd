// SPDX-License-Identifier: Apache-2.0
// Names the parts of a program's run on standard output, by the clock that
// records carry: "phase NAME NANOSECONDS" opens a part and ends the one before,
// "per NAME MICROSECONDS" is the mean time of one round of it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <ctime>

inline std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

inline std::uint64_t phase(const char* name) {
  const std::uint64_t now = monotonic_ns();
  std::printf("phase %s %llu\n", name, static_cast<unsigned long long>(now));
  return now;
}

inline void per_round(const char* name, std::uint64_t begin_ns, int rounds) {
  std::printf("per %s %.3f\n", name, static_cast<double>(monotonic_ns() - begin_ns) / 1e3 / rounds);
}
