// SPDX-License-Identifier: Apache-2.0
// The default view's events: which calls make one, which do not, and that the
// state behind them stays bounded and consistent.
#include "decode/story.h"

#include <gtest/gtest.h>

#include "decode/decoder.h"
#include "unit/decode/calls.h"

namespace gpuwatch::decode {
namespace {

using model::StoryEvent;
using model::StoryKind;
using test::Argument;
using test::Blob;
using test::head_on;

constexpr std::uint32_t kClient = 0xC1D00024;

class StoryTest : public testing::Test {
 protected:
  // Feeds a record and returns what it told.
  std::vector<StoryEvent> feed(const Blob& blob) {
    std::vector<StoryEvent> out;
    story.observe(decoder.decode(test::parsed(blob)), out);
    return out;
  }
  std::vector<StoryEvent> alloc(std::uint32_t parent, std::uint32_t handle, std::uint32_t rm_class,
                                const std::string& params = {}, std::uint32_t status = 0) {
    const bool root = rm_class == 0;
    const Argument in =
        Argument(48).u32(0, root ? 0 : kClient).u32(4, parent).u32(8, root ? 0 : handle).u32(12, rm_class);
    Argument out = in;
    out.u32(8, handle).u32(40, status);
    std::vector<test::CaptureSpec> more;
    if (!params.empty()) more = {{GPUWATCH_CAP_NESTED0_IN, params}, {GPUWATCH_CAP_NESTED0_OUT, params}};
    return feed(test::escape_call(head_on(GPUWATCH_NODE_CTL, 255), 43, in, out, more));
  }
  std::vector<StoryEvent> free_object(std::uint32_t handle) {
    const Argument argument = Argument(16).u32(0, kClient).u32(4, kClient).u32(8, handle);
    return feed(test::escape_call(head_on(GPUWATCH_NODE_CTL, 255), 41, argument, argument));
  }
  std::vector<StoryEvent> control(std::uint32_t object, std::uint32_t command, std::uint32_t status = 0) {
    const Argument in = Argument(32).u32(0, kClient).u32(4, object).u32(8, command);
    Argument out = in;
    out.u32(28, status);
    return feed(test::escape_call(head_on(GPUWATCH_NODE_CTL, 255), 42, in, out));
  }
  std::vector<StoryEvent> memory(std::uint32_t handle, std::uint64_t bytes, std::uint32_t rm_class = 0x40) {
    return alloc(2, handle, rm_class, Argument(128).u64(64, bytes).bytes());
  }
  std::vector<StoryEvent> open(gpuwatch_node_kind kind, std::uint32_t minor, std::uint64_t file, std::int64_t ret = 0) {
    gpuwatch_rec head = head_on(kind, minor);
    head.file_id = file;
    return feed(test::open_record(head, ret));
  }
  std::vector<StoryEvent> release(gpuwatch_node_kind kind, std::uint32_t minor, std::uint64_t file,
                                  std::uint32_t tgid = 7) {
    gpuwatch_rec head = head_on(kind, minor);
    head.type = GPUWATCH_REC_RELEASE;
    head.file_id = file;
    head.tgid = tgid;
    return feed(test::finish_record(head, Blob(8)));
  }
  void start_client() {
    open(GPUWATCH_NODE_CTL, 255, 5);
    alloc(0, kClient, 0);
    alloc(kClient, 2, 0x80, Argument(56).u32(0, 1).bytes());
  }

  Decoder decoder{{580, 159, 4}};
  StoryBuilder story;
};

TEST_F(StoryTest, GpuOpensOnceAndClosesOnce) {
  ASSERT_EQ(open(GPUWATCH_NODE_GPU, 3, 100).size(), 1U);
  EXPECT_TRUE(open(GPUWATCH_NODE_GPU, 3, 101).empty());
  EXPECT_TRUE(release(GPUWATCH_NODE_GPU, 3, 100).empty());
  const auto closed = release(GPUWATCH_NODE_GPU, 3, 101, 99);
  ASSERT_EQ(closed.size(), 1U);
  EXPECT_EQ(closed[0].kind, StoryKind::kGpuClosed);
  EXPECT_EQ(closed[0].gpu_minor, 3);
  EXPECT_EQ(closed[0].head.tgid, 7U) << "the owner, not who dropped the last reference";
}

TEST_F(StoryTest, RefusedOpenIsTold) {
  const auto events = open(GPUWATCH_NODE_GPU, 0, 100, -EPERM);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, StoryKind::kOpenFailed);
  EXPECT_EQ(events[0].ret, -EPERM);
}

TEST_F(StoryTest, MemoryIsSummedAndFreed) {
  start_client();
  const auto first = memory(10, 2 << 20);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].kind, StoryKind::kMemoryAllocated);
  EXPECT_EQ(first[0].gpu_device, 1);
  EXPECT_EQ(memory(11, 1 << 20)[0].total_bytes, 3U << 20);
  EXPECT_TRUE(memory(14, 4096, 0x3E).empty()) << "small memory is counted, not told";
  const auto host = memory(12, 65536, 0x3E);
  ASSERT_EQ(host.size(), 1U);
  EXPECT_TRUE(host[0].host_memory);
  EXPECT_EQ(host[0].total_bytes, 65536U + 4096U);
  EXPECT_TRUE(memory(13, 1 << 30, 0x50A0).empty()) << "a reservation of addresses is no memory";
  const auto freed = free_object(10);
  ASSERT_EQ(freed.size(), 1U);
  EXPECT_EQ(freed[0].kind, StoryKind::kMemoryFreed);
  EXPECT_EQ(freed[0].total_bytes, 1U << 20);
}

