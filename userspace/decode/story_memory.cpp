// SPDX-License-Identifier: Apache-2.0
// Memory allocated, freed, refused, passed on and mapped, with totals.
//
// Every change is an event; the default view shows one where a total has moved
// by kTellStep since it was shown last, or fell to nothing: CUDA allocates in
// pieces of 2 MiB, and forty lines of them tell less than three.
#include <algorithm>

#include "decode/story_impl.h"

namespace gpuwatch::decode {

using model::Call;
using model::Field;
using model::Location;
using model::MemoryBody;
using model::StoryEvent;
using model::StoryKind;
using model::StoryView;
using state::Node;

namespace {

constexpr std::uint64_t kTellStep = 32ULL << 20;
constexpr std::uint64_t kMostBytes = 8ULL << 40;
constexpr std::size_t kMaxMappings = 65536;  // of a process

// GPU addresses have at most 57 bits, so the two spaces do not meet.
std::uint64_t mapping_key(model::MapSpace space, std::uint64_t address) {
  return address ^ (static_cast<std::uint64_t>(space) << 63);
}

}  // namespace

state::Usage& StoryBuilder::Impl::usage_of(std::uint32_t process, Location location, std::int32_t device) {
  state::Process& who = t.processes[process];
  if (location == Location::kGpu) return t.gpu_usage(who.gpus, device).memory;
  return who.totals[static_cast<std::size_t>(location)];
}

MemoryBody StoryBuilder::Impl::memory_body(std::uint32_t process, Location location, std::int32_t device) const {
  MemoryBody body;
  body.location = location;
  const state::Process& who = t.processes[process];
  const state::Usage* usage = &who.totals[static_cast<std::size_t>(location)];
  if (location == Location::kGpu) {
    for (const state::GpuUsage& each : who.gpus)
      if (each.device == device) usage = &each.memory;
    const model::Usage all = tree.gpu(device);
    body.gpu_live_bytes = all.live;
    body.gpu_peak_bytes = all.peak;
  }
  body.live_bytes = usage->live;
  body.peak_bytes = usage->peak;
  return body;
}

StoryView StoryBuilder::Impl::view_of_memory(std::uint32_t process, Location location, std::int32_t device) {
  state::Usage& usage = usage_of(process, location, device);
  const std::uint64_t moved = usage.live > usage.told ? usage.live - usage.told : usage.told - usage.live;
  if (moved < kTellStep && !(usage.live == 0 && usage.told != 0)) return StoryView::kDetail;
  usage.told = usage.live;
  return StoryView::kLine;
}

void StoryBuilder::Impl::made_memory(Scene& scene, std::uint32_t place, std::uint64_t bytes) {
  Node& node = t.nodes[place];
  if (bytes == 0) return;
  // No machine has it: a forged number that must not make sums wrap.
  if (bytes > kMostBytes) {
    ++t.untracked;
    return;
  }
  node.bytes = bytes;
  t.charge(place);
  MemoryBody body = memory_body(scene.process, node.location, node.device);
  const std::uint32_t owner = t.process_of(node);
  if (owner != scene.process) body = memory_body(owner, node.location, node.device);
  body.client = t.clients[node.client].handle;
  body.object = node.handle;
  body.bytes = bytes;
  body.class_name = scene.call.detail;
  const StoryKind kind = node.location == Location::kPinned ? StoryKind::kMemoryPinned : StoryKind::kMemoryAllocated;
  StoryEvent& event = tell(kind, scene, body, node.device);
  event.view = view_of_memory(owner, node.location, node.device);
}

void StoryBuilder::Impl::tell_freed(std::uint32_t process, std::uint32_t client, Location location,
                                    const FreedMemory& freed, const gpuwatch_rec& at, Events& out) {
  MemoryBody body = memory_body(process, location, freed.device);
  body.client = client;
  body.objects = freed.objects;
  body.object = freed.objects == 1 ? freed.handle : 0;
  body.bytes = freed.bytes;
  if (freed.objects == 1) body.class_name = t.class_names[freed.class_id].name;
  const StoryKind kind = location == Location::kPinned ? StoryKind::kMemoryUnpinned : StoryKind::kMemoryFreed;
  StoryEvent& event = tell_of(kind, process, at, out, body, freed.device);
  event.view = view_of_memory(process, location, freed.device);
}

// Somebody let go of memory that another process still refers to.
void StoryBuilder::Impl::tell_inherited(std::uint32_t place, std::uint32_t from_process, std::uint32_t from_client,
                                        std::uint32_t from_handle, const gpuwatch_rec& at, Events& out) {
  const Node& node = t.nodes[place];
  const std::uint32_t heir = t.process_of(node);
  MemoryBody body = memory_body(heir, node.location, node.device);
  body.client = t.clients[node.client].handle;
  body.object = node.handle;
  body.bytes = node.bytes;
  body.class_name = t.class_names[node.class_id].name;
  body.from = {t.processes[from_process].key, from_client, from_handle};
  tell_of(StoryKind::kMemoryInherited, heir, at, out, body, node.device);
}

// Out of memory, mostly: the driver says so in the status alone.
void StoryBuilder::Impl::tell_refused_memory(Scene& scene) {
  const Call& call = scene.call;
  if (!call.has(Field::kBytes)) return;
  const Location location = call.category == model::Category::kMemoryHost     ? Location::kHost
                            : call.category == model::Category::kMemoryPinned ? Location::kPinned
                            : call.category == model::Category::kFabric       ? Location::kFabric
                                                                              : Location::kGpu;
  std::int32_t device = -1;
  if (const std::uint32_t client = t.own_client(call.get32(Field::kClient), scene.process, scene.file))
    if (const std::uint32_t parent = t.find(client, call.get32(Field::kParent))) device = t.nodes[parent].device;
  MemoryBody body = memory_body(scene.process, location, device);
  body.client = call.get32(Field::kClient);
  body.objects = 0;
  body.bytes = call.get(Field::kBytes);
  body.class_name = call.detail;
  body.status = call.get32(Field::kStatus);
  body.status_name = call.status_name;
  tell(StoryKind::kMemoryRefused, scene, body, device);
}

// Mapping one's own memory follows each allocation and is a detail; mapping
// somebody else's is a line.
void StoryBuilder::Impl::on_map(Scene& scene, model::MapSpace space) {
  const Call& call = scene.call;
  if (!call.has(Field::kObject)) return;
  const std::uint32_t client_handle = call.get32(Field::kClient);
  const std::uint32_t client = t.own_client(client_handle, scene.process, scene.file);
  model::MappingBody body;
  body.space = space;
  body.client = client_handle;
  body.object = call.get32(Field::kObject);
  body.address = call.get(Field::kAddress);
  body.bytes = call.get(Field::kLength);
  body.foreign = client == 0 && t.source_client(client_handle, scene.process) != 0;
  body.name = call.name;
  state::Process& who = t.processes[scene.process];
  if (who.mappings.size() < kMaxMappings)
    who.mappings.insert_or_assign(mapping_key(space, body.address),
                                  state::Mapping{body.bytes, body.client, body.object, body.foreign});
  else
    ++t.untracked;
  const std::uint32_t node = client != 0 ? t.find(client, body.object) : 0;
  StoryEvent& event = tell(StoryKind::kMemoryMapped, scene, body, node != 0 ? t.nodes[node].device : -1);
  event.view = body.foreign ? StoryView::kLine : StoryView::kDetail;
}

void StoryBuilder::Impl::on_unmap(Scene& scene, model::MapSpace space) {
  state::Process& who = t.processes[scene.process];
  const std::uint64_t address = scene.call.get(Field::kAddress);
  const auto known = who.mappings.find(mapping_key(space, address));
  if (known == who.mappings.end()) return;
  const state::Mapping map = known->second;
  const model::MappingBody body{space, map.client, map.object, address, map.bytes, map.foreign, scene.call.name};
  who.mappings.erase(known);
  StoryEvent& event = tell(StoryKind::kMemoryUnmapped, scene, body);
  event.view = map.foreign ? StoryView::kLine : StoryView::kDetail;
}

}  // namespace gpuwatch::decode
