// SPDX-License-Identifier: Apache-2.0
// What a verdict tells of code that is not the file's.
#include "probe/verify.h"

#include <gtest/gtest.h>

namespace gpuwatch::probe {
namespace {

TEST(TellDifferences, NamesUnitsAndCountsBytes) {
  std::vector<std::uint8_t> expected(400, 7);
  std::vector<std::uint8_t> resident = expected;
  resident[30] = 8;
  resident[31] = 9;
  resident[399] = 1;
  FunctionVerdict verdict;
  tell_differences(expected, resident, verdict);
  EXPECT_EQ(verdict.first_offset, 30u);
  EXPECT_EQ(verdict.different_bytes, 3u);
  ASSERT_EQ(verdict.differences.size(), 2u);
  EXPECT_EQ(verdict.differences[0].offset, 16u);
  EXPECT_EQ(verdict.differences[0].resident[14], 8);
  EXPECT_EQ(verdict.differences[0].expected[14], 7);
  EXPECT_EQ(verdict.differences[1].offset, 384u);
  EXPECT_EQ(verdict.differences[1].resident.size(), 16u);
}

TEST(TellDifferences, OfManyUnitsTheFirst) {
  const std::vector<std::uint8_t> expected(1000, 0);
  const std::vector<std::uint8_t> resident(990, 1);
  FunctionVerdict verdict;
  tell_differences(expected, resident, verdict);
  EXPECT_EQ(verdict.first_offset, 0u);
  EXPECT_EQ(verdict.different_bytes, 990u);
  EXPECT_EQ(verdict.differences.size(), kDifferencesMax);
}

TEST(TellDifferences, NothingOfEqualCode) {
  FunctionVerdict verdict;
  tell_differences(std::vector<std::uint8_t>{1, 2}, std::vector<std::uint8_t>{1, 2}, verdict);
  EXPECT_EQ(verdict.different_bytes, 0u);
  EXPECT_TRUE(verdict.differences.empty());
}

}  // namespace
}  // namespace gpuwatch::probe