TEST_F(StoryTest, OutOfMemoryIsTold) {
  start_client();
  const auto events = alloc(2, 10, 0x40, Argument(128).u64(64, 1ULL << 40).bytes(), 0x51);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, StoryKind::kMemoryRefused);
  EXPECT_EQ(events[0].bytes, 1ULL << 40);
  EXPECT_EQ(events[0].status_name, "NV_ERR_NO_MEMORY");
}

TEST_F(StoryTest, ContextIsToldWhenItRuns) {
  start_client();
  EXPECT_TRUE(alloc(2, 20, 0xA06C).empty());
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(alloc(20, 30 + i, 0xC86F).empty());
    EXPECT_TRUE(alloc(30 + i, 40 + i, 0xCBC0).empty());
    EXPECT_TRUE(alloc(30 + i, 50 + i, 0xC8B5).empty());
  }
  const auto events = control(20, 0xA06C0101);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, StoryKind::kContextCreated);
  EXPECT_EQ(events[0].channels, 3U);
  ASSERT_EQ(events[0].engine_count, 2U);
  EXPECT_EQ(events[0].engines[0], "HOPPER_COMPUTE_A");
  EXPECT_EQ(events[0].engines[1], "HOPPER_DMA_COPY_A");
  EXPECT_TRUE(control(20, 0xA06C0101).empty()) << "only once";
  const auto closed = free_object(20);
  ASSERT_EQ(closed.size(), 1U);
  EXPECT_EQ(closed[0].kind, StoryKind::kContextClosed);
}

TEST_F(StoryTest, ChannelWithoutAGroup) {
  start_client();
  alloc(2, 30, 0xC86F);
  alloc(30, 40, 0xC8B5);
  const auto events = control(30, 0xA06F0103);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].channels, 1U);
  EXPECT_EQ(events[0].engine_count, 1U);
}

TEST_F(StoryTest, ClosingTheFileEndsItsClients) {
  start_client();
  memory(10, 1 << 20);
  memory(11, 1 << 20);
  const auto events = release(GPUWATCH_NODE_CTL, 255, 5);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].kind, StoryKind::kMemoryFreed);
  EXPECT_EQ(events[0].bytes, 2U << 20);
  EXPECT_EQ(events[0].total_bytes, 0U);
  EXPECT_EQ(events[1].kind, StoryKind::kClientClosed);
  EXPECT_EQ(events[1].client, kClient);
}

TEST_F(StoryTest, FreeingTheDeviceTakesWhatIsBelow) {
  start_client();
  memory(10, 1 << 20);
  const auto events = free_object(2);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].bytes, 1U << 20);
  EXPECT_TRUE(free_object(10).empty());
}

TEST_F(StoryTest, HandleMadeAgainWithoutItsEndCountsOnce) {
  start_client();
  memory(10, 1 << 20);
  EXPECT_EQ(memory(10, 2 << 20)[0].total_bytes, 2U << 20);
  // A device made again: its children are gone with it.
  alloc(kClient, 2, 0x80);
  EXPECT_EQ(memory(11, 65536)[0].total_bytes, 65536U);
}

