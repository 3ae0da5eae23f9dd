// SPDX-License-Identifier: Apache-2.0
// Calls and story events made from nothing, for tests of reports.
#pragma once

#include <cstring>
#include <string>

#include "model/actor.h"
#include "model/call.h"
#include "model/story.h"

namespace gpuwatch::test {

inline gpuwatch_rec head_of(std::uint32_t pid, std::uint64_t time_ns, const char* comm = "app") {
  gpuwatch_rec head{};
  head.tgid = head.tid = pid;
  head.start_ns = 1000 + pid;
  head.time_ns = time_ns;
  head.cgroup_id = pid;
  head.node_kind = GPUWATCH_NODE_CTL;
  std::strncpy(head.comm, comm, sizeof head.comm - 1);
  return head;
}

inline model::Call call_of(std::uint32_t pid, std::uint64_t time_ns, std::uint64_t duration_ns = 1000,
                           std::string_view name = "NV_ESC_RM_CONTROL", std::string_view detail = "GPU_GET_INFO") {
  model::Call call;
  call.kind = model::CallKind::kIoctl;
  call.record.head = head_of(pid, time_ns);
  call.duration_ns = duration_ns;
  call.name = name;
  call.detail = detail;
  call.node = "nvidiactl";
  return call;
}

template <typename Body>
model::StoryEvent event_of(model::StoryKind kind, std::uint32_t pid, std::uint64_t time_ns, Body body) {
  model::StoryEvent event;
  event.kind = kind;
  event.head = head_of(pid, time_ns);
  event.gpu_minor = 0;
  event.gpu_device = 0;
  event.body = body;
  return event;
}

inline model::StoryEvent memory_of(std::uint32_t pid, std::uint64_t time_ns, std::uint64_t bytes, std::uint64_t live,
                                   std::uint64_t all_live, bool allocated = true) {
  model::MemoryBody body;
  body.bytes = bytes;
  body.live_bytes = live;
  body.peak_bytes = live;
  body.gpu_live_bytes = all_live;
  return event_of(allocated ? model::StoryKind::kMemoryAllocated : model::StoryKind::kMemoryFreed, pid, time_ns, body);
}

inline model::StoryEvent context_of(std::uint32_t pid, std::uint64_t time_ns, std::uint64_t id, bool begins = true) {
  model::ContextBody body;
  body.id = id;
  body.groups = 4;
  body.channels = 20;
  body.started_ns = begins ? time_ns : 0;
  return event_of(begins ? model::StoryKind::kContextCreated : model::StoryKind::kContextDestroyed, pid, time_ns, body);
}

inline model::StoryEvent channel_of(std::uint32_t pid, std::uint64_t time_ns, std::uint32_t object,
                                    std::string_view engine, bool begins = true) {
  model::ChannelBody body;
  body.client = pid;
  body.object = object;
  body.engine_name = engine;
  return event_of(begins ? model::StoryKind::kChannelCreated : model::StoryKind::kChannelDestroyed, pid, time_ns, body);
}

}  // namespace gpuwatch::test
