// SPDX-License-Identifier: Apache-2.0
// Lines of the default view, exactly, for every kind of event.
#include <gtest/gtest.h>

#include "publish/text.h"
#include "unit/support.h"

namespace gpuwatch::publish {
namespace {

using model::StoryEvent;
using model::StoryKind;

StoryEvent event_of(StoryKind kind, model::StoryBody body = {}) {
  StoryEvent event;
  event.kind = kind;
  event.head = test::make_head(GPUWATCH_REC_IOCTL, 12'345'678'900);
  event.gpu_minor = 0;
  event.body = std::move(body);
  return event;
}

std::string what(const StoryEvent& event) {
  std::string out;
  append_story_line(out, event, {});
  EXPECT_EQ(out.back(), '\n');
  const std::size_t gpu = out.find("gpu0");
  return gpu == std::string::npos ? out : out.substr(gpu + 6, out.size() - gpu - 7);
}

TEST(StoryText, Columns) {
  model::Actor actor;
  actor.runtime = "docker";
  const std::string id(64, 'c');
  actor.container_id = id;
  std::string out;
  append_story_header(out);
  append_story_line(out, event_of(StoryKind::kGpuOpened, model::GpuBody{}), actor);
  EXPECT_EQ(out,
            "TIME         CONTAINER               PROCESS                 GPU   WHAT\n"
            "12.345       docker:cccccccccccc     worker/7                gpu0  GPU opened\n");
}

TEST(StoryText, FilesAndClients) {
  EXPECT_EQ(what(event_of(StoryKind::kGpuClosed, model::GpuBody{})), "GPU closed");
  EXPECT_EQ(what(event_of(StoryKind::kOpenFailed, model::GpuBody{"nvidia", -EACCES})),
            "open of nvidia0 refused: EACCES");
  EXPECT_EQ(what(event_of(StoryKind::kClientCreated, model::ClientBody{0xc1, 0, false})), "RM client 0xc1");
  EXPECT_EQ(what(event_of(StoryKind::kClientClosed, model::ClientBody{0xc1, 0, false})), "RM client 0xc1 closed");
  EXPECT_EQ(what(event_of(StoryKind::kClientClosed, model::ClientBody{0xc1, 5, true})),
            "RM client 0xc1 closed with its file, 5 objects");
}

TEST(StoryText, ContextsAndChannels) {
  model::ContextBody context;
  context.channels = 20;
  context.groups = 4;
  context.compute = 8;
  context.copy = 12;
  EXPECT_EQ(what(event_of(StoryKind::kContextCreated, context)),
            "context: 20 channels in 4 groups (8 compute, 12 copy)");
  EXPECT_EQ(what(event_of(StoryKind::kContextDestroyed, context)),
            "context closed: 20 channels in 4 groups (8 compute, 12 copy)");
  context = {};
  context.channels = context.groups = 1;
  EXPECT_EQ(what(event_of(StoryKind::kContextChanged, context)), "context now: 1 channel in 1 group");
  model::ChannelBody channel;
  channel.object = 0x5c;
  channel.group = 0x5b;
  channel.entries = 1024;
  channel.engine_name = "COPY2";
  EXPECT_EQ(what(event_of(StoryKind::kChannelCreated, channel)), "channel 0x5c on COPY2, group 0x5b, 1024 entries");
  EXPECT_EQ(what(event_of(StoryKind::kChannelDestroyed, channel)),
            "channel closed: 0x5c on COPY2, group 0x5b, 1024 entries");
}

TEST(StoryText, Memory) {
  model::MemoryBody memory;
  memory.bytes = 2 << 20;
  memory.live_bytes = 3ULL << 29;
  memory.peak_bytes = 3ULL << 29;
  EXPECT_EQ(what(event_of(StoryKind::kMemoryAllocated, memory)), "GPU memory +2.0 MiB, now 1.5 GiB");
  memory.location = model::Location::kPinned;
  EXPECT_EQ(what(event_of(StoryKind::kMemoryPinned, memory)), "pinned memory +2.0 MiB, now 1.5 GiB");
  memory.location = model::Location::kHost;
  memory.objects = 3;
  memory.live_bytes = 0;
  EXPECT_EQ(what(event_of(StoryKind::kMemoryFreed, memory)), "host memory -2.0 MiB (3 objects), now 0 B, peak 1.5 GiB");
  memory = {};
  memory.bytes = memory.live_bytes = 512;
  memory.from = {{1, 9}, 0xc1, 0x5c};
  EXPECT_EQ(what(event_of(StoryKind::kMemoryInherited, memory)),
            "GPU memory +512 B, now 512 B, taken over from pid 9 client 0xc1 object 0x5c");
  memory = {};
  memory.bytes = 1ULL << 40;
  memory.status_name = "NV_ERR_NO_MEMORY";
  EXPECT_EQ(what(event_of(StoryKind::kMemoryRefused, memory)), "GPU memory 1.0 TiB refused: NV_ERR_NO_MEMORY");
  model::MappingBody mapping{model::MapSpace::kGpu, 0xc1, 0x5c, 0x7000, 4096, true, "NAME"};
  EXPECT_EQ(what(event_of(StoryKind::kMemoryMapped, mapping)), "mapped 4.0 KiB at 0x7000 of another process");
  mapping.foreign = false;
  EXPECT_EQ(what(event_of(StoryKind::kMemoryUnmapped, mapping)), "unmapped 4.0 KiB at 0x7000");
  mapping.space = model::MapSpace::kCpu;
  EXPECT_EQ(what(event_of(StoryKind::kMemoryMapped, mapping)), "mapped 4.0 KiB for the CPU at 0x7000");
}

TEST(StoryText, Sharing) {
  model::ShareBody share;
  share.from = {{1, 9}, 0xc2, 0x5d};
  share.bytes = 2 << 20;
  share.name = "NAME";
  EXPECT_EQ(what(event_of(StoryKind::kShareGranted, share)), "others may share 2.0 MiB NAME 0x5d");
  EXPECT_EQ(what(event_of(StoryKind::kShareExported, share)), "exported 2.0 MiB NAME 0x5d");
  EXPECT_EQ(what(event_of(StoryKind::kShareDuplicated, share)), "shares 2.0 MiB NAME of pid 9 client 0xc2 object 0x5d");
  share.from = {};
  share.bytes = 0;
  EXPECT_EQ(what(event_of(StoryKind::kShareImported, share)), "imported NAME of unknown");
  EXPECT_EQ(what(event_of(StoryKind::kPeerEnabled, share)), "peer access between GPUs on");
  EXPECT_EQ(what(event_of(StoryKind::kPeerDisabled, share)), "peer access between GPUs off");
  EXPECT_EQ(what(event_of(StoryKind::kSyncCreated, model::SyncBody{1, 2, 2 << 20, "NAME"})),
            "synchronization: NAME, 2.0 MiB");
  EXPECT_EQ(what(event_of(StoryKind::kMigUsed, model::SignBody{1, 2, "NAME"})), "MIG: NAME");
  EXPECT_EQ(what(event_of(StoryKind::kMpsUsed, model::SignBody{1, 2, "NAME"})), "MPS: NAME");
}

TEST(StoryText, Trouble) {
  model::DenialBody denial;
  denial.name = "NV_ESC_RM_CONTROL";
  denial.number = 0x20800102;
  denial.status = 0x1b;
  EXPECT_EQ(what(event_of(StoryKind::kCallDenied, denial)), "denied: NV_ESC_RM_CONTROL 0x20800102: 0x1b");
  denial.detail = "SOME_CONTROL";
  denial.status_name = "NV_ERR_INSUFFICIENT_PERMISSIONS";
  EXPECT_EQ(what(event_of(StoryKind::kCallDenied, denial)),
            "denied: NV_ESC_RM_CONTROL SOME_CONTROL: NV_ERR_INSUFFICIENT_PERMISSIONS");
  model::FindingBody finding;
  finding.reason = "debugger";
  finding.name = "GT200_DEBUGGER";
  finding.target = {{1, 9}, 0xc2, 0};
  EXPECT_EQ(what(event_of(StoryKind::kSecurityFinding, finding)),
            "finding: debugger: GT200_DEBUGGER on pid 9 client 0xc2");
  finding.failed = true;
  finding.status = 0x1b;
  finding.target = {};
  EXPECT_EQ(what(event_of(StoryKind::kSecurityFinding, finding)), "finding: debugger: GT200_DEBUGGER, refused: 0x1b");
  EXPECT_EQ(what(event_of(StoryKind::kGpuFault, model::FaultBody{1, 2, "NAME"})),
            "GPU fault: the program reads the error state (NAME)");
}

TEST(StoryText, DriverState) {
  model::StateBody state;
  state.event = GPUWATCH_STATE_DRIVER_LIVE;
  std::memcpy(state.name.data(), "nvidia\033", 7);
  EXPECT_EQ(what(event_of(StoryKind::kDriverState, state)), "driver loaded: nvidia\\x1b");
  state.event = GPUWATCH_STATE_HOOK_FAILED;
  state.error = -EBUSY;
  EXPECT_EQ(what(event_of(StoryKind::kDriverState, state)), "cannot watch a function of nvidia\\x1b: EBUSY");
  state.event = GPUWATCH_STATE_ATTACHED;
  state.error = 0;
  state.name = {};
  EXPECT_EQ(what(event_of(StoryKind::kDriverState, state)), "gpuwatch attached");
}

TEST(StoryText, WhichGpu) {
  std::string out;
  StoryEvent event = event_of(StoryKind::kGpuOpened, model::GpuBody{});
  event.gpu_minor = -1;
  event.gpu_device = 3;
  append_story_line(out, event, {});
  EXPECT_NE(out.find(" dev3 "), std::string::npos);
  event.gpu_device = -1;
  out.clear();
  append_story_line(out, event, {});
  EXPECT_NE(out.find(" -     GPU opened"), std::string::npos) << out;
}

TEST(StoryText, BytesRoundDown) {
  const auto text = [](std::uint64_t bytes) {
    std::string out;
    append_bytes(out, bytes);
    return out;
  };
  EXPECT_EQ(text(0), "0 B");
  EXPECT_EQ(text(1023), "1023 B");
  EXPECT_EQ(text(1024), "1.0 KiB");
  EXPECT_EQ(text((1 << 20) - 1), "1023.9 KiB");
  EXPECT_EQ(text(~0ULL), "15.9 EiB");
}

}  // namespace
}  // namespace gpuwatch::publish
