// SPDX-License-Identifier: Apache-2.0
// What StoryBuilder remembers of each process: objects by handle, open GPUs,
// channel groups that do not run yet. Bounded; forgets the longest idle process
// first. Knows nothing of events.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/call.h"
#include "model/story.h"

namespace gpuwatch::decode::story {

struct ProcessKey {
  std::uint64_t start_ns = 0;
  std::uint32_t tgid = 0;
  bool operator==(const ProcessKey&) const = default;
};

struct ProcessKeyHash {
  std::size_t operator()(const ProcessKey& key) const {
    return static_cast<std::size_t>((key.start_ns ^ (std::uint64_t{key.tgid} << 32)) * 0x9E3779B97F4A7C15ULL >> 16);
  }
};

struct Object {
  model::Category category = model::Category::kNone;
  bool host = false;
  std::int32_t device = -1;  // RM device instance, inherited from the parent
  std::uint32_t parent = 0;
  std::uint32_t group = 0;  // of a channel: its channel group
  // Handles of the tree below, 0 for none, so that an end costs what it ends.
  std::uint32_t first_child = 0;
  std::uint32_t next = 0;
  std::uint32_t previous = 0;
  std::uint64_t bytes = 0;    // of memory
  std::uint64_t file_id = 0;  // of a client: the file it lives and dies with
};

// A channel group between its allocation and its first run.
struct Pending {
  std::uint32_t client = 0;
  std::uint32_t group = 0;
  std::int32_t device = -1;
  std::uint32_t channels = 0;
  std::uint32_t engine_count = 0;
  std::array<std::string_view, model::kStoryEngines> engines{};

  void add_engine(std::string_view name) {
    for (std::uint32_t i = 0; i < engine_count; ++i)
      if (engines[i] == name) return;
    if (engine_count < engines.size()) engines[engine_count++] = name;
  }
};

struct OpenGpu {
  std::uint32_t minor = 0;
  std::uint32_t files = 0;
};

// Memory of somebody else, mapped into this process's GPU address space.
struct ForeignMap {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

constexpr std::uint64_t object_key(std::uint32_t client, std::uint32_t handle) {
  return std::uint64_t{client} << 32 | handle;
}

struct Process {
  ProcessKey key;
  gpuwatch_rec head{};  // of its latest call: events of a late release name the owner
  std::uint64_t last_use = 0;
  std::uint64_t gpu_bytes = 0;
  std::uint64_t host_bytes = 0;
  std::vector<OpenGpu> gpus;
  std::vector<Pending> pending;
  std::vector<ForeignMap> foreign_maps;
  std::unordered_map<std::uint64_t, Object> objects;

  Object* find(std::uint32_t client, std::uint32_t handle) {
    const auto at = objects.find(object_key(client, handle));
    return at == objects.end() ? nullptr : &at->second;
  }
  // The handle must not be known. An object whose parent is not known hangs
  // below its client.
  void insert(std::uint32_t client, std::uint32_t handle, Object object) {
    if (object.parent == handle || find(client, object.parent) == nullptr)
      object.parent = client == handle ? 0 : client;
    Object* above = find(client, object.parent);
    object.next = above != nullptr ? above->first_child : 0;
    if (Object* next = find(client, object.next)) next->previous = handle;
    if (above != nullptr) above->first_child = handle;
    objects.emplace(object_key(client, handle), object);
  }
  // The object must not have children.
  void erase(std::uint32_t client, std::uint32_t handle) {
    const Object* object = find(client, handle);
    if (object == nullptr) return;
    if (Object* previous = find(client, object->previous))
      previous->next = object->next;
    else if (Object* above = find(client, object->parent); above != nullptr && above->first_child == handle)
      above->first_child = object->next;
    if (Object* next = find(client, object->next)) next->previous = object->previous;
    objects.erase(object_key(client, handle));
  }
  Pending* find_pending(std::uint32_t client, std::uint32_t group) {
    for (Pending& each : pending)
      if (each.client == client && each.group == group) return &each;
    return nullptr;
  }
  void drop_pending(std::uint32_t client, std::uint32_t group) {
    std::erase_if(pending, [&](const Pending& each) { return each.client == client && each.group == group; });
  }
  OpenGpu& gpu(std::uint32_t minor) {
    for (OpenGpu& each : gpus)
      if (each.minor == minor) return each;
    return gpus.emplace_back(OpenGpu{minor, 0});
  }
  std::uint64_t& total(bool host) { return host ? host_bytes : gpu_bytes; }
};

struct File {
  ProcessKey owner;
  std::uint8_t node_kind = 0;
  std::uint32_t minor = 0;
};

}  // namespace gpuwatch::decode::story
