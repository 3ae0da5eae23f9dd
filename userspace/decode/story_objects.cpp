// SPDX-License-Identifier: Apache-2.0
// Objects made and ended: what an allocation adds to the tree and what a free
// takes out of it, with all below.
#include <array>

#include "decode/story_impl.h"

namespace gpuwatch::decode {

using model::Call;
using model::Category;
using model::Field;
using model::Location;
using model::StoryKind;
using model::Tag;
using state::Node;

namespace {

Location location_of(Category category) {
  switch (category) {
    case Category::kMemoryHost:
      return Location::kHost;
    case Category::kMemoryPinned:
      return Location::kPinned;
    case Category::kFabric:
      return Location::kFabric;
    default:
      return Location::kGpu;
  }
}

// RM has at most 32 devices; what is beyond is a forged number.
std::int8_t device_number(std::uint64_t value) {
  return value < 128 ? static_cast<std::int8_t>(value) : std::int8_t{-1};
}

}  // namespace

// The client this call acts in; one that was made before gpuwatch looked is
// taken in now, as partial.
std::uint32_t StoryBuilder::Impl::client_for(Scene& scene, std::uint32_t handle) {
  if (handle == 0) return 0;
  if (const std::uint32_t known = t.own_client(handle, scene.process, scene.file)) return known;
  if (t.source_client(handle, scene.process) != 0) ++t.ignored;  // somebody else's: theirs stays as it is
  const gpuwatch_rec& head = scene.call.record.head;
  // A client lives with the nvidiactl file it was made on.
  std::uint32_t file = scene.file;
  if (file == 0 && head.node_kind == GPUWATCH_NODE_CTL) file = t.add_file(head, scene.call.minor, scene.process);
  if (file != 0 && t.files[file].node_kind != GPUWATCH_NODE_CTL) file = 0;
  const std::uint32_t client = t.add_client(handle, scene.process, file, head.time_ns);
  if (client == 0) return 0;
  t.clients[client].partial = true;
  t.processes[scene.process].partial = true;
  return client;
}

// A handle that is made again while known: its end was lost.
void StoryBuilder::Impl::end_known(Scene& scene, std::uint32_t client, std::uint32_t handle) {
  const std::uint32_t old = t.find(client, handle);
  if (old != 0 && old != t.clients[client].root) end_tree(old, scene.call.record.head, scene.out, false, true);
}

void StoryBuilder::Impl::on_alloc(Scene& scene) {
  const Call& call = scene.call;
  const std::uint64_t now = call.record.head.time_ns;
  const std::uint32_t handle = call.get32(Field::kObject);
  if (call.category == Category::kClient) {
    if (const std::uint32_t old = t.own_client(handle, scene.process, 0))
      end_tree(t.clients[old].root, call.record.head, scene.out, false, true);
    std::uint32_t file = scene.file;
    if (file == 0) file = t.add_file(call.record.head, call.minor, scene.process);
    const std::uint32_t client = t.add_client(handle, scene.process, file, now);
    if (client == 0) return;
    t.nodes[t.clients[client].root].class_id = t.class_id(call.get32(Field::kClass), call.detail);
    tell(StoryKind::kClientCreated, scene, model::ClientBody{handle, 0, false});
    return;
  }
  const std::uint32_t client = client_for(scene, call.get32(Field::kClient));
  if (client == 0) return;
  end_known(scene, client, handle);
  const std::uint32_t place =
      handle == t.clients[client].handle ? 0 : t.add_object(client, call.get32(Field::kParent), handle, now);
  if (place == 0) return;
  Node& node = t.nodes[place];
  node.category = call.category;
  node.class_id = t.class_id(call.get32(Field::kClass), call.detail);
  node.engine = static_cast<std::uint8_t>(std::min<std::uint64_t>(call.get(Field::kEngine), 255));
  switch (call.category) {
    case Category::kDevice:
      node.device = call.has(Field::kDevice) ? device_number(call.get(Field::kDevice)) : std::int8_t{-1};
      break;
    case Category::kChannelGroup:
      made_group(scene, place);
      break;
    case Category::kChannel:
      made_channel(scene, place);
      break;
    case Category::kDebugger:
      node.extra = call.get32(Field::kSourceClient);
      break;
    case Category::kEvent:
    case Category::kSemaphore:
      tell(StoryKind::kSyncCreated, scene, model::SyncBody{call.get32(Field::kClient), handle, 0, call.detail},
           node.device);
      break;
    case Category::kContextShare:
      // A group without an address space of its own uses that of its share.
      if (Node& group = t.nodes[node.parent]; group.category == Category::kChannelGroup && group.extra == 0)
        group.extra = call.get32(Field::kVaspace);
      break;
    default:
      if (is_engine(call.category)) {
        made_engine(place);
      } else if (is_memory(call.category)) {
        node.location = location_of(call.category);
        made_memory(scene, place, call.has(Field::kBytes) ? call.get(Field::kBytes) : call.get(Field::kLength));
      }
  }
  if (call.class_tag == Tag::kSign) tell_sign(scene, node);
  if (call.class_tag == Tag::kExport) on_export(scene, model::Mechanism::kFabric);
  if (call.class_tag == Tag::kImport) on_import(scene, model::Mechanism::kFabric);
}

void StoryBuilder::Impl::tell_sign(Scene& scene, const Node& node) {
  const StoryKind kind = node.category == Category::kMig ? StoryKind::kMigUsed : StoryKind::kMpsUsed;
  tell(kind, scene, model::SignBody{scene.call.get32(Field::kClient), node.handle, scene.call.detail}, node.device);
}

// NV_ESC_RM_VID_HEAP_CONTROL: older way to allocate and free GPU memory.
void StoryBuilder::Impl::on_heap_control(Scene& scene) {
  constexpr std::uint32_t kAllocSize = 2;
  constexpr std::uint32_t kFree = 3;
  const Call& call = scene.call;
  const std::uint32_t handle = call.get32(Field::kObject);
  if (call.get32(Field::kFunction) == kFree) on_free(scene, call.get32(Field::kClient), handle);
  if (call.get32(Field::kFunction) != kAllocSize) return;
  const std::uint32_t client = client_for(scene, call.get32(Field::kClient));
  if (client == 0) return;
  end_known(scene, client, handle);
  if (handle == t.clients[client].handle) return;
  const std::uint32_t place = t.add_object(client, call.get32(Field::kParent), handle, call.record.head.time_ns);
  if (place == 0) return;
  t.nodes[place].category = Category::kMemoryGpu;
  made_memory(scene, place, call.get(Field::kBytes));
}

void StoryBuilder::Impl::on_free(Scene& scene, std::uint32_t client_handle, std::uint32_t handle) {
  const std::uint32_t client = t.own_client(client_handle, scene.process, scene.file);
  if (client == 0) {
    if (t.source_client(client_handle, scene.process) != 0) ++t.ignored;
    return;
  }
  if (const std::uint32_t place = t.find(client, handle))
    end_tree(place, scene.call.record.head, scene.out, false, false);
}

void StoryBuilder::Impl::end_tree(std::uint32_t top, const gpuwatch_rec& at, Events& out, bool by_file, bool quiet) {
  const std::uint32_t client = t.nodes[top].client;
  const std::uint32_t client_handle = t.clients[client].handle;
  const std::uint32_t process = t.clients[client].process;
  const std::uint32_t objects = t.clients[client].objects;
  const std::int32_t device = t.nodes[top].device;
  const bool whole_client = top == t.clients[client].root;
  // Sums per location; memory on several GPUs is told per GPU when that changes.
  std::array<FreedMemory, model::kLocations> freed;
  const auto tell_sum = [&](std::size_t location) {
    if (freed[location].objects != 0 && !quiet)
      tell_freed(process, client_handle, static_cast<Location>(location), freed[location], at, out);
    freed[location] = {};
  };
  t.take(top, [&](std::uint32_t place) {
    const Node& node = t.nodes[place];
    if (is_channel_thing(node.category)) {
      ended_channel_thing(place, at, out, quiet);
      return;
    }
    if (node.link == 0) return;
    const std::uint64_t bytes = node.bytes;
    const auto location = static_cast<std::size_t>(node.location);
    const bool charged = (node.flags & state::kCharged) != 0;
    if (freed[location].objects != 0 && freed[location].device != node.device) tell_sum(location);
    const std::uint32_t handle = node.handle;
    const std::int32_t on = node.device;
    const std::uint16_t class_id = node.class_id;
    const Tree::Impl::Released released = t.release(place);
    if (released.freed || (charged && t.process_of(t.nodes[released.inheritor]) != process)) {
      FreedMemory& sum = freed[location];
      sum.bytes += bytes;
      ++sum.objects;
      sum.handle = handle;
      sum.class_id = class_id;
      sum.device = on;
    }
    if (released.inheritor != 0 && !quiet && t.process_of(t.nodes[released.inheritor]) != process)
      tell_inherited(released.inheritor, process, client_handle, handle, at, out);
  });
  for (std::size_t location = 0; location < freed.size(); ++location) tell_sum(location);
  if (whole_client && !quiet)
    tell_of(StoryKind::kClientClosed, process, at, out, model::ClientBody{client_handle, objects, by_file}, device);
}

}  // namespace gpuwatch::decode
