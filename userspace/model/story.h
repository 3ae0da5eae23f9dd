// SPDX-License-Identifier: Apache-2.0
// StoryEvent: what happened on a GPU, as typed data: a kind from
// story_kinds.def, who and when (`head`), where, and a body with the values of
// that kind. Made by decode/story.h, printed by publish. Owns nothing that
// needs freeing: names point into static tables.
//
// To read one:   if (const auto* memory = std::get_if<MemoryBody>(&event.body)) ...
// To add a kind: see the top of story_kinds.def.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

#include "model/code_story.h"
#include "model/raw_record.h"

namespace gpuwatch::model {

enum class StoryKind : std::uint8_t {
#define STORY(enumerator, name, body, view) enumerator,
#include "model/story_kinds.def"
#undef STORY
  kCount,
};

enum class StoryView : std::uint8_t {
  kLine,    // the default view shows it
  kDetail,  // only on request, and in JSON
};

struct StoryKindInfo {
  std::string_view name;
  StoryView view;
};

inline constexpr StoryKindInfo kStoryKinds[] = {
#define STORY(enumerator, name, body, view) {name, StoryView::view},
#include "model/story_kinds.def"
#undef STORY
};

constexpr const StoryKindInfo& story_kind_info(StoryKind kind) {
  return kStoryKinds[static_cast<std::size_t>(kind)];
}

// One process for all time: pid and start.
struct ProcessKey {
  std::uint64_t start_ns = 0;
  std::uint32_t tgid = 0;
  bool operator==(const ProcessKey&) const = default;
};

// Where memory lies.
enum class Location : std::uint8_t {
  kGpu,     // on the GPU
  kHost,    // the driver's own pages in host memory
  kPinned,  // pages of the process, pinned for the GPU
  kFabric,  // a handle for memory on other GPUs of the fabric
};
inline constexpr std::size_t kLocations = 4;

constexpr std::string_view location_name(Location location) {
  constexpr std::string_view kNames[kLocations] = {"gpu", "host", "pinned", "fabric"};
  return kNames[static_cast<std::size_t>(location)];
}

// One end of a relation between clients; all 0 where it was not seen.
struct Party {
  ProcessKey process;
  std::uint32_t client = 0;
  std::uint32_t object = 0;
};

struct GpuBody {
  std::string_view node;  // of a refused open: family of the node
  std::int64_t ret = 0;
};

struct ClientBody {
  std::uint32_t client = 0;
  std::uint32_t objects = 0;  // that ended with it
  bool by_file = false;       // it ended because its file was released
};

// A context is the channel groups of one client on one device that share an
// address space, with at most one group that can compute or draw; lone channels
// count as groups of one. It is told when it has run and the next thing of the
// process is no part of it.
struct ContextBody {
  std::uint64_t id = 0;  // counts from 1; names a context in all its events
  std::uint32_t client = 0;
  std::uint32_t device = 0;   // handle
  std::uint32_t vaspace = 0;  // handle, 0 the device's own
  std::uint32_t group = 0;    // handle of its first group
  std::uint32_t groups = 0;
  std::uint32_t channels = 0;  // the sum of the next four and those without an engine
  std::uint32_t compute = 0;
  std::uint32_t graphics = 0;
  std::uint32_t video = 0;
  std::uint32_t copy = 0;        // that can only copy
  std::uint64_t entries = 0;     // GPFIFO entries of all channels
  std::uint64_t started_ns = 0;  // when its first group ran, CLOCK_MONOTONIC
};

struct ChannelBody {
  std::uint32_t client = 0;
  std::uint32_t object = 0;
  std::uint32_t group = 0;       // 0 for a lone channel
  std::uint32_t entries = 0;     // of its GPFIFO
  std::uint32_t engine = 0;      // number, as the driver has it
  std::string_view engine_name;  // "GR0", "COPY2", ...; empty: not known
  std::string_view class_name;
};

// Totals are those after the event. GPU memory is summed per GPU, the rest per
// process. Memory that several clients hold counts once, for whom it was
// allocated, until the last of them lets go.
struct MemoryBody {
  Location location = Location::kGpu;
  std::uint32_t client = 0;
  std::uint32_t object = 0;  // 0 when several were freed at once
  std::uint32_t objects = 1;
  std::uint64_t bytes = 0;
  std::uint64_t live_bytes = 0;  // this process, this location (and GPU)
  std::uint64_t peak_bytes = 0;
  std::uint64_t gpu_live_bytes = 0;  // all watched processes on this GPU
  std::uint64_t gpu_peak_bytes = 0;
  std::string_view class_name;
  Party from;                // memory.inherited: who let go
  std::uint32_t status = 0;  // memory.refused
  std::string_view status_name;
};

// Whose addresses a mapping is about.
enum class MapSpace : std::uint8_t { kGpu, kCpu };

struct MappingBody {
  MapSpace space = MapSpace::kGpu;
  std::uint32_t client = 0;
  std::uint32_t object = 0;
  std::uint64_t address = 0;  // kCpu: what the driver knows the mapping by, no address of the process
  std::uint64_t bytes = 0;
  bool foreign = false;  // of another process's client
  std::string_view name;
};

// How something is shared.
enum class Mechanism : std::uint8_t { kPolicy, kDuplicate, kFile, kDmabuf, kFabric, kPeer };

constexpr std::string_view mechanism_name(Mechanism mechanism) {
  constexpr std::string_view kNames[] = {"policy", "duplicate", "file", "dmabuf", "fabric", "peer"};
  return kNames[static_cast<std::size_t>(mechanism)];
}

struct ShareBody {
  Mechanism mechanism = Mechanism::kPolicy;
  Party from;
  Party to;
  std::uint64_t bytes = 0;  // of the memory shared, 0 not known
  std::string_view name;    // of the call or class
};

struct SyncBody {
  std::uint32_t client = 0;
  std::uint32_t object = 0;
  std::uint64_t bytes = 0;
  std::string_view name;
};

struct SignBody {
  std::uint32_t client = 0;
  std::uint32_t object = 0;
  std::string_view name;
};

struct FaultBody {
  std::uint32_t client = 0;
  std::uint32_t object = 0;
  std::string_view name;  // of the call that shows it
};

struct DenialBody {
  std::uint32_t client = 0;
  std::uint32_t object = 0;
  std::string_view name;
  std::string_view detail;   // class or control
  std::uint32_t number = 0;  // of what detail would name
  std::uint32_t status = 0;
  std::string_view status_name;
  std::int64_t ret = 0;
};

// A call of the table decode/tables/security.in that CUDA programs do not make
// by habit.
struct FindingBody {
  std::string_view reason;  // "debugger", "regops", ...
  std::string_view name;    // of the control, class or command
  std::uint32_t number = 0;
  std::string_view privilege;  // who may call it; empty: not known
  bool mutates = false;
  bool failed = false;
  std::uint32_t status = 0;
  std::string_view status_name;
  std::uint32_t client = 0;
  std::uint32_t object = 0;
  Party target;  // whose client it is about, where the call names one
};

// A GPU that the container was not given, or a node that a program made itself.
// Views: the event is printed before they end. See attribute/allocation.h.
struct AllocationBody {
  std::string_view reason;    // "outside_allocation", "own_node"
  std::string_view evidence;  // which source says what; holds untrusted bytes
};

struct StateBody {
  std::uint32_t event = 0;  // enum gpuwatch_state
  std::uint32_t value = 0;
  std::int64_t error = 0;
  std::array<char, GPUWATCH_NAME_LEN> name{};  // NUL padded, untrusted bytes
};

using StoryBody = std::variant<std::monostate, GpuBody, ClientBody, ContextBody, ChannelBody, MemoryBody, MappingBody,
                               ShareBody, SyncBody, SignBody, FaultBody, DenialBody, FindingBody, AllocationBody,
                               ModuleBody, UnverifiedBody, ProbedBody, DiffersBody, StateBody>;

struct StoryEvent {
  StoryKind kind = StoryKind::kDriverState;
  StoryView view = StoryView::kLine;
  gpuwatch_rec head{};  // time, process, cgroup, comm of the call that completed the event

  std::int32_t gpu_minor = -1;   // /dev/nvidiaN; -1 not known
  std::int32_t gpu_device = -1;  // RM device instance; -1 not known
  bool partial = false;          // what it is about began before gpuwatch looked

  StoryBody body;

  ProcessKey process() const { return {head.start_ns, head.tgid}; }
};

}  // namespace gpuwatch::model
