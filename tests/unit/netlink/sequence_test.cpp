// SPDX-License-Identifier: Apache-2.0
#include "netlink/sequence.h"

#include <gtest/gtest.h>

namespace gpuwatch::netlink {
namespace {

TEST(Sequence, GapsAreCounted) {
  Sequence sequence;
  EXPECT_EQ(sequence.see(1, 10, false), 0U);  // the first one tells where we are
  EXPECT_EQ(sequence.see(1, 11, false), 0U);
  EXPECT_EQ(sequence.see(1, 15, false), 3U);
  EXPECT_EQ(sequence.see(1, 16, false), 0U);
}

TEST(Sequence, HeartbeatShowsALossAtTheTail) {
  Sequence sequence;
  EXPECT_EQ(sequence.see(1, 10, false), 0U);
  EXPECT_EQ(sequence.see(1, 10, true), 0U);
  EXPECT_EQ(sequence.see(1, 14, true), 4U);
  EXPECT_EQ(sequence.see(1, 15, false), 0U);
}

TEST(Sequence, StartedByAnAnswer) {
  Sequence sequence;
  sequence.start(1, 10);
  EXPECT_EQ(sequence.see(1, 9, false), 0U);  // was under way when we asked
  EXPECT_EQ(sequence.see(1, 13, false), 2U);
}

TEST(Sequence, AnotherInstanceBeganWithOne) {
  Sequence sequence;
  EXPECT_EQ(sequence.see(1, 100, false), 0U);
  EXPECT_EQ(sequence.see(2, 4, true), 4U);
  EXPECT_EQ(sequence.see(2, 5, false), 0U);
  EXPECT_EQ(*sequence.instance(), 2U);
}

TEST(Sequence, HeartbeatFirst) {
  Sequence sequence;
  EXPECT_EQ(sequence.see(1, 0, true), 0U);
  EXPECT_EQ(sequence.see(1, 1, false), 0U);
  EXPECT_EQ(sequence.see(1, 3, false), 1U);
}

}  // namespace
}  // namespace gpuwatch::netlink
