// SPDX-License-Identifier: Apache-2.0
// From call to topic: which calls matter, whose they are, and which GPU they
// are about. The topics are in story_*.cpp.
#include "decode/story.h"

#include <algorithm>
#include <cstring>

#include "decode/story_impl.h"
#include "model/definitions.h"

namespace gpuwatch::decode {

using model::Call;
using model::CallKind;
using model::Field;
using model::StoryEvent;
using model::StoryKind;
using model::Tag;
using state::Process;

namespace {

constexpr std::size_t kMaxOpenGpus = 64;

}  // namespace

StoryBuilder::StoryBuilder(TreeLimits limits) : impl_(std::make_unique<Impl>(limits)) {}
StoryBuilder::~StoryBuilder() = default;
StoryBuilder::StoryBuilder(StoryBuilder&&) noexcept = default;
StoryBuilder& StoryBuilder::operator=(StoryBuilder&&) noexcept = default;

void StoryBuilder::observe(const Call& call, Events& out) {
  switch (call.kind) {
    case CallKind::kOpen:
      impl_->on_open(call, out);
      break;
    case CallKind::kRelease:
      impl_->on_release(call, out);
      break;
    case CallKind::kIoctl:
      impl_->on_ioctl(call, out);
      break;
    case CallKind::kState:
      Impl::on_state(call, out);
      break;
    default:
      break;
  }
}

void StoryBuilder::settle(std::uint64_t now_ns, Events& out) {
  impl_->settle(now_ns, out);
}

void StoryBuilder::finish(Events& out) {
  impl_->settle(~std::uint64_t{0}, out);
}

const Tree& StoryBuilder::tree() const {
  return impl_->tree;
}

std::uint64_t StoryBuilder::forgotten() const {
  return impl_->t.forgotten_processes + impl_->t.untracked;
}

StoryEvent& StoryBuilder::Impl::tell(StoryKind kind, Scene& scene, model::StoryBody body, std::int32_t device) {
  StoryEvent& event = scene.out.emplace_back();
  event.kind = kind;
  event.view = model::story_kind_info(kind).view;
  event.head = scene.call.record.head;
  event.body = std::move(body);
  place(event, scene.process, device);
  // A call on a card's own node is about that card, whichever the process has open.
  if (event.head.node_kind == GPUWATCH_NODE_GPU) event.gpu_minor = static_cast<std::int32_t>(scene.call.minor);
  return event;
}

StoryEvent& StoryBuilder::Impl::tell_of(StoryKind kind, std::uint32_t process, const gpuwatch_rec& at, Events& out,
                                        model::StoryBody body, std::int32_t device) {
  StoryEvent& event = out.emplace_back();
  event.kind = kind;
  event.view = model::story_kind_info(kind).view;
  event.head = t.processes[process].head;
  event.head.time_ns = at.time_ns;
  event.head.cpu = at.cpu;
  event.head.seq = at.seq;
  event.body = std::move(body);
  place(event, process, device);
  return event;
}

// The only GPU the process has, else the RM device the object belongs to; never
// a guess among several.
void StoryBuilder::Impl::place(StoryEvent& event, std::uint32_t process, std::int32_t device) const {
  const Process& who = t.processes[process];
  event.gpu_device = device;
  event.partial = who.partial;
  if (who.open_gpus.size() == 1) event.gpu_minor = static_cast<std::int32_t>(who.open_gpus.front().minor);
}

model::Party StoryBuilder::Impl::party(std::uint32_t client, std::uint32_t object_handle) const {
  if (client == 0) return {};
  return {t.processes[t.clients[client].process].key, t.clients[client].handle, object_handle};
}

void StoryBuilder::Impl::on_open(const Call& call, Events& out) {
  const std::uint32_t process = t.touch(call.record.head);
  Scene scene{call, process, 0, out};
  if (call.ret < 0) {
    tell(StoryKind::kOpenFailed, scene, model::GpuBody{call.node, call.ret});
    return;
  }
  const bool known = t.find_file(call.record.head.file_id) != 0;
  if (t.add_file(call.record.head, call.minor, process) == 0) return;
  Process& owner = t.processes[process];
  if (call.record.head.node_kind != GPUWATCH_NODE_GPU || known || owner.open_gpus.size() >= kMaxOpenGpus) return;
  if (t.open_gpu(owner, call.minor).files++ == 0) tell(StoryKind::kGpuOpened, scene, model::GpuBody{});
}

void StoryBuilder::Impl::on_release(const Call& call, Events& out) {
  const gpuwatch_rec& head = call.record.head;
  const std::uint32_t place = t.find_file(head.file_id);
  if (place == 0) return;
  const state::File file = t.files[place];
  if (file.first_client != 0) {
    // In the order in which they were made.
    std::uint32_t client = file.first_client;
    while (t.clients[client].file_next != 0) client = t.clients[client].file_next;
    while (client != 0) {
      const std::uint32_t next = t.clients[client].file_previous;
      end_tree(t.clients[client].root, head, out, true, false);
      client = next;
    }
  }
  t.remove_file(place);
  if (file.node_kind != GPUWATCH_NODE_GPU) return;
  Process& owner = t.processes[file.process];
  state::OpenGpu& gpu = t.open_gpu(owner, file.minor);
  if (gpu.files == 0 || --gpu.files != 0) return;
  StoryEvent& event = tell_of(StoryKind::kGpuClosed, file.process, head, out, model::GpuBody{}, -1);
  event.gpu_minor = static_cast<std::int32_t>(file.minor);
}

void StoryBuilder::Impl::on_ioctl(const Call& call, Events& out) {
  const gpuwatch_rec& head = call.record.head;
  const std::uint32_t process = t.touch(head);
  Process& who = t.processes[process];
  // A GPU that was open before gpuwatch looked.
  if (head.node_kind == GPUWATCH_NODE_GPU && who.open_gpus.size() < kMaxOpenGpus) t.open_gpu(who, call.minor);
  Scene scene{call, process, t.find_file(head.file_id), out};
  if (!who.forming.empty()) maybe_settle(scene);
  if (call.denied)
    tell_denial(scene);
  else if (call.failed && call.tag == Tag::kAlloc && is_memory(call.category))
    tell_refused_memory(scene);
  look_for_findings(scene);
  if (call.failed) return;
  switch (call.tag) {
    case Tag::kAlloc:
    case Tag::kAllocMemory:
      on_alloc(scene);
      break;
    case Tag::kFree:
      on_free(scene, call.get32(Field::kClient), call.get32(Field::kObject));
      break;
    case Tag::kHeapControl:
      on_heap_control(scene);
      break;
    case Tag::kSchedule:
      on_schedule(scene);
      break;
    case Tag::kMapGpu:
      on_map(scene, model::MapSpace::kGpu);
      break;
    case Tag::kUnmapGpu:
      on_unmap(scene, model::MapSpace::kGpu);
      break;
    case Tag::kMapCpu:
      on_map(scene, model::MapSpace::kCpu);
      break;
    case Tag::kUnmapCpu:
      on_unmap(scene, model::MapSpace::kCpu);
      break;
    case Tag::kPeerOn:
      on_peer(scene, StoryKind::kPeerEnabled);
      break;
    case Tag::kPeerOff:
      on_peer(scene, StoryKind::kPeerDisabled);
      break;
    case Tag::kExport:
      on_export(scene, model::Mechanism::kFile);
      break;
    case Tag::kExportDmabuf:
      on_export(scene, model::Mechanism::kDmabuf);
      break;
    case Tag::kImport:
      on_import(scene, model::Mechanism::kFile);
      break;
    case Tag::kShare:
      on_grant(scene);
      break;
    case Tag::kDup:
      on_dup(scene);
      break;
    case Tag::kSync:
      tell(
          StoryKind::kSyncCreated, scene,
          model::SyncBody{call.get32(Field::kClient), call.get32(Field::kParent), call.get(Field::kLength), call.name});
      break;
    case Tag::kFault:
      on_fault(scene);
      break;
    default:
      break;
  }
}

void StoryBuilder::Impl::on_state(const Call& call, Events& out) {
  const auto state = model::parse_state(call.record);
  // One line per hooked function is for the raw view; a failure is for all.
  if (!state || state->event == GPUWATCH_STATE_HOOKED || state->event == GPUWATCH_STATE_PLAN) return;
  model::StateBody body;
  body.event = state->event;
  body.value = state->value;
  body.error = state->error;
  std::memcpy(body.name.data(), state->name.data(), std::min(state->name.size(), body.name.size()));
  StoryEvent& event = out.emplace_back();
  event.head = call.record.head;
  event.body = body;
}

}  // namespace gpuwatch::decode