TEST_F(StoryTest, OnlyRefusalsAreDenials) {
  start_client();
  EXPECT_TRUE(control(2, 0x20800102, 0x56).empty()) << "not supported";
  EXPECT_TRUE(control(2, 0x20800102, 0x1F).empty()) << "invalid argument";
  const auto denied = control(2, 0x20800102, 0x1B);
  ASSERT_EQ(denied.size(), 1U);
  EXPECT_EQ(denied[0].kind, StoryKind::kDenied);
  EXPECT_EQ(denied[0].detail, "NV2080_CTRL_CMD_GPU_GET_INFO_V2");
  EXPECT_EQ(denied[0].status_name, "NV_ERR_INSUFFICIENT_PERMISSIONS");
  const auto stranger = alloc(2, 77, 0x40, {}, 0x23);
  ASSERT_EQ(stranger.size(), 1U);
  EXPECT_EQ(stranger[0].status_name, "NV_ERR_INVALID_CLIENT");
}

TEST_F(StoryTest, DebuggerOnOneselfIsNoNews) {
  start_client();
  EXPECT_TRUE(alloc(2, 60, 0x83DE, Argument(12).u32(4, kClient).u32(8, 30).bytes()).empty());
  const auto events = alloc(2, 61, 0x83DE, Argument(12).u32(4, 0xC1D00099).u32(8, 30).bytes());
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, StoryKind::kDebuggerAttached);
  EXPECT_EQ(events[0].source_client, 0xC1D00099U);
}

TEST_F(StoryTest, SharingIsTold) {
  start_client();
  const Argument dup = Argument(28).u32(0, kClient).u32(4, 2).u32(8, 70).u32(12, 0xC1D00099).u32(16, 5);
  const auto events = feed(test::escape_call(head_on(GPUWATCH_NODE_CTL), 52, dup, dup));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, StoryKind::kDuplicated);
  const Argument own = Argument(28).u32(0, kClient).u32(12, kClient).u32(16, 5);
  EXPECT_TRUE(feed(test::escape_call(head_on(GPUWATCH_NODE_CTL), 52, own, own)).empty());
  EXPECT_EQ(control(kClient, 0x3D05).at(0).kind, StoryKind::kExported);
  EXPECT_EQ(control(kClient, 0x3D06).at(0).kind, StoryKind::kImported);
  EXPECT_EQ(feed(test::uvm_call(29, Argument(36))).at(0).kind, StoryKind::kPeerEnabled);
  EXPECT_EQ(feed(test::uvm_call(62, Argument(40))).at(0).kind, StoryKind::kForeignMemory);
}

TEST_F(StoryTest, MappingOwnMemoryIsNoNews) {
  start_client();
  memory(10, 2 << 20);
  const auto map = [&](std::uint32_t handle) {
    return feed(test::uvm_call(33, Argument(9264).u64(0, 0x7000).u64(8, 4096).u32(9252, kClient).u32(9256, handle)));
  };
  EXPECT_TRUE(map(10).empty());
  const auto free_range = [&] { return feed(test::uvm_call(34, Argument(24).u64(0, 0x7000).u64(8, 4096))); };
  EXPECT_TRUE(free_range().empty());
  EXPECT_EQ(map(999).at(0).kind, StoryKind::kMemoryMapped);
  const auto unmapped = free_range();
  ASSERT_EQ(unmapped.size(), 1U);
  EXPECT_EQ(unmapped[0].kind, StoryKind::kMemoryUnmapped);
  EXPECT_EQ(unmapped[0].bytes, 4096U);
  EXPECT_TRUE(free_range().empty());
}

TEST_F(StoryTest, StateIsBounded) {
  story = StoryBuilder({4, 50, 20});
  for (std::uint32_t process = 0; process < 100; ++process) {
    gpuwatch_rec head = head_on(GPUWATCH_NODE_GPU, 0);
    head.tgid = 1000 + process;
    head.file_id = process + 1;
    std::vector<StoryEvent> out;
    const Blob blob = test::open_record(head);
    story.observe(decoder.decode(test::parsed(blob)), out);
  }
  start_client();
  for (std::uint32_t i = 0; i < 1000; ++i) memory(100 + i, 65536);
  EXPECT_GT(story.forgotten(), 1000U);
  const auto after = release(GPUWATCH_NODE_CTL, 255, 5);
  ASSERT_FALSE(after.empty());
  EXPECT_EQ(after[0].total_bytes, 0U) << "what was not remembered was not counted";
}

TEST_F(StoryTest, DriverStateIsTold) {
  gpuwatch_rec_state fixed{};
  fixed.event = GPUWATCH_STATE_DRIVER_LIVE;
  std::memcpy(fixed.name, "nvidia_uvm", 10);
  Blob payload;
  test::append_struct(payload, fixed);
  gpuwatch_rec head = test::make_head(GPUWATCH_REC_STATE);
  const auto events = feed(test::finish_record(head, payload));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(std::string(events[0].state_name.data()), "nvidia_uvm");
}

}  // namespace
}  // namespace gpuwatch::decode
