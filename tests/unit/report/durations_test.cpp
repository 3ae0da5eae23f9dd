// SPDX-License-Identifier: Apache-2.0
// Quantiles against the exact ones of a sorted list; bounds under hostile spread.
#include "report/durations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace gpuwatch::report {
namespace {

std::uint64_t exact(std::vector<std::uint64_t> values, double fraction) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(values.size())));
  return values[rank == 0 ? 0 : rank - 1];
}

TEST(Durations, EmptyIsZero) {
  const Durations none;
  EXPECT_EQ(none.count(), 0U);
  EXPECT_EQ(none.quantile_ns(0.5), 0U);
  EXPECT_EQ(none.max_ns(), 0U);
}

TEST(Durations, OneValueIsEveryQuantile) {
  Durations one;
  one.add(123'456'789);
  for (const double fraction : {0.0, 0.5, 0.99, 1.0}) EXPECT_EQ(one.quantile_ns(fraction), 123'456'789U);
  EXPECT_EQ(one.total_ns(), 123'456'789U);
}

TEST(Durations, SmallValuesAreExact) {
  Durations times;
  for (std::uint64_t ns = 0; ns < 32; ++ns) times.add(ns);
  EXPECT_EQ(times.quantile_ns(0.5), 15U);
  EXPECT_EQ(times.quantile_ns(1), 31U);
}

TEST(Durations, QuantilesAreWithinOneBucketOfTheExactOnes) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> spread(9, 1.2);  // microseconds, with a tail
  Durations times;
  std::vector<std::uint64_t> all;
  for (int i = 0; i < 20000; ++i) {
    all.push_back(static_cast<std::uint64_t>(spread(random)));
    times.add(all.back());
  }
  for (const double fraction : {0.01, 0.25, 0.5, 0.9, 0.99, 0.999}) {
    const auto want = static_cast<double>(exact(all, fraction));
    EXPECT_NEAR(static_cast<double>(times.quantile_ns(fraction)), want, want / 16) << fraction;
  }
  EXPECT_EQ(times.max_ns(), *std::max_element(all.begin(), all.end()));
}

TEST(Durations, ManyMagnitudesStillGiveTheRightOne) {
  Durations times;
  std::vector<std::uint64_t> all;
  for (unsigned bit = 0; bit < 64; ++bit)
    for (unsigned part = 0; part < 16; ++part) {
      all.push_back((std::uint64_t{1} << bit) + (bit > 4 ? (std::uint64_t{part} << (bit - 4)) : 0));
      times.add(all.back());
    }
  for (const double fraction : {0.1, 0.5, 0.9}) {
    const auto want = static_cast<double>(exact(all, fraction));
    EXPECT_NEAR(static_cast<double>(times.quantile_ns(fraction)), want, want / 2) << fraction;
  }
  EXPECT_EQ(times.count(), 1024U);
}

}  // namespace
}  // namespace gpuwatch::report
