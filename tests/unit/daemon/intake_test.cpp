// SPDX-License-Identifier: Apache-2.0
// Unit tests of the queue between reader and worker: order, bounds, and that a
// flood of one cgroup costs the records of that cgroup.
#include "daemon/intake.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <thread>

#include "unit/support.h"

namespace gpuwatch::daemon {
namespace {

using test::Blob;
constexpr std::chrono::milliseconds kNow{0};

Blob record(std::uint64_t cgroup, std::uint64_t seq, gpuwatch_rec_type type = GPUWATCH_REC_RELEASE,
            std::size_t filler = 200) {
  gpuwatch_rec head = test::make_head(type);
  head.cgroup_id = cgroup;
  head.seq = seq;
  Blob out(sizeof head + filler);
  head.len = static_cast<__u32>(out.size());
  std::memcpy(out.data(), &head, sizeof head);
  return out;
}

void push(Intake& intake, const Blob& blob) {
  intake.push({*model::parse_record(blob)});
}

TEST(Intake, KeepsOrderAndBytes) {
  Intake intake(1 << 20);
  for (std::uint64_t i = 0; i < 100; ++i) push(intake, record(i % 3, i));
  Intake::Batch batch;
  std::uint64_t next = 0;
  while (next < 100) {
    intake.pop(batch, 7, kNow);
    ASSERT_FALSE(batch.records.empty());
    for (const model::RawRecord& one : batch.records) {
      EXPECT_EQ(one.head.seq, next++);
      EXPECT_EQ(one.payload.size(), 200u);
    }
    EXPECT_FALSE(intake.idle()) << "the last batch is in work";
  }
  intake.pop(batch, 7, kNow);
  EXPECT_TRUE(batch.records.empty());
  EXPECT_FALSE(batch.closed);
  EXPECT_TRUE(intake.idle());
  EXPECT_EQ(intake.counts().bytes, 0u);
  intake.close();
  intake.pop(batch, 7, kNow);
  EXPECT_TRUE(batch.closed);
}

TEST(Intake, AFloodCostsItself) {
  const std::size_t size = record(1, 0).size();
  Intake intake(100 * size);
  for (std::uint64_t i = 0; i < 1000; ++i) push(intake, record(1, i));
  EXPECT_EQ(intake.counts().items, 100u);
  // Two quiet ones come late, and lose nothing.
  for (std::uint64_t i = 0; i < 20; ++i) {
    push(intake, record(2, i));
    push(intake, record(3, i));
    push(intake, record(1, 1000 + i));
  }
  Intake::Batch batch;
  intake.pop(batch, 10'000, kNow);
  std::map<std::uint64_t, std::vector<std::uint64_t>> seen;
  for (const model::RawRecord& one : batch.records) seen[one.head.cgroup_id].push_back(one.head.seq);
  EXPECT_EQ(seen[2].size(), 20u);
  EXPECT_EQ(seen[3].size(), 20u);
  EXPECT_TRUE(std::is_sorted(seen[1].begin(), seen[1].end()));
  EXPECT_GE(seen[1].size(), 50u) << "a flood keeps what nobody else needs";
  const IntakeCounts counts = intake.counts();
  EXPECT_EQ(counts.dropped_full, 0u);
  EXPECT_EQ(counts.dropped_flood + seen[1].size(), 1020u);
  EXPECT_LE(batch.records.size(), 101u);
  const auto worst = intake.worst(10);
  ASSERT_EQ(worst.size(), 1u);
  EXPECT_EQ(worst.front(), std::pair(std::uint64_t{1}, counts.dropped_flood));
}

TEST(Intake, EverythingIsCounted) {
  Intake intake(50'000);
  std::uint64_t pushed = 0, popped = 0, state = 88172645463325252u;
  Intake::Batch batch;
  for (int i = 0; i < 20'000; ++i) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const auto type = state % 50 == 0 ? GPUWATCH_REC_TASK : GPUWATCH_REC_RELEASE;
    push(intake, record(state % 1000 < 800 ? 1 : state % 37, 0, type, 8 * (state % 60)));
    ++pushed;
    if (state % 11 == 0) {
      intake.pop(batch, 1 + state % 5, kNow);
      popped += batch.records.size();
    }
    EXPECT_LE(intake.counts().bytes, 50'000u + 50'000u / 4);
  }
  for (;;) {
    intake.pop(batch, 1000, kNow);
    if (batch.records.empty()) break;
    popped += batch.records.size();
  }
  const IntakeCounts counts = intake.counts();
  EXPECT_GT(counts.dropped_flood, 0u);
  EXPECT_EQ(popped + counts.dropped_flood + counts.dropped_full, pushed);
  EXPECT_EQ(counts.taken, popped + counts.evicted);
  EXPECT_EQ(counts.bytes, 0u);
}

TEST(Intake, DefinitionsAreTheLastToGo) {
  const std::size_t size = record(1, 0).size();
  Intake intake(100 * size);
  for (std::uint64_t i = 0; i < 200; ++i) push(intake, record(1, i));
  for (std::uint64_t i = 0; i < 20; ++i) push(intake, record(1, i, GPUWATCH_REC_TASK));
  Intake::Batch batch;
  intake.pop(batch, 1000, kNow);
  EXPECT_EQ(std::count_if(batch.records.begin(), batch.records.end(),
                          [](const model::RawRecord& one) { return one.head.type == GPUWATCH_REC_TASK; }),
            20);
}

TEST(Intake, TwoThreads) {
  Intake intake(1 << 20);
  std::thread writer([&] {
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      push(intake, record(i % 5, i));
      if (i % 100 == 0) intake.wait_for_room();
    }
    intake.close();
  });
  Intake::Batch batch;
  std::uint64_t last = 0, count = 0;
  do {
    intake.pop(batch, 512, std::chrono::milliseconds(1000));
    for (const model::RawRecord& one : batch.records) {
      EXPECT_GE(one.head.seq, last);
      last = one.head.seq;
      ++count;
    }
  } while (!batch.closed);
  writer.join();
  EXPECT_EQ(count + intake.counts().dropped_flood + intake.counts().dropped_full, 20'000u);
}

// Were the nudge lost, the test would end at its time limit only.
TEST(Intake, ANudgeEndsOneWait) {
  Intake intake(1 << 20);
  intake.nudge();
  Intake::Batch batch;
  intake.pop(batch, 10, std::chrono::hours(1));
  EXPECT_TRUE(batch.records.empty());
  EXPECT_FALSE(batch.closed);
  std::thread other([&] { intake.nudge(); });
  intake.pop(batch, 10, std::chrono::hours(1));
  other.join();
  EXPECT_TRUE(batch.records.empty());
  // It is used up: this one waits its time.
  const auto begin = std::chrono::steady_clock::now();
  intake.pop(batch, 10, std::chrono::milliseconds(20));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(20));
}

}  // namespace
}  // namespace gpuwatch::daemon
