// SPDX-License-Identifier: Apache-2.0
// Reading the tree: walks, totals, statistics. Changes nothing.
#include "decode/security.h"
#include "decode/tree_impl.h"

namespace gpuwatch::decode {

namespace {

using state::Node;

constexpr bool is_channel_thing(model::Category category) {
  return category == model::Category::kChannel || category == model::Category::kChannelGroup;
}

model::TreeObject view_of(const Tree::Impl& tree, std::uint32_t place) {
  const Node& node = tree.nodes[place];
  model::TreeObject view;
  view.client = tree.clients[node.client].handle;
  view.handle = node.handle;
  view.parent = tree.nodes[node.parent].handle;
  view.category = node.category;
  view.class_number = tree.class_names[node.class_id].number;
  view.class_name = tree.class_names[node.class_id].name;
  view.made_ns = node.made_ns;
  view.device = node.device;
  view.bytes = node.bytes;
  view.location = node.location;
  view.counted = (node.flags & state::kCharged) != 0;
  view.engine = node.engine;
  view.engine_name = engine_name(node.engine);
  view.running = (node.flags & state::kRunning) != 0;
  view.partial = (node.flags & state::kPartial) != 0;
  if (is_channel_thing(node.category)) {
    if (node.category == model::Category::kChannel) view.entries = node.extra;
    if (node.link != 0) view.context = tree.contexts[node.link].id;
  } else {
    view.references = tree.references(place);
  }
  return view;
}

model::Usage usage_of(const state::Usage& usage) {
  return {usage.live, usage.peak};
}

model::TreeProcess view_of(const state::Process& process) {
  model::TreeProcess view;
  view.head = process.head;
  for (std::size_t i = 0; i < view.memory.size(); ++i) view.memory[i] = usage_of(process.totals[i]);
  view.objects = process.objects;
  view.contexts = process.contexts;
  view.partial = process.partial;
  for (const state::GpuUsage& gpu : process.gpus) view.gpus.push_back({gpu.device, usage_of(gpu.memory)});
  return view;
}

void walk_client(const Tree::Impl& tree, const state::Client& client, TreeVisitor& visitor) {
  if (!visitor.client({client.handle, client.made_ns, client.objects, client.partial})) return;
  std::uint32_t at = tree.nodes[client.root].first;
  unsigned depth = 0;
  while (at != 0) {
    const Node& node = tree.nodes[at];
    if (visitor.object(view_of(tree, at), depth) && node.first != 0) {
      at = node.first;
      ++depth;
      continue;
    }
    while (at != client.root && tree.nodes[at].next == 0) {
      at = tree.nodes[at].parent;
      --depth;
    }
    at = at == client.root ? 0 : tree.nodes[at].next;
  }
}

}  // namespace

void Tree::walk(TreeVisitor& visitor) const {
  for (std::uint32_t at = impl_->oldest; at != 0; at = impl_->processes[at].newer)
    walk(impl_->processes[at].key, visitor);
}

bool Tree::walk(const model::ProcessKey& key, TreeVisitor& visitor) const {
  const std::uint32_t place = impl_->find_process(key);
  if (place == 0) return false;
  const state::Process& process = impl_->processes[place];
  if (!visitor.process(view_of(process))) return true;
  std::uint32_t client = process.first_client;  // the newest: go to the first made
  while (client != 0 && impl_->clients[client].process_next != 0) client = impl_->clients[client].process_next;
  for (; client != 0; client = impl_->clients[client].process_previous)
    walk_client(*impl_, impl_->clients[client], visitor);
  return true;
}

std::optional<model::TreeProcess> Tree::find(const model::ProcessKey& key) const {
  const std::uint32_t place = impl_->find_process(key);
  if (place == 0) return std::nullopt;
  return view_of(impl_->processes[place]);
}

model::Usage Tree::gpu(std::int32_t device) const {
  for (const state::GpuUsage& usage : impl_->gpus)
    if (usage.device == device) return usage_of(usage.memory);
  return {};
}

std::vector<model::GpuUsage> Tree::gpus() const {
  std::vector<model::GpuUsage> list;
  for (const state::GpuUsage& usage : impl_->gpus) list.push_back({usage.device, usage_of(usage.memory)});
  return list;
}

std::array<model::Usage, model::kLocations> Tree::memory() const {
  std::array<model::Usage, model::kLocations> sums;
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = usage_of(impl_->memory[i]);
  return sums;
}

std::size_t Tree::objects() const {
  return impl_->nodes.live();
}

TreeStats Tree::stats() const {
  TreeStats stats;
  stats.processes = impl_->processes.live();
  stats.clients = impl_->clients.live();
  stats.objects = impl_->nodes.live();
  stats.files = impl_->files.live();
  stats.bytes = impl_->bytes();
  stats.forgotten_processes = impl_->forgotten_processes;
  stats.untracked = impl_->untracked;
  stats.ignored = impl_->ignored;
  return stats;
}

std::size_t Tree::Impl::bytes() const {
  std::size_t sum = nodes.bytes() + clients.bytes() + files.bytes() + processes.bytes() + contexts.bytes();
  sum += object_index.bytes() + client_index.bytes() + file_index.bytes() + process_index.bytes() + class_index.bytes();
  for (std::uint32_t at = oldest; at != 0; at = processes[at].newer) {
    const state::Process& process = processes[at];
    sum += process.gpus.capacity() * sizeof(state::GpuUsage) + process.open_gpus.capacity() * sizeof(state::OpenGpu);
    sum += process.mappings.size() * (sizeof(state::Mapping) + 4 * sizeof(void*)) +
           process.mappings.bucket_count() * sizeof(void*);
  }
  return sum;
}

}  // namespace gpuwatch::decode
