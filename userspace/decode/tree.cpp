// SPDX-License-Identifier: Apache-2.0
// Objects and clients of the tree: handles, parents, references and totals.
// Processes, files and limits are in tree_process.cpp, reading is in
// tree_walk.cpp.
#include "decode/tree.h"

#include <algorithm>

#include "decode/tree_impl.h"

namespace gpuwatch::decode {

using state::Client;
using state::Node;
using state::Process;

namespace {

constexpr std::size_t kMaxClasses = 4096;
constexpr std::size_t kMaxGpus = 64;
// Counting stops here: a storm of duplicates must not make reading slow.
constexpr std::uint32_t kMostReferences = 256;

}  // namespace

Tree::Tree(TreeLimits limits) : impl_(std::make_unique<Impl>(limits)) {}
Tree::~Tree() = default;
Tree::Tree(Tree&&) noexcept = default;
Tree& Tree::operator=(Tree&&) noexcept = default;

std::uint32_t Tree::Impl::own_client(std::uint32_t handle, std::uint32_t process, std::uint32_t file) const {
  for (std::uint32_t at = client_index.find(handle); at != 0; at = clients[at].same_handle)
    if (clients[at].process == process || (file != 0 && clients[at].file == file)) return at;
  return 0;
}

std::uint32_t Tree::Impl::source_client(std::uint32_t handle, std::uint32_t process) const {
  std::uint32_t own = 0;
  for (std::uint32_t at = client_index.find(handle); at != 0; at = clients[at].same_handle) {
    if (clients[at].process != process) return at;
    own = at;
  }
  return own;
}

std::uint32_t Tree::Impl::add_client(std::uint32_t handle, std::uint32_t process, std::uint32_t file,
                                     std::uint64_t now_ns) {
  if (handle == 0 || !make_room(process)) return 0;
  if (file != 0 && files[file].process == 0) file = 0;  // gone with whom we made room
  const std::uint32_t place = clients.take();
  Client& client = clients[place];
  client.handle = handle;
  client.process = process;
  client.file = file;
  client.made_ns = now_ns;
  client.same_handle = client_index.find(handle);
  client_index.set(handle, place);
  Process& owner = processes[process];
  client.process_next = owner.first_client;
  if (owner.first_client != 0) clients[owner.first_client].process_previous = place;
  owner.first_client = place;
  ++owner.objects;
  if (file != 0) {
    client.file_next = files[file].first_client;
    if (client.file_next != 0) clients[client.file_next].file_previous = place;
    files[file].first_client = place;
  }
  client.root = nodes.take();
  Node& root = nodes[client.root];
  root.handle = handle;
  root.client = place;
  root.made_ns = now_ns;
  root.category = model::Category::kClient;
  object_index.set(std::uint64_t{place} << 32 | handle, client.root);
  return place;
}

void Tree::Impl::remove_client(std::uint32_t place) {
  const Client client = clients[place];
  std::uint32_t at = client_index.find(client.handle);
  if (at == place) {
    if (client.same_handle != 0)
      client_index.set(client.handle, client.same_handle);
    else
      client_index.erase(client.handle);
  } else {
    while (clients[at].same_handle != place) at = clients[at].same_handle;
    clients[at].same_handle = client.same_handle;
  }
  Process& owner = processes[client.process];
  (client.process_previous != 0 ? clients[client.process_previous].process_next : owner.first_client) =
      client.process_next;
  if (client.process_next != 0) clients[client.process_next].process_previous = client.process_previous;
  if (client.file != 0) {
    (client.file_previous != 0 ? clients[client.file_previous].file_next : files[client.file].first_client) =
        client.file_next;
    if (client.file_next != 0) clients[client.file_next].file_previous = client.file_previous;
  }
  clients.give(place);
}

void Tree::Impl::link_child(std::uint32_t parent, std::uint32_t place) {
  Node& above = nodes[parent];
  Node& node = nodes[place];
  node.parent = parent;
  if (above.first == 0) {
    above.first = place;
    node.previous = place;
    return;
  }
  Node& first = nodes[above.first];
  node.previous = first.previous;
  nodes[first.previous].next = place;
  first.previous = place;
}

std::uint32_t Tree::Impl::add_object(std::uint32_t client, std::uint32_t parent_handle, std::uint32_t handle,
                                     std::uint64_t now_ns) {
  if (handle == 0 || !make_room(clients[client].process)) return 0;
  std::uint32_t parent = find(client, parent_handle);
  const bool lost = parent == 0;
  if (lost) {
    parent = clients[client].root;
    clients[client].partial = true;
    processes[clients[client].process].partial = true;
  }
  const std::uint32_t place = nodes.take();
  Node& node = nodes[place];
  node.handle = handle;
  node.client = client;
  node.made_ns = now_ns;
  node.link = 0;
  if (lost) node.flags |= state::kPartial;
  node.device = nodes[parent].device;
  link_child(parent, place);
  object_index.set(std::uint64_t{client} << 32 | handle, place);
  ++clients[client].objects;
  ++processes[clients[client].process].objects;
  return place;
}

void Tree::Impl::remove_leaf(std::uint32_t place) {
  const Node node = nodes[place];
  object_index.erase(std::uint64_t{node.client} << 32 | node.handle);
  --processes[clients[node.client].process].objects;
  if (node.parent != 0) {
    Node& above = nodes[node.parent];
    if (above.first == place) {
      above.first = node.next;
      if (node.next != 0) nodes[node.next].previous = node.previous;
    } else {
      nodes[node.previous].next = node.next;
      nodes[node.next != 0 ? node.next : above.first].previous = node.previous;
    }
    --clients[node.client].objects;
  }
  nodes.give(place);
  if (node.parent == 0) remove_client(node.client);
}

state::GpuUsage& Tree::Impl::gpu_usage(std::vector<state::GpuUsage>& list, std::int32_t device) {
  for (state::GpuUsage& usage : list)
    if (usage.device == device) return usage;
  // Device numbers are a program's word: over the limit they share one row.
  if (list.size() >= kMaxGpus) return list.back();
  return list.emplace_back(state::GpuUsage{device, {}});
}

void Tree::Impl::account(std::uint32_t place, bool add) {
  Node& node = nodes[place];
  Process& process = processes[process_of(node)];
  const auto change = [&](state::Usage& usage) { add ? usage.add(node.bytes) : usage.remove(node.bytes); };
  change(process.totals[static_cast<std::size_t>(node.location)]);
  if (node.location != model::Location::kGpu) return;
  change(gpu_usage(process.gpus, node.device).memory);
}

void Tree::Impl::charge(std::uint32_t place) {
  Node& node = nodes[place];
  if (node.link == 0) node.link = node.extra = place;
  node.flags |= state::kCharged;
  account(place, true);
  memory[static_cast<std::size_t>(node.location)].add(node.bytes);
  if (node.location == model::Location::kGpu) gpu_usage(gpus, node.device).memory.add(node.bytes);
}

void Tree::Impl::share(std::uint32_t place, std::uint32_t source) {
  Node& node = nodes[place];
  Node& from = nodes[source];
  node.bytes = from.bytes;
  node.location = from.location;
  if (from.link == 0) from.link = from.extra = source;
  node.link = from.link;
  node.extra = source;
  nodes[from.link].extra = place;
  from.link = place;
}

Tree::Impl::Released Tree::Impl::release(std::uint32_t place) {
  Node& node = nodes[place];
  if (node.link == 0) return {};
  Released released;
  if (node.link == place) {
    released.freed = (node.flags & state::kCharged) != 0;
    if (released.freed) {
      account(place, false);
      memory[static_cast<std::size_t>(node.location)].remove(node.bytes);
      if (node.location == model::Location::kGpu) gpu_usage(gpus, node.device).memory.remove(node.bytes);
    }
  } else {
    const std::uint32_t next = node.link;
    nodes[node.extra].link = next;
    nodes[next].extra = node.extra;
    if ((node.flags & state::kCharged) != 0) {
      account(place, false);
      nodes[next].flags |= state::kCharged;
      account(next, true);
      released.inheritor = next;
      // The GPU they say it lies on may differ: a program's word again.
      if (node.location == model::Location::kGpu && nodes[next].device != node.device) {
        gpu_usage(gpus, node.device).memory.remove(node.bytes);
        gpu_usage(gpus, nodes[next].device).memory.add(node.bytes);
      }
    }
  }
  node.link = node.extra = 0;
  node.flags &= static_cast<std::uint8_t>(~state::kCharged);
  return released;
}

std::uint32_t Tree::Impl::references(std::uint32_t place) const {
  if (nodes[place].link == 0) return 1;
  std::uint32_t count = 1;
  for (std::uint32_t at = nodes[place].link; at != place && count < kMostReferences; at = nodes[at].link) ++count;
  return count;
}

std::uint16_t Tree::Impl::class_id(std::uint32_t number, std::string_view name) {
  const std::uint64_t key = std::uint64_t{number} + 1;
  if (const std::uint32_t known = class_index.find(key)) return static_cast<std::uint16_t>(known);
  if (class_names.size() >= kMaxClasses) return 0;
  class_names.push_back({number, name});
  class_index.set(key, static_cast<std::uint32_t>(class_names.size() - 1));
  return static_cast<std::uint16_t>(class_names.size() - 1);
}

}  // namespace gpuwatch::decode
