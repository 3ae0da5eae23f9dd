// SPDX-License-Identifier: Apache-2.0
// StoryEvent: one line of the default view, as data: what happened, to which
// GPU, with which sizes. Made by decode/story.h, printed by publish. Owns
// nothing that needs freeing.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/raw_record.h"

namespace gpuwatch::model {

enum class StoryKind : std::uint8_t {
  kGpuOpened,
  kGpuClosed,
  kOpenFailed,
  kClientCreated,
  kClientClosed,
  kContextCreated,  // a channel group with its channels starts to run
  kContextClosed,
  kMemoryAllocated,
  kMemoryFreed,
  kMemoryMapped,
  kMemoryUnmapped,
  kPeerEnabled,
  kPeerDisabled,
  kExported,
  kImported,
  kDuplicated,
  kForeignMemory,
  kDebuggerAttached,
  kProfilerAttached,
  kDenied,
  kDriverState,
  kMemoryRefused,
};

inline constexpr std::size_t kStoryEngines = 6;

struct StoryEvent {
  StoryKind kind = StoryKind::kDriverState;
  gpuwatch_rec head{};  // time, process, cgroup, comm of the call that completed the event

  std::int32_t gpu_minor = -1;   // /dev/nvidiaN; -1 not known
  std::int32_t gpu_device = -1;  // RM device instance; -1 not known

  std::uint32_t client = 0;
  std::uint32_t object = 0;
  std::uint32_t source_client = 0;
  std::uint32_t source_object = 0;

  std::uint32_t contexts = 0;  // kContextClosed: how many ended at once
  std::uint32_t channels = 0;
  std::uint32_t engine_count = 0;  // entries of `engines` in use
  std::array<std::string_view, kStoryEngines> engines{};

  bool host_memory = false;       // memory events: host, not GPU
  std::uint64_t bytes = 0;        // of this event
  std::uint64_t total_bytes = 0;  // of the process and kind of memory, after this event
  std::uint64_t address = 0;

  std::string_view name;         // call or class the event is about
  std::string_view detail;       // control or class name of a denial
  std::uint32_t number = 0;      // where detail is empty: the number that has no name
  std::string_view status_name;  // of a denial
  std::uint32_t status = 0;
  std::int64_t ret = 0;

  std::uint32_t state_event = 0;  // enum gpuwatch_state
  std::uint32_t state_value = 0;
  std::int64_t state_error = 0;
  std::array<char, GPUWATCH_NAME_LEN> state_name{};  // NUL padded, untrusted bytes
};

}  // namespace gpuwatch::model
