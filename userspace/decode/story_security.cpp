// SPDX-License-Identifier: Apache-2.0
// Refusals, faults, and calls that touch what belongs to others or to the
// machine. Which calls, and whose habit they are, is tables/security.in.
//
// A finding is a line once per process and kind of call; repeats, and those a
// denial tells already, are details.
#include "decode/story_impl.h"

namespace gpuwatch::decode {

using model::Call;
using model::Field;
using model::FindingBody;
using model::StoryEvent;
using model::StoryKind;
using model::StoryView;

namespace {

constexpr std::uint64_t kSameFaultNs = 1'000'000'000;

const SecurityEntry* entry_for(const Call& call) {
  switch (call.space) {
    case model::Space::kFrontend: {
      if (call.has(Field::kControl)) return find_security(SecuritySpace::kControl, call.get32(Field::kControl));
      if (call.has(Field::kClass))
        if (const SecurityEntry* entry = find_security(SecuritySpace::kClass, call.get32(Field::kClass))) return entry;
      return find_security(SecuritySpace::kEscape, call.number);
    }
    case model::Space::kUvm:
      return find_security(SecuritySpace::kUvm, call.number);
    default:
      return nullptr;
  }
}

}  // namespace

void StoryBuilder::Impl::tell_denial(Scene& scene) {
  const Call& call = scene.call;
  model::DenialBody body;
  body.client = call.get32(Field::kClient);
  body.object = call.get32(Field::kObject);
  body.name = call.name;
  body.detail = call.detail.empty() ? call.interface : call.detail;
  body.number = call.has(Field::kControl) ? call.get32(Field::kControl)
                : call.has(Field::kClass) ? call.get32(Field::kClass)
                                          : call.number;
  body.status = call.get32(Field::kStatus);
  body.status_name = call.status_name;
  body.ret = call.ret;
  tell(StoryKind::kCallDenied, scene, body);
  scene.denied_told = true;
}

void StoryBuilder::Impl::look_for_findings(Scene& scene) {
  const Call& call = scene.call;
  const SecurityEntry* entry = entry_for(call);
  if (entry == nullptr) return;
  const Habit habit = entry->habit_of();
  // A habit that is refused to one who may do all the rest is no finding either.
  if (habit != Habit::kNone && habit != Habit::kOwn) return;
  // A debugger object is about the client it was made for.
  std::uint32_t target = call.get32(Field::kSourceClient);
  if (habit == Habit::kOwn && call.has(Field::kControl)) {
    const std::uint32_t client = t.own_client(call.get32(Field::kClient), scene.process, scene.file);
    const std::uint32_t place = client != 0 ? t.find(client, call.get32(Field::kObject)) : 0;
    // Made before gpuwatch looked, or freed: whose client it is about is not known.
    if (place == 0 || t.nodes[place].category != model::Category::kDebugger) return;
    target = t.nodes[place].extra;
  }
  const std::uint32_t own = target != 0 ? t.own_client(target, scene.process, scene.file) : 0;
  if (habit == Habit::kOwn && (target == 0 || own != 0)) return;
  if (call.failed && !call.denied) return;  // it did not happen, nor was it refused
  FindingBody body;
  body.reason = security_reason(*entry);
  body.name = call.detail.empty() || entry->space == static_cast<std::uint8_t>(SecuritySpace::kEscape) ? call.name
                                                                                                       : call.detail;
  body.number = entry->number;
  body.privilege = security_privilege(*entry);
  body.mutates = entry->mutates != 0;
  body.failed = call.failed;
  body.status = call.get32(Field::kStatus);
  body.status_name = call.status_name;
  body.client = call.get32(Field::kClient);
  body.object = call.get32(Field::kObject);
  if (target != 0 && own == 0) {
    const std::uint32_t client = t.source_client(target, scene.process);
    body.target = client != 0 ? party(client, call.get32(Field::kSourceObject))
                              : model::Party{{}, target, call.get32(Field::kSourceObject)};
  }
  StoryEvent& event = tell(StoryKind::kSecurityFinding, scene, body);
  auto& told = t.processes[scene.process].told_findings;
  if (told.empty()) told.resize((security_count() + 63) / 64);
  const std::size_t place = security_place(*entry);
  const std::uint64_t bit = std::uint64_t{1} << (place % 64);
  if ((told[place / 64] & bit) != 0 || scene.denied_told) event.view = StoryView::kDetail;
  told[place / 64] |= bit;
}

// CUDA reads the error state of all SMs after a fault, twice and at no other
// time.
void StoryBuilder::Impl::on_fault(Scene& scene) {
  const Call& call = scene.call;
  state::Process& who = t.processes[scene.process];
  const std::uint64_t now = call.record.head.time_ns;
  const bool same = who.last_fault_ns != 0 && now - who.last_fault_ns < kSameFaultNs;
  who.last_fault_ns = now;
  if (same) return;
  std::int32_t device = -1;
  if (const std::uint32_t client = t.own_client(call.get32(Field::kClient), scene.process, scene.file))
    if (const std::uint32_t place = t.find(client, call.get32(Field::kObject))) device = t.nodes[place].device;
  tell(StoryKind::kGpuFault, scene,
       model::FaultBody{call.get32(Field::kClient), call.get32(Field::kObject), call.detail}, device);
}

}  // namespace gpuwatch::decode
