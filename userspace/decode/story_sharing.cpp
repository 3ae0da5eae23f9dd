// SPDX-License-Identifier: Apache-2.0
// Memory and objects that cross from one client to another: by permission and
// duplicate (CUDA IPC), by file descriptor, dmabuf or fabric handle, and access
// between GPUs. Both ends are named where both were seen.
#include <algorithm>

#include "decode/story_impl.h"

namespace gpuwatch::decode {

using model::Call;
using model::Field;
using model::Mechanism;
using model::Party;
using model::ShareBody;
using model::StoryEvent;
using model::StoryKind;
using model::StoryView;
using state::Node;

namespace {

constexpr std::size_t kMaxExports = 1024;

}  // namespace

// The new object refers to the same thing: the memory lives till the last of
// them goes.
void StoryBuilder::Impl::on_dup(Scene& scene) {
  const Call& call = scene.call;
  const std::uint32_t handle = call.get32(Field::kObject);
  const std::uint32_t client = client_for(scene, call.get32(Field::kClient));
  const std::uint32_t from_handle = call.get32(Field::kSourceClient);
  // A duplicate within one's own clients, or from somebody else's.
  std::uint32_t from = t.own_client(from_handle, scene.process, scene.file);
  std::uint32_t source = from != 0 ? t.find(from, call.get32(Field::kSourceObject)) : 0;
  if (source == 0) {
    from = t.source_client(from_handle, scene.process);
    source = from != 0 ? t.find(from, call.get32(Field::kSourceObject)) : 0;
  }
  ShareBody body;
  body.mechanism = Mechanism::kDuplicate;
  body.name = source != 0 ? t.class_names[t.nodes[source].class_id].name : call.name;
  body.from = from != 0 ? party(from, call.get32(Field::kSourceObject))
                        : Party{{}, from_handle, call.get32(Field::kSourceObject)};
  std::int32_t device = -1;
  if (client != 0 && handle != t.clients[client].handle) {
    // Ending what had the handle may end the source too.
    const std::uint64_t source_key = source != 0 ? t.nodes[source].made_ns : 0;
    end_known(scene, client, handle);
    if (source != 0) source = t.find(from, call.get32(Field::kSourceObject));
    if (source != 0 && t.nodes[source].made_ns != source_key) source = 0;
    const std::uint32_t place = t.add_object(client, call.get32(Field::kParent), handle, call.record.head.time_ns);
    // Making room may have forgotten whose it was.
    if (source != 0 && (t.clients[from].handle != from_handle || t.find(from, call.get32(Field::kSourceObject)) == 0))
      source = 0;
    if (place != 0 && source != 0 && !is_channel_thing(t.nodes[source].category)) {
      Node& node = t.nodes[place];
      const Node& origin = t.nodes[source];
      node.category = origin.category == model::Category::kClient ? model::Category::kOther : origin.category;
      node.class_id = origin.class_id;
      node.engine = origin.engine;
      if (origin.device >= 0 && node.device < 0) node.device = origin.device;
      if (origin.link != 0) {
        t.share(place, source);
        body.bytes = origin.bytes;
      }
    }
    if (place != 0) device = t.nodes[place].device;
  }
  body.to = Party{t.processes[scene.process].key, call.get32(Field::kClient), handle};
  const bool stranger = from == 0 || t.clients[from].process != scene.process;
  StoryEvent& event = tell(StoryKind::kShareDuplicated, scene, body, device);
  event.view = stranger ? StoryView::kLine : StoryView::kDetail;
}

// Others may take the object over from now on.
void StoryBuilder::Impl::on_grant(Scene& scene) {
  const Call& call = scene.call;
  const std::uint32_t object =
      call.has(Field::kSourceObject) ? call.get32(Field::kSourceObject) : call.get32(Field::kObject);
  const std::uint32_t client = t.own_client(call.get32(Field::kClient), scene.process, scene.file);
  const std::uint32_t place = client != 0 ? t.find(client, object) : 0;
  ShareBody body;
  body.mechanism = Mechanism::kPolicy;
  body.name = place != 0 ? t.class_names[t.nodes[place].class_id].name : call.name;
  body.from = {t.processes[scene.process].key, call.get32(Field::kClient), object};
  if (place != 0) body.bytes = t.nodes[place].bytes;
  tell(StoryKind::kShareGranted, scene, body, place != 0 ? t.nodes[place].device : -1);
}

void StoryBuilder::Impl::on_export(Scene& scene, Mechanism mechanism) {
  const Call& call = scene.call;
  const std::uint32_t object =
      call.has(Field::kSourceObject) ? call.get32(Field::kSourceObject) : call.get32(Field::kObject);
  const std::uint32_t client = t.own_client(call.get32(Field::kClient), scene.process, scene.file);
  const std::uint32_t place = client != 0 ? t.find(client, object) : 0;
  ShareBody body;
  body.mechanism = mechanism;
  body.name = call.detail.empty() ? call.name : call.detail;
  body.from = {t.processes[scene.process].key, call.get32(Field::kClient), object};
  if (place != 0) body.bytes = t.nodes[place].bytes;
  if (mechanism == Mechanism::kDmabuf && call.has(Field::kBytes)) body.bytes = call.get(Field::kBytes);
  tell(StoryKind::kShareExported, scene, body, place != 0 ? t.nodes[place].device : -1);
  if (mechanism != Mechanism::kFile || place == 0 || !call.has(Field::kFd)) return;
  if (exports.size() >= kMaxExports) exports.erase(exports.begin(), exports.begin() + kMaxExports / 2);
  exports.push_back({body.from, static_cast<std::int32_t>(call.get32(Field::kFd)), body.bytes, client, place});
}

// A descriptor's number is the caller's own: it names an export only within the
// process that made it. From another process it is that export when only one
// can be meant; else the other end stays unknown.
void StoryBuilder::Impl::on_import(Scene& scene, Mechanism mechanism) {
  const Call& call = scene.call;
  const model::ProcessKey self = t.processes[scene.process].key;
  const bool control = call.has(Field::kSourceObject);  // carries the new object's handle
  const std::uint32_t handle = control ? call.get32(Field::kSourceObject) : call.get32(Field::kObject);
  const auto alive = [&](const Export& each) {
    return t.clients[each.client].handle == each.from.client && t.find(each.client, each.from.object) == each.node &&
           t.nodes[each.node].bytes == each.bytes;
  };
  std::erase_if(exports, [&](const Export& each) { return !alive(each); });
  const Export* origin = nullptr;
  if (mechanism == Mechanism::kFile) {
    const auto fd = static_cast<std::int32_t>(call.get32(Field::kFd));
    for (const Export& each : exports)
      if (each.from.process == self && each.fd == fd) origin = &each;
    if (origin == nullptr && exports.size() == 1 && !(exports.front().from.process == self)) origin = &exports.front();
  }
  ShareBody body;
  body.mechanism = mechanism;
  body.name = call.detail.empty() ? call.name : call.detail;
  body.to = {self, call.get32(Field::kClient), handle};
  std::int32_t device = -1;
  if (origin != nullptr) {
    body.from = origin->from;
    body.bytes = origin->bytes;
  }
  if (control && handle != 0) {
    const Export source = origin != nullptr ? *origin : Export{};
    const std::uint32_t client = client_for(scene, call.get32(Field::kClient));
    if (client != 0 && handle != t.clients[client].handle) {
      end_known(scene, client, handle);
      const std::uint32_t place = t.add_object(client, call.get32(Field::kParent), handle, call.record.head.time_ns);
      if (place != 0 && source.node != 0 && alive(source)) {
        t.nodes[place].category = t.nodes[source.node].category;
        t.nodes[place].class_id = t.nodes[source.node].class_id;
        if (t.nodes[source.node].link != 0 && !is_channel_thing(t.nodes[source.node].category))
          t.share(place, source.node);
      }
      if (place != 0) device = t.nodes[place].device;
    }
  }
  tell(StoryKind::kShareImported, scene, body, device);
}

void StoryBuilder::Impl::on_peer(Scene& scene, StoryKind kind) {
  ShareBody body;
  body.mechanism = Mechanism::kPeer;
  body.name = scene.call.name;
  body.from.process = body.to.process = t.processes[scene.process].key;
  tell(kind, scene, body);
}

}  // namespace gpuwatch::decode
