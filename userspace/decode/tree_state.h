// SPDX-License-Identifier: Apache-2.0
// What the object tree is made of: numbers of places in its slabs, 0 for none.
// Sizes matter here: a Node is 56 bytes, and there may be a million. Internal
// to decode; others read the tree through tree.h's views.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "model/call.h"
#include "model/story.h"

namespace gpuwatch::decode::state {

enum NodeFlag : std::uint8_t {
  kPartial = 1,  // its parent was not seen
  kCharged = 2,  // its bytes are in the totals; of the references to one memory exactly one is
  kRunning = 4,  // a channel group or lone channel that was scheduled
  kCompute = 8,  // a channel: what its engine objects can do
  kGraphics = 16,
  kVideo = 32,
  kCopy = 64,
};
constexpr std::uint8_t kAbilities = kCompute | kGraphics | kVideo | kCopy;

struct Node {
  std::uint64_t bytes = 0;  // of memory
  std::uint64_t made_ns = 0;
  std::uint32_t handle = 0;
  std::uint32_t client = 0;
  std::uint32_t parent = 0;
  std::uint32_t first = 0;     // child
  std::uint32_t next = 0;      // sibling; 0 behind the last
  std::uint32_t previous = 0;  // sibling; of the first: the last
  std::uint32_t link = 0;      // memory: next reference to it, a ring; group and channel: its context
  std::uint32_t extra = 0;     // memory: previous in the ring; channel: entries; group: address space;
                               // debugger: target's client handle
  std::uint16_t class_id = 0;  // place in the list of class names
  std::uint8_t engine = 0;
  std::uint8_t flags = 0;
  model::Category category = model::Category::kNone;
  model::Location location = model::Location::kGpu;
  std::int8_t device = -1;  // RM device instance
  std::uint8_t spare = 0;
};
static_assert(sizeof(Node) == 56);

struct Client {
  std::uint64_t made_ns = 0;
  std::uint32_t handle = 0;
  std::uint32_t root = 0;     // node
  std::uint32_t process = 0;  // whose it is
  std::uint32_t file = 0;     // it lives and dies with
  std::uint32_t same_handle = 0;
  std::uint32_t process_next = 0, process_previous = 0;
  std::uint32_t file_next = 0, file_previous = 0;
  std::uint32_t objects = 0;  // without its root
  bool partial = false;
};

struct File {
  std::uint64_t id = 0;
  std::uint32_t process = 0;  // that opened it; 0 forgotten
  std::uint32_t first_client = 0;
  std::uint32_t minor = 0;
  std::uint32_t process_next = 0, process_previous = 0;
  std::uint8_t node_kind = 0;
};

struct Usage {
  std::uint64_t live = 0;
  std::uint64_t peak = 0;
  std::uint64_t told = 0;  // live at the last line about it

  void add(std::uint64_t bytes) {
    live += bytes;
    if (live > peak) peak = live;
  }
  void remove(std::uint64_t bytes) { live -= bytes < live ? bytes : live; }
};

struct GpuUsage {
  std::int32_t device = -1;
  Usage memory;
};

struct Context {
  std::uint64_t id = 0;
  std::uint64_t started_ns = 0;
  std::uint64_t last_ns = 0;  // when its latest group ran
  std::uint64_t entries = 0;
  std::uint32_t client = 0;
  std::uint32_t process = 0;
  std::uint32_t device = 0;   // handle
  std::uint32_t vaspace = 0;  // handle
  std::uint32_t first_group = 0;
  std::uint32_t groups = 0;  // ever
  std::uint32_t live_groups = 0;
  std::uint32_t channels = 0, compute = 0, graphics = 0, video = 0, copy = 0;  // ever
  std::int8_t device_instance = -1;
  bool told = false;
  bool changed = false;
};

struct OpenGpu {
  std::uint32_t minor = 0;
  std::uint32_t files = 0;
};

// Addresses that lead to an object, see mapping_key().
struct Mapping {
  std::uint64_t bytes = 0;
  std::uint32_t client = 0;  // handles
  std::uint32_t object = 0;
  bool foreign = false;
};

struct Process {
  model::ProcessKey key;
  gpuwatch_rec head{};                 // of its latest call: events of a late release name the owner
  std::uint32_t newer = 0, older = 0;  // by last use
  std::uint32_t first_client = 0;
  std::uint32_t first_file = 0;
  std::uint32_t objects = 0;
  std::uint32_t contexts = 0;
  std::uint32_t building = 0;  // channel groups that do not run yet
  std::uint64_t last_fault_ns = 0;
  bool partial = false;
  Usage totals[model::kLocations];  // [kGpu] is of all GPUs together
  std::vector<GpuUsage> gpus;
  std::vector<OpenGpu> open_gpus;
  std::vector<std::uint32_t> running;        // its contexts
  std::vector<std::uint32_t> forming;        // those with something to tell
  std::vector<std::uint64_t> told_findings;  // a bit per line of security.in
  std::unordered_map<std::uint64_t, Mapping> mappings;
};

}  // namespace gpuwatch::decode::state
