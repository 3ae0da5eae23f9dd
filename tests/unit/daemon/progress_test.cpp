// SPDX-License-Identifier: Apache-2.0
// Unit tests of what outlives a process: what was told is not told again, what
// was taken and not told is counted, and foreign memory is refused.
#include "daemon/progress.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace gpuwatch::daemon {
namespace {

gpuwatch_rec at(std::uint32_t cpu, std::uint64_t seq) {
  gpuwatch_rec head{};
  head.cpu = static_cast<decltype(head.cpu)>(cpu);
  head.seq = seq;
  return head;
}

TEST(Progress, TheNextProcessGoesOn) {
  auto first = Progress::create();
  ASSERT_TRUE(first.ok());
  for (std::uint64_t seq = 0; seq < 10; ++seq) {
    EXPECT_TRUE(first->wanted(at(0, seq)));
    first->done(at(0, seq));
  }
  model::LossCounts told;
  told.by_reason[0] = 5;
  first->set_told(told);
  auto second = Progress::adopt(base::Fd(::dup(first->fd())));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->told(), told);
  // 7 to 9 come again, 10 and 11 were in the first one's hands.
  for (std::uint64_t seq = 7; seq < 10; ++seq) EXPECT_FALSE(second->wanted(at(0, seq)));
  EXPECT_TRUE(second->wanted(at(0, 12)));
  EXPECT_TRUE(second->wanted(at(0, 15))) << "later gaps are the ring's own";
  EXPECT_EQ(second->missed(), 2u);
  EXPECT_TRUE(second->wanted(at(3, 4))) << "a CPU nobody had worked off";
  EXPECT_EQ(second->missed(), 6u);
  EXPECT_TRUE(second->wanted(at(Progress::kCpusMax, 1)));
}

TEST(Progress, ForeignMemoryIsRefused) {
  const int small = ::memfd_create("small", 0);
  EXPECT_FALSE(Progress::adopt(base::Fd(small)).ok());
  auto good = Progress::create();
  const int zeros = ::memfd_create("zeros", 0);
  ASSERT_EQ(::ftruncate(zeros, ::lseek(good->fd(), 0, SEEK_END)), 0);
  EXPECT_FALSE(Progress::adopt(base::Fd(zeros)).ok());
  EXPECT_FALSE(Progress::adopt(base::Fd()).ok());
}

}  // namespace
}  // namespace gpuwatch::daemon
