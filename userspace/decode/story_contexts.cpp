// SPDX-License-Identifier: Apache-2.0
// Channels, channel groups, and the contexts they make up.
//
// The driver knows no contexts: what CUDA calls one is a set of channel groups
// it makes in one go (on an H200: one of 8 compute channels, three of 4 copy
// channels, each on its own copy engine). So a context is what runs of one
// client, on one device, in one address space, with at most one group that can
// compute or draw: a second such group begins the next context. It is told
// when it stands: when memory of some size is allocated while no group is being
// built, or nothing was added for kQuietNs.
#include <algorithm>

#include "decode/story_impl.h"

namespace gpuwatch::decode {

using model::Call;
using model::Category;
using model::ChannelBody;
using model::Field;
using model::StoryKind;
using state::Context;
using state::Node;

namespace {

constexpr std::uint64_t kQuietNs = 100'000'000;
constexpr std::uint64_t kNextThingBytes = 64 << 10;
constexpr std::size_t kMaxContexts = 4096;  // of a process
// A group joins one of its process's latest contexts.
constexpr std::size_t kLookBack = 64;

std::uint8_t ability_of(Category category) {
  switch (category) {
    case Category::kCompute:
      return state::kCompute;
    case Category::kGraphics:
      return state::kGraphics;
    case Category::kVideo:
      return state::kVideo;
    case Category::kCopy:
      return state::kCopy;
    default:
      return 0;
  }
}

// Where a channel with these abilities is counted.
std::uint32_t* counter_of(Context& context, std::uint8_t abilities) {
  if ((abilities & state::kCompute) != 0) return &context.compute;
  if ((abilities & state::kGraphics) != 0) return &context.graphics;
  if ((abilities & state::kVideo) != 0) return &context.video;
  if ((abilities & state::kCopy) != 0) return &context.copy;
  return nullptr;
}

constexpr std::uint8_t kMain = state::kCompute | state::kGraphics;

}  // namespace

void StoryBuilder::Impl::made_group(Scene& scene, std::uint32_t place) {
  t.nodes[place].extra = scene.call.get32(Field::kVaspace);
  ++t.processes[t.process_of(t.nodes[place])].building;
}

void StoryBuilder::Impl::made_channel(Scene& scene, std::uint32_t place) {
  Node& node = t.nodes[place];
  node.extra = scene.call.get32(Field::kEntries);
  const Node& above = t.nodes[node.parent];
  const bool grouped = above.category == Category::kChannelGroup;
  if (grouped && node.engine == 0) node.engine = above.engine;
  if (!grouped) ++t.processes[t.process_of(node)].building;
  ChannelBody body;
  body.client = t.clients[node.client].handle;
  body.object = node.handle;
  body.group = grouped ? above.handle : 0;
  body.entries = node.extra;
  body.engine = node.engine;
  body.engine_name = engine_name(node.engine);
  body.class_name = scene.call.detail;
  tell(StoryKind::kChannelCreated, scene, body, node.device);
  // One more in a group that runs already.
  if (!grouped || above.link == 0) return;
  Context& context = t.contexts[above.link];
  count_channel(context, node);
  context.changed = context.told;
  auto& forming = t.processes[context.process].forming;
  if (context.told && std::find(forming.begin(), forming.end(), above.link) == forming.end())
    forming.push_back(above.link);
  context.last_ns = scene.call.record.head.time_ns;
}

void StoryBuilder::Impl::made_engine(std::uint32_t place) {
  const Node& engine = t.nodes[place];
  Node& channel = t.nodes[engine.parent];
  if (channel.category != Category::kChannel) return;
  const std::uint8_t before = channel.flags;
  channel.flags |= ability_of(engine.category);
  const std::uint32_t context = channel.link != 0 ? channel.link : t.nodes[channel.parent].link;
  const bool grouped = t.nodes[channel.parent].category == Category::kChannelGroup;
  if (context != 0 && (grouped || channel.link != 0)) recount(t.contexts[context], before, channel.flags);
}

void StoryBuilder::Impl::recount(Context& context, std::uint8_t before, std::uint8_t after) const {
  std::uint32_t* const old = counter_of(context, before);
  std::uint32_t* const now = counter_of(context, after);
  if (old == now) return;
  if (old != nullptr && *old != 0) --*old;
  if (now != nullptr) ++*now;
}

void StoryBuilder::Impl::count_channel(Context& context, const Node& channel) const {
  ++context.channels;
  context.entries += channel.extra;
  if (std::uint32_t* const counter = counter_of(context, channel.flags)) ++*counter;
}

void StoryBuilder::Impl::on_schedule(Scene& scene) {
  const Call& call = scene.call;
  const std::uint32_t client = t.own_client(call.get32(Field::kClient), scene.process, scene.file);
  std::uint32_t place = client != 0 ? t.find(client, call.get32(Field::kObject)) : 0;
  if (place == 0) return;
  if (t.nodes[place].category == Category::kChannel &&
      t.nodes[t.nodes[place].parent].category == Category::kChannelGroup)
    place = t.nodes[place].parent;
  if (is_channel_thing(t.nodes[place].category) && (t.nodes[place].flags & state::kRunning) == 0)
    run_group(place, call.record.head.time_ns);
}

// Of a group or lone channel: its first run makes it part of a context.
void StoryBuilder::Impl::run_group(std::uint32_t place, std::uint64_t now_ns) {
  Node& group = t.nodes[place];
  group.flags |= state::kRunning;
  const std::uint32_t process = t.process_of(group);
  state::Process& owner = t.processes[process];
  if (owner.building != 0) --owner.building;
  std::uint8_t abilities = group.flags;
  for (std::uint32_t at = group.first; at != 0; at = t.nodes[at].next)
    if (t.nodes[at].category == Category::kChannel) abilities |= t.nodes[at].flags;
  const std::uint32_t vaspace = group.category == Category::kChannelGroup ? group.extra : 0;
  std::uint32_t device = group.parent;
  while (device != 0 && t.nodes[device].category != Category::kDevice) device = t.nodes[device].parent;
  const std::uint32_t device_handle = t.nodes[device].handle;
  const auto fits = [&](const Context& context) {
    const bool main = (abilities & kMain) != 0 && context.compute + context.graphics != 0;
    const bool same_space = context.vaspace == vaspace || context.vaspace == 0 || vaspace == 0;
    return context.client == group.client && context.device == device_handle && same_space && !main;
  };
  std::uint32_t found = 0;
  const std::size_t known = owner.running.size();
  for (std::size_t back = 1; back <= std::min(known, kLookBack) && found == 0; ++back)
    if (fits(t.contexts[owner.running[known - back]])) found = owner.running[known - back];
  if (found == 0 && known >= kMaxContexts) {
    ++t.untracked;
    return;
  }
  if (found == 0) {
    found = t.contexts.take();
    Context& fresh = t.contexts[found];
    fresh.id = ++t.context_count;
    fresh.started_ns = now_ns;
    fresh.client = group.client;
    fresh.process = process;
    fresh.device = device_handle;
    fresh.vaspace = vaspace;
    fresh.first_group = group.handle;
    fresh.device_instance = group.device;
    owner.running.push_back(found);
    ++owner.contexts;
  }
  Context& context = t.contexts[found];
  group.link = found;
  if (context.vaspace == 0) context.vaspace = vaspace;
  context.last_ns = now_ns;
  ++context.groups;
  ++context.live_groups;
  if (group.category == Category::kChannel) count_channel(context, group);
  for (std::uint32_t at = group.first; at != 0; at = t.nodes[at].next)
    if (t.nodes[at].category == Category::kChannel) count_channel(context, t.nodes[at]);
  context.changed = context.told;
  if (std::find(owner.forming.begin(), owner.forming.end(), found) == owner.forming.end())
    owner.forming.push_back(found);
}

model::ContextBody StoryBuilder::Impl::context_body(const Context& context) const {
  model::ContextBody body;
  body.id = context.id;
  body.client = t.clients[context.client].handle;
  body.device = context.device;
  body.vaspace = context.vaspace;
  body.group = context.first_group;
  body.groups = context.groups;
  body.channels = context.channels;
  body.compute = context.compute;
  body.graphics = context.graphics;
  body.video = context.video;
  body.copy = context.copy;
  body.entries = context.entries;
  body.started_ns = context.started_ns;
  return body;
}

void StoryBuilder::Impl::settle_contexts(std::uint32_t process, const gpuwatch_rec& at, Events& out) {
  auto& forming = t.processes[process].forming;
  for (const std::uint32_t place : forming) {
    Context& context = t.contexts[place];
    if (context.told && !context.changed) continue;
    const StoryKind kind = context.told ? StoryKind::kContextChanged : StoryKind::kContextCreated;
    context.told = true;
    context.changed = false;
    tell_of(kind, process, at, out, context_body(context), context.device_instance);
  }
  forming.clear();
}

void StoryBuilder::Impl::maybe_settle(Scene& scene) {
  const state::Process& who = t.processes[scene.process];
  const Call& call = scene.call;
  const std::uint64_t now = call.record.head.time_ns;
  std::uint64_t last = 0;
  for (const std::uint32_t place : who.forming) last = std::max(last, t.contexts[place].last_ns);
  const bool next_thing = call.tag == model::Tag::kAlloc && !call.failed && is_memory(call.category) &&
                          call.get(Field::kBytes) >= kNextThingBytes;
  if (who.building == 0 && (next_thing || (now > last && now - last >= kQuietNs)))
    settle_contexts(scene.process, call.record.head, scene.out);
}

void StoryBuilder::Impl::settle(std::uint64_t now_ns, Events& out) {
  for (std::uint32_t at = t.oldest; at != 0; at = t.processes[at].newer) {
    const state::Process& who = t.processes[at];
    if (who.forming.empty()) continue;
    std::uint64_t last = 0;
    for (const std::uint32_t place : who.forming) last = std::max(last, t.contexts[place].last_ns);
    if (now_ns > last && now_ns - last >= kQuietNs) settle_contexts(at, gpuwatch_rec(who.head), out);
  }
}

void StoryBuilder::Impl::ended_channel_thing(std::uint32_t place, const gpuwatch_rec& at, Events& out, bool quiet) {
  const Node& node = t.nodes[place];
  const std::uint32_t process = t.process_of(node);
  state::Process& owner = t.processes[process];
  const bool grouped = t.nodes[node.parent].category == Category::kChannelGroup;
  if (node.category == Category::kChannel && !quiet) {
    ChannelBody body;
    body.client = t.clients[node.client].handle;
    body.object = node.handle;
    body.group = grouped ? t.nodes[node.parent].handle : 0;
    body.entries = node.extra;
    body.engine = node.engine;
    body.engine_name = engine_name(node.engine);
    body.class_name = t.class_names[node.class_id].name;
    tell_of(StoryKind::kChannelDestroyed, process, at, out, body, node.device);
  }
  if (node.category == Category::kChannel && grouped) return;
  if ((node.flags & state::kRunning) == 0) {
    if (owner.building != 0) --owner.building;
    return;
  }
  if (node.link == 0) return;
  Context& context = t.contexts[node.link];
  if (!context.told && !quiet) settle_contexts(process, at, out);
  if (--context.live_groups != 0) return;
  if (!quiet) tell_of(StoryKind::kContextDestroyed, process, at, out, context_body(context), context.device_instance);
  std::erase(owner.forming, node.link);
  std::erase(owner.running, node.link);
  --owner.contexts;
  t.contexts.give(node.link);
}

}  // namespace gpuwatch::decode
