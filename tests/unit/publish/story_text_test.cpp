// SPDX-License-Identifier: Apache-2.0
// Lines of the default view, exactly, for every kind of event.
#include <gtest/gtest.h>

#include "publish/text.h"
#include "unit/support.h"

namespace gpuwatch::publish {
namespace {

using model::StoryEvent;
using model::StoryKind;

StoryEvent event_of(StoryKind kind) {
  StoryEvent event;
  event.kind = kind;
  event.head = test::make_head(GPUWATCH_REC_IOCTL, 12'345'678'900);
  event.gpu_minor = 0;
  event.object = 0x5c;
  event.client = 0xc1;
  event.source_client = 0xc2;
  event.source_object = 0x5d;
  event.name = "NAME";
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
  append_story_line(out, event_of(StoryKind::kGpuOpened), actor);
  EXPECT_EQ(out,
            "TIME         CONTAINER               PROCESS                 GPU   WHAT\n"
            "12.345       docker:cccccccccccc     worker/7                gpu0  GPU opened\n");
}

TEST(StoryText, EveryKindHasWords) {
  StoryEvent event = event_of(StoryKind::kContextCreated);
  event.channels = 8;
  event.engine_count = 2;
  event.engines = {"HOPPER_COMPUTE_A", "HOPPER_DMA_COPY_A"};
  EXPECT_EQ(what(event), "context: 8 channels with HOPPER_COMPUTE_A, HOPPER_DMA_COPY_A (group 0x5c)");
  event = event_of(StoryKind::kContextClosed);
  event.contexts = 1;
  EXPECT_EQ(what(event), "context closed (group 0x5c)");
  event.contexts = 4;
  EXPECT_EQ(what(event), "4 contexts closed");
  event = event_of(StoryKind::kMemoryAllocated);
  event.bytes = 2 << 20;
  event.total_bytes = 3ULL << 29;
  EXPECT_EQ(what(event), "GPU memory +2.0 MiB, now 1.5 GiB");
  event.kind = StoryKind::kMemoryFreed;
  event.host_memory = true;
  event.bytes = 512;
  EXPECT_EQ(what(event), "host memory -512 B, now 1.5 GiB");
  event = event_of(StoryKind::kMemoryRefused);
  event.bytes = 1ULL << 40;
  event.status_name = "NV_ERR_NO_MEMORY";
  EXPECT_EQ(what(event), "GPU memory 1.0 TiB refused: NV_ERR_NO_MEMORY");
  event = event_of(StoryKind::kDenied);
  event.name = "NV_ESC_RM_CONTROL";
  event.number = 0x20800102;
  event.status = 0x1b;
  EXPECT_EQ(what(event), "denied: NV_ESC_RM_CONTROL 0x20800102: 0x1b");
  event.detail = "SOME_CONTROL";
  event.status_name = "NV_ERR_INSUFFICIENT_PERMISSIONS";
  EXPECT_EQ(what(event), "denied: NV_ESC_RM_CONTROL SOME_CONTROL: NV_ERR_INSUFFICIENT_PERMISSIONS");
  event = event_of(StoryKind::kOpenFailed);
  event.name = "nvidia";
  event.ret = -EACCES;
  EXPECT_EQ(what(event), "open of nvidia0 refused: EACCES");
  EXPECT_EQ(what(event_of(StoryKind::kGpuClosed)), "GPU closed");
  EXPECT_EQ(what(event_of(StoryKind::kClientCreated)), "RM client 0xc1");
  EXPECT_EQ(what(event_of(StoryKind::kClientClosed)), "RM client 0xc1 closed");
  EXPECT_EQ(what(event_of(StoryKind::kDuplicated)), "object taken over from client 0xc2 object 0x5d");
  EXPECT_EQ(what(event_of(StoryKind::kDebuggerAttached)), "debugger attached to client 0xc2 object 0x5d");
  EXPECT_EQ(what(event_of(StoryKind::kExported)), "memory exported: NAME");
  EXPECT_EQ(what(event_of(StoryKind::kImported)), "memory imported: NAME");
  EXPECT_EQ(what(event_of(StoryKind::kForeignMemory)), "memory of another process: NAME");
  EXPECT_EQ(what(event_of(StoryKind::kProfilerAttached)), "profiler: NAME");
  EXPECT_EQ(what(event_of(StoryKind::kPeerEnabled)), "peer access between GPUs on");
  EXPECT_EQ(what(event_of(StoryKind::kPeerDisabled)), "peer access between GPUs off");
  event = event_of(StoryKind::kMemoryMapped);
  event.address = 0x7000;
  event.bytes = 4096;
  EXPECT_EQ(what(event), "mapped 4.0 KiB at 0x7000");
  event.kind = StoryKind::kMemoryUnmapped;
  EXPECT_EQ(what(event), "unmapped 4.0 KiB at 0x7000");
}

TEST(StoryText, DriverState) {
  StoryEvent event = event_of(StoryKind::kDriverState);
  event.state_event = GPUWATCH_STATE_DRIVER_LIVE;
  std::memcpy(event.state_name.data(), "nvidia\033", 7);
  EXPECT_EQ(what(event), "driver loaded: nvidia\\x1b");
  event.state_event = GPUWATCH_STATE_HOOK_FAILED;
  event.state_error = -EBUSY;
  EXPECT_EQ(what(event), "cannot watch a function of nvidia\\x1b: EBUSY");
  event.state_event = GPUWATCH_STATE_ATTACHED;
  event.state_error = 0;
  event.state_name = {};
  EXPECT_EQ(what(event), "gpuwatch attached");
}

TEST(StoryText, WhichGpu) {
  std::string out;
  StoryEvent event = event_of(StoryKind::kGpuOpened);
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
