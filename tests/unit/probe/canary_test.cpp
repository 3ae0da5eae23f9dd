// SPDX-License-Identifier: Apache-2.0
// The canary's judge, and that work in lanes is the work of the kernel bit for bit.
#include "probe/canary.h"

#include <gtest/gtest.h>

#include <cstring>

#include "probe/canary_lanes.h"

namespace gpuwatch::probe {
namespace {

TEST(Canary, WorkInLanesIsThatOfOneThread) {
  for (const std::uint64_t seed :
       {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}, std::uint64_t{0x0123456789abcdef}})
    for (const std::uint32_t first : {0u, 7u, 960u, 67'500u, 0xfffffff0u}) {
      std::vector<std::uint64_t> all(133);
      canary_works(seed, first, all);
      for (std::uint32_t i = 0; i < all.size(); ++i)
        ASSERT_EQ(all[i], kernels::canary_work(seed, first + i)) << seed << " " << first << " " << i;
    }
}

CanaryRun good_run() {
  CanaryRun run;
  run.seed = 99;
  for (std::uint32_t block = 0; block < 12; ++block) run.blocks.push_back({block % 3, 1, 1000, 301'000, 500, 600'500});
  for (std::uint32_t thread = 0; thread < 12 * kernels::kCanaryThreads; ++thread)
    run.results.push_back(kernels::canary_work(run.seed, thread));
  return run;
}

TEST(Canary, GoodWorkIsGood) {
  const CanaryVerdict verdict = judge(good_run());
  EXPECT_TRUE(verdict.good(3));
  EXPECT_FALSE(verdict.good(4));
  EXPECT_EQ(verdict.results, 12u * kernels::kCanaryThreads);
  EXPECT_DOUBLE_EQ(verdict.clock_mhz, 2000);
  EXPECT_DOUBLE_EQ(verdict.gpu_ms, 0.3);
}

TEST(Canary, EachWrongBitIsSeen) {
  for (const std::size_t at : {0u, 1u, 15u, 16u, 127u, 128u, 1535u}) {
    CanaryRun run = good_run();
    run.results[at] ^= std::uint64_t{1} << (at % 64);
    const CanaryVerdict verdict = judge(run);
    EXPECT_EQ(verdict.wrong, 1u) << at;
    EXPECT_FALSE(verdict.good(3));
  }
}

TEST(Canary, AnotherSeedIsAllWrong) {
  CanaryRun run = good_run();
  run.seed = 100;
  EXPECT_EQ(judge(run).wrong, run.results.size());
}

TEST(Canary, TimersThatStandStillAndNothingAtAll) {
  CanaryRun run = good_run();
  run.blocks[5].time_end_ns = run.blocks[5].time_begin_ns;
  EXPECT_FALSE(judge(run).good(3));
  EXPECT_FALSE(judge(CanaryRun{}).good(0));
}

// What the host writes before the launch, where the GPU wrote nothing.
TEST(Canary, PoisonIsNoWork) {
  CanaryRun run = good_run();
  std::memset(run.results.data(), 0xee, run.results.size() * 8);
  std::memset(run.blocks.data(), 0xee, run.blocks.size() * sizeof run.blocks[0]);
  const CanaryVerdict verdict = judge(run);
  EXPECT_EQ(verdict.wrong, run.results.size());
  EXPECT_FALSE(verdict.timers_ran);
}

}  // namespace
}  // namespace gpuwatch::probe
