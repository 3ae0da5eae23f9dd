// SPDX-License-Identifier: Apache-2.0
// What a reader of the object tree sees of a process, a client and an object.
// Passive copies and views into the tree: good until it changes. Made by
// decode/tree.h, printed by publish.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/call.h"
#include "model/story.h"

namespace gpuwatch::model {

struct Usage {
  std::uint64_t live = 0;
  std::uint64_t peak = 0;
};

// Of one RM device instance; -1: which is not known.
struct GpuUsage {
  std::int32_t device = -1;
  Usage memory;
};

struct TreeProcess {
  gpuwatch_rec head{};                     // of its latest call
  std::array<Usage, kLocations> memory{};  // by Location; GPU: of all GPUs together
  std::uint32_t objects = 0;               // live, clients included
  std::uint32_t contexts = 0;              // live
  std::vector<GpuUsage> gpus;              // where it has or had memory
  bool partial = false;                    // began before gpuwatch looked

  ProcessKey key() const { return {head.start_ns, head.tgid}; }
};

struct TreeClient {
  std::uint32_t handle = 0;
  std::uint64_t made_ns = 0;
  std::uint32_t objects = 0;  // below it
  bool partial = false;
};

struct TreeObject {
  std::uint32_t client = 0;
  std::uint32_t handle = 0;
  std::uint32_t parent = 0;
  Category category = Category::kNone;
  std::uint32_t class_number = 0;
  std::string_view class_name;  // empty: not known
  std::uint64_t made_ns = 0;
  std::int32_t device = -1;  // RM device instance
  std::uint64_t bytes = 0;   // of memory
  Location location = Location::kGpu;
  bool counted = false;          // in this process's totals
  std::uint32_t references = 1;  // to the same memory, this one included; counting stops at 256
  std::uint32_t entries = 0;     // of a channel
  std::uint32_t engine = 0;
  std::string_view engine_name;
  std::uint64_t context = 0;  // id, of a group or lone channel that runs
  bool running = false;
  bool partial = false;  // its parent was not seen: it hangs below its client
};

}  // namespace gpuwatch::model
