// SPDX-License-Identifier: Apache-2.0
// Unit tests of SinkWatch: a failure and its end are told once each, and one
// that comes and goes does not fill the log.
#include "daemon/sink_watch.h"

#include <gtest/gtest.h>

namespace gpuwatch::daemon {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(SinkWatch, ToldWhenItBeginsAndWhenItEnds) {
  SinkWatch watch;
  EXPECT_TRUE(watch.changed({{"file", false, ""}, {"webhook", false, ""}}, kSecond).empty());
  const auto begun = watch.changed({{"file", false, ""}, {"webhook", true, "refused"}}, 2 * kSecond);
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_EQ(begun[0].name, "webhook");
  EXPECT_EQ(begun[0].error, "refused");
  EXPECT_TRUE(watch.changed({{"webhook", true, "refused"}}, 200 * kSecond).empty()) << "it was told";
  const auto ended = watch.changed({{"webhook", false, ""}}, 300 * kSecond);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_FALSE(ended[0].failing);
}

TEST(SinkWatch, OneThatComesAndGoesIsToldOnceAMinute) {
  SinkWatch watch;
  std::size_t told = 0;
  for (std::uint64_t second = 1; second <= 600; ++second)
    told += watch.changed({{"exec", second % 2 == 0, "x"}}, second * kSecond).size();
  EXPECT_GE(told, 2u);
  EXPECT_LE(told, 11u);
}

TEST(SinkWatch, OutputsAreFollowedApart) {
  SinkWatch watch;
  EXPECT_EQ(watch.changed({{"a", true, "x"}}, kSecond).size(), 1u);
  EXPECT_EQ(watch.changed({{"a", true, "x"}, {"b", true, "y"}}, 2 * kSecond).size(), 1u);
}

}  // namespace
}  // namespace gpuwatch::daemon
