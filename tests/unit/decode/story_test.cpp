// SPDX-License-Identifier: Apache-2.0
// Events: which calls make one, with which values, and which make none. What
// the tree behind them looks like is tree_test.cpp's.
#include "decode/story.h"

#include <gtest/gtest.h>

#include "unit/decode/story_fixture.h"

namespace gpuwatch::decode {
namespace {

using model::Location;
using model::StoryKind;
using model::StoryView;
using test::Argument;
using test::body_of;
using test::head_on;
using test::kClient;
using test::kinds_of;
using test::StoryTest;

using Kinds = std::vector<StoryKind>;

TEST_F(StoryTest, GpuOpensOnceAndClosesOnce) {
  EXPECT_EQ(kinds_of(open(GPUWATCH_NODE_GPU, 3, 100)), Kinds{StoryKind::kGpuOpened});
  EXPECT_TRUE(open(GPUWATCH_NODE_GPU, 3, 101).empty());
  EXPECT_TRUE(release(GPUWATCH_NODE_GPU, 3, 100).empty());
  const auto closed = release(GPUWATCH_NODE_GPU, 3, 101, 99);
  ASSERT_EQ(kinds_of(closed), Kinds{StoryKind::kGpuClosed});
  EXPECT_EQ(closed[0].gpu_minor, 3);
  EXPECT_EQ(closed[0].head.tgid, 7U) << "the owner, not who dropped the last reference";
}

TEST_F(StoryTest, RefusedOpenIsTold) {
  const auto events = open(GPUWATCH_NODE_GPU, 0, 100, -EPERM);
  ASSERT_EQ(kinds_of(events), Kinds{StoryKind::kOpenFailed});
  EXPECT_EQ(body_of<model::GpuBody>(events).ret, -EPERM);
}

TEST_F(StoryTest, MemoryIsSummedAndFreed) {
  start_client();
  const auto first = memory(10, 64 << 20);
  ASSERT_EQ(kinds_of(first), Kinds{StoryKind::kMemoryAllocated});
  EXPECT_EQ(first[0].view, StoryView::kLine);
  EXPECT_EQ(first[0].gpu_device, 1);
  const auto second = memory(11, 1 << 20);
  EXPECT_EQ(body_of<model::MemoryBody>(second).live_bytes, 65U << 20);
  EXPECT_EQ(second.at(0).view, StoryView::kDetail) << "a small step is no line";
  const auto host = memory(12, 65536, 0x3E);
  EXPECT_EQ(body_of<model::MemoryBody>(host).location, Location::kHost);
  EXPECT_EQ(body_of<model::MemoryBody>(host).live_bytes, 65536U);
  EXPECT_TRUE(memory(13, 1 << 30, 0x50A0).empty()) << "a reservation of addresses is no memory";
  const auto freed = free_object(10);
  ASSERT_EQ(kinds_of(freed), Kinds{StoryKind::kMemoryFreed});
  EXPECT_EQ(body_of<model::MemoryBody>(freed).live_bytes, 1U << 20);
  EXPECT_EQ(body_of<model::MemoryBody>(freed).peak_bytes, 65U << 20);
  const auto last = free_object(11);
  EXPECT_EQ(last.at(0).view, StoryView::kLine) << "back to nothing is a line, however small";
}

TEST_F(StoryTest, SmallStepsAddUpToALine) {
  start_client();
  int lines = 0;
  for (std::uint32_t i = 0; i < 64; ++i) lines += memory(100 + i, 2 << 20).at(0).view == StoryView::kLine;
  EXPECT_EQ(lines, 4) << "128 MiB in steps of 32";
}

TEST_F(StoryTest, PinnedMemoryHasItsOwnKind) {
  start_client();
  const auto events = alloc(2, 10, 0x71, Argument(40).u64(16, 0x7000).u64(24, (4 << 20) - 1).bytes());
  ASSERT_EQ(kinds_of(events), Kinds{StoryKind::kMemoryPinned});
  EXPECT_EQ(body_of<model::MemoryBody>(events).bytes, 4U << 20);
  EXPECT_EQ(kinds_of(free_object(10)), Kinds{StoryKind::kMemoryUnpinned});
}

TEST_F(StoryTest, OutOfMemoryIsTold) {
  start_client();
  const auto events = alloc(2, 10, 0x40, Argument(128).u64(64, 1ULL << 40).bytes(), 0x51);
  ASSERT_EQ(kinds_of(events), Kinds{StoryKind::kMemoryRefused});
  EXPECT_EQ(body_of<model::MemoryBody>(events).bytes, 1ULL << 40);
  EXPECT_EQ(body_of<model::MemoryBody>(events).status_name, "NV_ERR_NO_MEMORY");
}

TEST_F(StoryTest, ContextIsToldWhenItStands) {
  start_client();
  group(20, 9, {30, 31}, 0xCBC0);
  EXPECT_TRUE(schedule(20).empty()) << "more may follow";
  group(21, 9, {40}, 0xC8B5);
  EXPECT_TRUE(schedule(21).empty());
  EXPECT_TRUE(schedule(21).empty()) << "twice is once";
  const auto events = memory(10, 2 << 20);
  ASSERT_EQ(kinds_of(events), (Kinds{StoryKind::kContextCreated, StoryKind::kMemoryAllocated}));
  const auto& context = body_of<model::ContextBody>(events);
  EXPECT_EQ(context.groups, 2U);
  EXPECT_EQ(context.channels, 3U);
  EXPECT_EQ(context.compute, 2U);
  EXPECT_EQ(context.copy, 1U);
  EXPECT_EQ(context.entries, 3U * 1024);
  EXPECT_EQ(context.vaspace, 9U);
  EXPECT_EQ(events[0].gpu_device, 1);
  EXPECT_EQ(kinds_of(free_object(20)), (Kinds{StoryKind::kChannelDestroyed, StoryKind::kChannelDestroyed}))
      << "one group is left";
  const auto closed = free_object(21);
  ASSERT_EQ(kinds_of(closed), (Kinds{StoryKind::kChannelDestroyed, StoryKind::kContextDestroyed}));
  EXPECT_EQ(body_of<model::ContextBody>(closed, 1).channels, 3U) << "what it had in all its life";
}

TEST_F(StoryTest, ASecondComputeGroupIsASecondContext) {
  start_client();
  group(20, 9, {30}, 0xCBC0);
  schedule(20);
  group(21, 9, {31}, 0xCBC0);
  schedule(21);
  group(22, 5, {32}, 0xC8B5);  // another address space
  schedule(22);
  std::vector<model::StoryEvent> out;
  story.finish(out);
  ASSERT_EQ(kinds_of(out), (Kinds{StoryKind::kContextCreated, StoryKind::kContextCreated, StoryKind::kContextCreated}));
  EXPECT_EQ(body_of<model::ContextBody>(out, 1).group, 21U);
  EXPECT_EQ(body_of<model::ContextBody>(out, 2).copy, 1U);
}

TEST_F(StoryTest, AQuietTimeSettlesAContext) {
  start_client();
  group(20, 9, {30}, 0xCBC0);
  schedule(20);
  std::vector<model::StoryEvent> out;
  story.settle(1000 + 50'000'000, out);
  EXPECT_TRUE(out.empty());
  story.settle(1000 + 200'000'000, out);
  EXPECT_EQ(kinds_of(out), Kinds{StoryKind::kContextCreated});
  // A channel more is a change.
  alloc(20, 31, 0xC86F, Argument(368).u32(16, 64).bytes());
  out.clear();
  story.finish(out);
  ASSERT_EQ(kinds_of(out), Kinds{StoryKind::kContextChanged});
  EXPECT_EQ(body_of<model::ContextBody>(out).channels, 2U);
}

TEST_F(StoryTest, ChannelWithoutAGroup) {
  start_client();
  const auto made = alloc(2, 30, 0xC86F, Argument(368).u32(16, 512).u32(128, 0xB).bytes());
  ASSERT_EQ(kinds_of(made), Kinds{StoryKind::kChannelCreated});
  EXPECT_EQ(body_of<model::ChannelBody>(made).entries, 512U);
  EXPECT_EQ(body_of<model::ChannelBody>(made).engine_name, "COPY2");
  EXPECT_EQ(body_of<model::ChannelBody>(made).group, 0U);
  alloc(30, 40, 0xC8B5);
  control(30, 0xA06F0103);
  std::vector<model::StoryEvent> out;
  story.finish(out);
  EXPECT_EQ(body_of<model::ContextBody>(out).copy, 1U);
}

TEST_F(StoryTest, ClosingTheFileEndsItsClients) {
  start_client();
  memory(10, 1 << 20);
  memory(11, 1 << 20);
  const auto events = release(GPUWATCH_NODE_CTL, 255, 5);
  ASSERT_EQ(kinds_of(events), (Kinds{StoryKind::kMemoryFreed, StoryKind::kClientClosed}));
  const auto& freed = body_of<model::MemoryBody>(events);
  EXPECT_EQ(freed.bytes, 2U << 20);
  EXPECT_EQ(freed.objects, 2U);
  EXPECT_EQ(freed.live_bytes, 0U);
  const auto& client = body_of<model::ClientBody>(events, 1);
  EXPECT_EQ(client.client, kClient);
  EXPECT_TRUE(client.by_file);
  EXPECT_EQ(client.objects, 3U);
}

TEST_F(StoryTest, HandleMadeAgainWithoutItsEndCountsOnce) {
  start_client();
  memory(10, 1 << 20);
  EXPECT_EQ(body_of<model::MemoryBody>(memory(10, 2 << 20)).live_bytes, 2U << 20);
  // A device made again: its children are gone with it.
  alloc(kClient, 2, 0x80, Argument(56).u32(0, 1).bytes());
  EXPECT_EQ(body_of<model::MemoryBody>(memory(11, 65536)).live_bytes, 65536U);
}

TEST_F(StoryTest, OnlyRefusalsAreDenials) {
  start_client();
  EXPECT_TRUE(control(2, 0x20800102, 0x56).empty()) << "not supported";
  EXPECT_TRUE(control(2, 0x20800102, 0x1F).empty()) << "invalid argument";
  const auto denied = control(2, 0x20800102, 0x1B);
  ASSERT_EQ(kinds_of(denied), Kinds{StoryKind::kCallDenied});
  EXPECT_EQ(body_of<model::DenialBody>(denied).detail, "NV2080_CTRL_CMD_GPU_GET_INFO_V2");
  EXPECT_EQ(body_of<model::DenialBody>(denied).status_name, "NV_ERR_INSUFFICIENT_PERMISSIONS");
  const auto stranger = alloc(2, 77, 0x40, {}, 0x23);
  EXPECT_EQ(body_of<model::DenialBody>(stranger).status_name, "NV_ERR_INVALID_CLIENT");
}

TEST_F(StoryTest, DebuggerOnOneselfIsNoFinding) {
  start_client();
  EXPECT_TRUE(alloc(2, 60, 0x83DE, Argument(12).u32(4, kClient).u32(8, 30).bytes()).empty());
  EXPECT_TRUE(control(60, 0x83DE0309).empty()) << "set exception mask";
  EXPECT_TRUE(control(60, 0x83DE0315).empty()) << "read memory, one's own";
  const auto events = alloc(2, 61, 0x83DE, Argument(12).u32(4, 0xC1D00099).u32(8, 30).bytes());
  ASSERT_EQ(kinds_of(events), Kinds{StoryKind::kSecurityFinding});
  const auto& finding = body_of<model::FindingBody>(events);
  EXPECT_EQ(finding.reason, "debugger");
  EXPECT_EQ(finding.target.client, 0xC1D00099U);
  EXPECT_FALSE(finding.failed);
  const auto read = control(61, 0x83DE0315);
  ASSERT_EQ(kinds_of(read), Kinds{StoryKind::kSecurityFinding});
  EXPECT_EQ(body_of<model::FindingBody>(read).target.client, 0xC1D00099U);
}

TEST_F(StoryTest, AFindingNamesItsTarget) {
  as_process(8, 1);
  start_client(0xC1D00099, 6);
  as_process(7);
  start_client();
  const auto denied = alloc(2, 61, 0x83DE, Argument(12).u32(4, 0xC1D00099).u32(8, 30).bytes(), 0x1B);
  ASSERT_EQ(kinds_of(denied), (Kinds{StoryKind::kCallDenied, StoryKind::kSecurityFinding}));
  const auto& finding = body_of<model::FindingBody>(denied, 1);
  EXPECT_TRUE(finding.failed);
  EXPECT_EQ(finding.target.process, (model::ProcessKey{1, 8}));
  EXPECT_EQ(denied[1].view, StoryView::kDetail) << "the denial is the line";
}

TEST_F(StoryTest, FindingsAreLinesOnce) {
  start_client();
  const auto first = feed(test::uvm_call(62, Argument(40)));
  ASSERT_EQ(kinds_of(first), Kinds{StoryKind::kSecurityFinding});
  EXPECT_EQ(body_of<model::FindingBody>(first).name, "UVM_TOOLS_READ_PROCESS_MEMORY");
  EXPECT_EQ(first[0].view, StoryView::kLine);
  EXPECT_EQ(feed(test::uvm_call(62, Argument(40))).at(0).view, StoryView::kDetail);
  EXPECT_EQ(feed(test::uvm_call(63, Argument(40))).at(0).view, StoryView::kLine) << "another kind";
}

TEST_F(StoryTest, FaultIsToldOnce) {
  start_client();
  alloc(2, 60, 0x83DE, Argument(12).u32(4, kClient).bytes());
  EXPECT_EQ(kinds_of(control(60, 0x83DE030C)), Kinds{StoryKind::kGpuFault});
  EXPECT_TRUE(control(60, 0x83DE030C).empty()) << "read twice for one fault";
}

TEST_F(StoryTest, SharingNamesBothEnds) {
  as_process(8, 1);
  start_client(0xC1D00099, 6);
  memory(5, 4 << 20);
  const Argument share = Argument(24).u32(0, 0xC1D00099).u32(4, 5);
  const auto granted = feed(test::escape_call(head_on(GPUWATCH_NODE_CTL), 53, share, share));
  ASSERT_EQ(kinds_of(granted), Kinds{StoryKind::kShareGranted});
  EXPECT_EQ(body_of<model::ShareBody>(granted).bytes, 4U << 20);
  as_process(7);
  start_client();
  const auto events = dup(70, 0xC1D00099, 5);
  ASSERT_EQ(kinds_of(events), Kinds{StoryKind::kShareDuplicated});
  const auto& body = body_of<model::ShareBody>(events);
  EXPECT_EQ(body.from.process, (model::ProcessKey{1, 8}));
  EXPECT_EQ(body.from.object, 5U);
  EXPECT_EQ(body.to.process.tgid, 7U);
  EXPECT_EQ(body.to.object, 70U);
  EXPECT_EQ(body.bytes, 4U << 20);
  EXPECT_EQ(body.name, "NV01_MEMORY_LOCAL_USER");
  EXPECT_EQ(events[0].view, StoryView::kLine);
  EXPECT_EQ(dup(71, kClient, 70).at(0).view, StoryView::kDetail) << "within one process";
}

TEST_F(StoryTest, DescriptorsAndPeers) {
  start_client();
  memory(10, 2 << 20);
  const auto exported = control_with(kClient, 0x3D05, Argument(24).u32(12, 10).u32(16, 9));
  ASSERT_EQ(kinds_of(exported), Kinds{StoryKind::kShareExported});
  EXPECT_EQ(body_of<model::ShareBody>(exported).bytes, 2U << 20);
  as_process(8, 1);
  start_client(0xC1D00099, 6);
  const auto imported = control_with(0xC1D00099, 0x3D06, Argument(20).u32(0, 4).u32(12, 2).u32(16, 50));
  ASSERT_EQ(kinds_of(imported), Kinds{StoryKind::kShareImported});
  EXPECT_EQ(body_of<model::ShareBody>(imported).from.process.tgid, 7U) << "the only export it can be";
  EXPECT_EQ(body_of<model::ShareBody>(imported).bytes, 2U << 20);
  EXPECT_EQ(kinds_of(feed(test::uvm_call(29, Argument(36)))), Kinds{StoryKind::kPeerEnabled});
  EXPECT_EQ(kinds_of(feed(test::uvm_call(30, Argument(36)))), Kinds{StoryKind::kPeerDisabled});
}

TEST_F(StoryTest, MigAndMpsLeaveSigns) {
  start_client();
  EXPECT_EQ(kinds_of(alloc(2, 80, 0xC637)), Kinds{StoryKind::kMigUsed});
  EXPECT_EQ(kinds_of(alloc(2, 81, 0x900E)), Kinds{StoryKind::kMpsUsed});
  EXPECT_TRUE(alloc(2, 82, 0xC639).empty()) << "what every monitoring agent does";
}

TEST_F(StoryTest, MappingsOfTheDriverItselfPairUpToo) {
  start_client();
  memory(10, 2 << 20);
  map(kClient, 10);  // on the GPU, at the same address as below
  const auto call = [&](std::uint32_t number, const Argument& argument) {
    return feed(escape_call(head_on(GPUWATCH_NODE_CTL), number, argument, argument));
  };
  const auto cpu = call(78, Argument(56).u32(0, client_).u32(4, 2).u32(8, 10).u64(24, 65536).u64(32, 0x7000));
  ASSERT_EQ(kinds_of(cpu), Kinds{StoryKind::kMemoryMapped});
  EXPECT_EQ(body_of<model::MappingBody>(cpu).space, model::MapSpace::kCpu);
  const auto away = call(79, Argument(32).u32(0, client_).u32(4, 2).u32(8, 10).u64(16, 0x7000));
  ASSERT_EQ(kinds_of(away), Kinds{StoryKind::kMemoryUnmapped});
  EXPECT_EQ(body_of<model::MappingBody>(away).space, model::MapSpace::kCpu);
  EXPECT_EQ(body_of<model::MappingBody>(away).bytes, 65536U);
  const auto dma = call(87, Argument(64).u32(0, client_).u32(4, 2).u32(12, 10).u64(24, 8192).u64(48, 0x9000));
  ASSERT_EQ(kinds_of(dma), Kinds{StoryKind::kMemoryMapped});
  EXPECT_EQ(body_of<model::MappingBody>(dma).space, model::MapSpace::kGpu);
  const auto dma_away = call(88, Argument(48).u32(0, client_).u32(4, 2).u32(12, 10).u64(24, 0x9000));
  ASSERT_EQ(kinds_of(dma_away), Kinds{StoryKind::kMemoryUnmapped});
  EXPECT_EQ(body_of<model::MappingBody>(dma_away).bytes, 8192U);
}

TEST_F(StoryTest, MappingsPairUp) {
  start_client();
  memory(10, 2 << 20);
  const auto mapped = map(kClient, 10);
  ASSERT_EQ(kinds_of(mapped), Kinds{StoryKind::kMemoryMapped});
  EXPECT_EQ(mapped[0].view, StoryView::kDetail);
  const auto free_range = [&] { return feed(test::uvm_call(34, Argument(24).u64(0, 0x7000).u64(8, 4096))); };
  const auto unmapped = free_range();
  ASSERT_EQ(kinds_of(unmapped), Kinds{StoryKind::kMemoryUnmapped});
  EXPECT_EQ(body_of<model::MappingBody>(unmapped).bytes, 4096U);
  EXPECT_EQ(body_of<model::MappingBody>(unmapped).object, 10U);
  EXPECT_TRUE(free_range().empty());
  as_process(8, 1);
  file_ = 6;
  const auto foreign = map(kClient, 10);
  EXPECT_TRUE(body_of<model::MappingBody>(foreign).foreign);
  EXPECT_EQ(foreign[0].view, StoryView::kLine);
}

TEST_F(StoryTest, DriverStateIsTold) {
  gpuwatch_rec_state fixed{};
  fixed.event = GPUWATCH_STATE_DRIVER_LIVE;
  std::memcpy(fixed.name, "nvidia_uvm", 10);
  test::Blob payload;
  test::append_struct(payload, fixed);
  const auto events = feed(test::finish_record(test::make_head(GPUWATCH_REC_STATE), payload));
  ASSERT_EQ(kinds_of(events), Kinds{StoryKind::kDriverState});
  EXPECT_EQ(std::string(body_of<model::StateBody>(events).name.data()), "nvidia_uvm");
}

}  // namespace
}  // namespace gpuwatch::decode
