// SPDX-License-Identifier: Apache-2.0
// The tree behind the story: parents, ends, references, late attach, and that
// neither size nor malice breaks its books.
#include "decode/tree.h"

#include <gtest/gtest.h>

#include <map>

#include "unit/decode/story_fixture.h"
#include "unit/decode/tree_check.h"

namespace gpuwatch::decode {
namespace {

using model::Location;
using model::StoryKind;
using test::Argument;
using test::body_of;
using test::check_books;
using test::head_on;
using test::kClient;
using test::kinds_of;
using test::Shape;
using test::shape_of;

class TreeTest : public test::StoryTest {
 protected:
  std::uint64_t live(std::uint32_t tgid, std::uint64_t start_ns = 0, Location location = Location::kGpu) {
    const auto process = story.tree().find({start_ns, tgid});
    return process ? process->memory[static_cast<std::size_t>(location)].live : ~std::uint64_t{0};
  }
  void TearDown() override { check_books(story.tree()); }
};

TEST_F(TreeTest, ShapeIsWhatWasMade) {
  start_client();
  alloc(2, 3, 0x2080);
  group(20, 9, {30}, 0xCBC0);
  memory(10, 4096);
  EXPECT_EQ(shape_of(story.tree()),
            (Shape{{0, 2, 0x80}, {1, 3, 0x2080}, {1, 20, 0xA06C}, {2, 30, 0xC86F}, {3, 1030, 0xCBC0}, {1, 10, 0x40}}));
  free_object(20);
  EXPECT_EQ(shape_of(story.tree()), (Shape{{0, 2, 0x80}, {1, 3, 0x2080}, {1, 10, 0x40}}));
  free_object(kClient);
  EXPECT_TRUE(shape_of(story.tree()).empty());
  EXPECT_EQ(story.tree().stats().clients, 0U);
}

TEST_F(TreeTest, MemoryLivesTillTheLastReferenceGoes) {
  as_process(8, 1);
  start_client(0xC1D00099, 6);
  memory(5, 4 << 20);
  as_process(7);
  start_client();
  dup(70, 0xC1D00099, 5);
  dup(71, kClient, 70);
  EXPECT_EQ(live(8, 1), 4U << 20);
  EXPECT_EQ(live(7), 0U) << "counted once, for whom it was allocated";
  EXPECT_EQ(story.tree().gpu(1).live, 4U << 20);
  as_process(8, 1);
  client_ = 0xC1D00099;
  const auto let_go = free_object(5);
  ASSERT_EQ(kinds_of(let_go), (std::vector{StoryKind::kMemoryInherited, StoryKind::kMemoryFreed}));
  EXPECT_EQ(let_go[0].head.tgid, 7U);
  EXPECT_EQ(body_of<model::MemoryBody>(let_go).from.process.tgid, 8U);
  EXPECT_EQ(live(8, 1), 0U);
  EXPECT_EQ(live(7), 4U << 20);
  EXPECT_EQ(story.tree().gpu(1).live, 4U << 20) << "nothing was freed on the GPU";
  as_process(7);
  EXPECT_TRUE(free_object(70).empty()) << "another of its own references is left";
  EXPECT_EQ(kinds_of(free_object(71)), std::vector{StoryKind::kMemoryFreed});
  EXPECT_EQ(story.tree().gpu(1).live, 0U);
  EXPECT_EQ(story.tree().gpu(1).peak, 4U << 20);
}

TEST_F(TreeTest, AnotherProcessCannotChangeIt) {
  start_client();
  memory(10, 4 << 20);
  as_process(66, 1);
  file_ = 77;
  EXPECT_TRUE(free_object(10).empty());
  EXPECT_TRUE(free_object(kClient).empty());
  memory(10, 1 << 20);  // the same client handle, as the forger's own, partial one
  EXPECT_EQ(live(7), 4U << 20);
  EXPECT_GE(story.tree().stats().ignored, 2U);
  file_ = 5;
  release(GPUWATCH_NODE_CTL, 255, 5);
  EXPECT_EQ(live(7), 0U);
  EXPECT_EQ(live(66, 1), 1U << 20);
}

TEST_F(TreeTest, APassedDescriptorMayChangeIt) {
  start_client();
  memory(10, 4 << 20);
  as_process(66, 1);  // the same file, 5: it was inherited or passed
  EXPECT_EQ(kinds_of(free_object(10)), std::vector{StoryKind::kMemoryFreed});
  EXPECT_EQ(live(7), 0U);
  memory(11, 2 << 20);
  EXPECT_EQ(live(7), 2U << 20) << "counts for whose client it is";
  release(GPUWATCH_NODE_CTL, 255, 5, 66);
  EXPECT_EQ(story.tree().stats().objects, 0U);
}

TEST_F(TreeTest, AttachedLateIsPartial) {
  // No open, no client, no device was seen.
  const auto events = alloc(0x5C000002, 0x5C000010, 0x40, Argument(128).u64(64, 64 << 20).bytes());
  ASSERT_EQ(kinds_of(events), std::vector{StoryKind::kMemoryAllocated});
  EXPECT_TRUE(events[0].partial);
  EXPECT_TRUE(story.tree().find({0, 7})->partial);
  EXPECT_EQ(shape_of(story.tree()), (Shape{{0, 0x5C000010, 0x40}}));
  EXPECT_EQ(kinds_of(free_object(0x5C000010)), std::vector{StoryKind::kMemoryFreed});
  memory(0x5C000011, 4096);
  // The file it all came through is the client's: they end together.
  EXPECT_FALSE(release(GPUWATCH_NODE_CTL, 255, 5).empty());
  EXPECT_EQ(story.tree().stats().objects, 0U);
}

TEST_F(TreeTest, NoParentLinkMakesACycle) {
  start_client();
  alloc(10, 10, 0x40);  // its own parent
  alloc(12, 11, 0x40);  // a parent that comes later
  alloc(11, 12, 0x40);
  alloc(12, 11, 0x40);            // and now below the one below it
  alloc(kClient, kClient, 0x80);  // the client's own handle is taken
  alloc(11, 2, 0x80);             // the device again, below what was below it
  check_books(story.tree());
  free_object(kClient);
  EXPECT_EQ(story.tree().stats().objects, 0U);
}

TEST_F(TreeTest, PidReuseIsAnotherProcess) {
  as_process(7, 100);
  start_client();
  memory(10, 1 << 20);
  as_process(7, 200);
  start_client(0xC1D00050, 9);
  memory(10, 2 << 20);
  EXPECT_EQ(live(7, 100), 1U << 20);
  EXPECT_EQ(live(7, 200), 2U << 20);
}

TEST_F(TreeTest, AMillionObjectsAndTheRootFreed) {
  start_client();
  for (std::uint32_t i = 0; i < 1'000'000; ++i) memory(0x10000 + i * 0x01000193U, 4096);
  const TreeStats stats = story.tree().stats();
  EXPECT_EQ(stats.objects, TreeLimits{}.objects_per_process);
  EXPECT_GE(stats.untracked, 1'000'000 - TreeLimits{}.objects_per_process);
  EXPECT_LT(stats.bytes, 40U << 20) << "bytes of the tree at its limit for one process";
  const auto events = free_object(kClient);
  ASSERT_EQ(kinds_of(events), (std::vector{StoryKind::kMemoryFreed, StoryKind::kClientClosed}));
  EXPECT_EQ(body_of<model::MemoryBody>(events).live_bytes, 0U) << "what was not taken in was not counted";
  EXPECT_EQ(story.tree().stats().objects, 0U);
}

TEST_F(TreeTest, ADeepChainEnds) {
  start_client();
  std::uint32_t parent = 2;
  for (std::uint32_t i = 0; i < 200'000; ++i) {
    alloc(parent, 0x10000 + i, 0x2080);
    parent = 0x10000 + i;
  }
  EXPECT_EQ(shape_of(story.tree()).back().depth, 200'000U);
  free_object(2);
  EXPECT_EQ(story.tree().stats().objects, 1U);
}

TEST_F(TreeTest, AStormOfDuplicatesEndsInAnyOrder) {
  start_client();
  memory(10, 1 << 20);
  for (std::uint32_t i = 0; i < 100'000; ++i) dup(1000 + i, kClient, 10 + (i % 2) * 990);
  EXPECT_EQ(live(7), 1U << 20);
  free_object(10);
  for (std::uint32_t i = 0; i < 100'000; i += 2) free_object(1000 + i);
  EXPECT_EQ(live(7), 1U << 20);
  for (std::uint32_t i = 1; i < 100'000; i += 2) free_object(1000 + i);
  EXPECT_EQ(live(7), 0U);
}

TEST_F(TreeTest, OverTheLimitTheIdlestGoes) {
  story = StoryBuilder({4, 50, 20, 100});
  for (std::uint32_t process = 0; process < 100; ++process) {
    as_process(1000 + process, 1);
    start_client(0xC1000000 + process, 100 + process);
    for (std::uint32_t i = 0; i < 15; ++i) memory(10 + i, 65536);
    ASSERT_LE(story.tree().stats().objects, 50U);
    ASSERT_LE(story.tree().stats().processes, 4U);
    check_books(story.tree());
  }
  EXPECT_GE(story.tree().stats().forgotten_processes, 96U);
  EXPECT_EQ(live(1099, 1), 15U * 65536) << "the latest is whole";
  EXPECT_EQ(story.forgotten(), story.tree().stats().forgotten_processes + story.tree().stats().untracked);
}

TEST_F(TreeTest, TenThousandObjectsTakeAMegabyte) {
  start_client();
  const std::size_t before = story.tree().stats().bytes;
  for (std::uint32_t i = 0; i < 10'000; ++i) memory(0x5C000010 + i, 2 << 20);
  const std::size_t bytes = story.tree().stats().bytes - before;
  std::printf("tree: %zu bytes for 10,000 live objects\n", bytes);
  EXPECT_LT(bytes, 1'200'000U);
}

}  // namespace
}  // namespace gpuwatch::decode
