// SPDX-License-Identifier: Apache-2.0
// Lines for people. Appends to a caller's buffer, one line with its newline per
// call, and escapes every byte that a terminal could act on. Writes nothing
// itself and decides nothing: what to print is the caller's.
#pragma once

#include <cstdint>
#include <string>

#include "model/actor.h"
#include "model/call.h"
#include "model/gpu.h"
#include "model/story.h"

namespace gpuwatch::publish {

struct TextOptions {
  bool colour = false;
  // CLOCK_REALTIME - CLOCK_MONOTONIC of the recording machine. 0: times are
  // printed as seconds since boot.
  std::int64_t realtime_offset_ns = 0;
  std::int32_t utc_offset_s = 0;         // added to wall-clock times
  const model::GpuList* gpus = nullptr;  // names of cards, where known
};

// strace's spirit:
// 22:31:05.123456 python3/1234 ioctl(nvidiactl, NV_ESC_RM_ALLOC, {client=0xc1d00024 ...}) = 0 NV_OK <1.000ms>
void append_raw_line(std::string& out, const model::Call& call, const model::Actor& actor,
                     const TextOptions& options = {});

// Columns: time, container, process, GPU, what.
void append_story_header(std::string& out, const TextOptions& options = {});
// Returns how far behind the line's start its last column begins.
std::size_t append_story_line(std::string& out, const model::StoryEvent& event, const model::Actor& actor,
                              const TextOptions& options = {});

// "nvidia0", "nvidiactl", "nvidia-caps/nvidia-cap1": the node without "/dev/".
void append_node(std::string& out, const model::Call& call);

// "2.0 MiB"; exact below 1 KiB.
void append_bytes(std::string& out, std::uint64_t bytes);

}  // namespace gpuwatch::publish
