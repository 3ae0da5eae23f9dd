// SPDX-License-Identifier: Apache-2.0
// Processes and files of the tree, by last use, and the limits that keep it
// bounded: who is idle longest goes first.
#include <sys/random.h>

#include "decode/tree_impl.h"

namespace gpuwatch::decode {

using state::File;
using state::Process;

namespace {

std::uint64_t process_hash(const model::ProcessKey& key) {
  return mix_key(key.start_ns, hash_secret()) ^ (std::uint64_t{key.tgid} * 0x9E3779B97F4A7C15ULL);
}

std::uint64_t draw_secret() {
  std::uint64_t secret = 0;
  // Without entropy, early at boot, addresses are what strangers know least.
  if (::getrandom(&secret, sizeof secret, GRND_NONBLOCK) != sizeof secret)
    secret = reinterpret_cast<std::uintptr_t>(&secret) * 0x9E3779B97F4A7C15ULL;
  return secret;
}

}  // namespace

std::uint64_t hash_secret() {
  static const std::uint64_t kSecret = draw_secret();
  return kSecret;
}

std::uint32_t Tree::Impl::find_process(const model::ProcessKey& key) const {
  const std::uint32_t place = process_index.find(process_hash(key));
  return place != 0 && processes[place].key == key ? place : 0;
}

std::uint32_t Tree::Impl::touch(const gpuwatch_rec& head) {
  const model::ProcessKey key{head.start_ns, head.tgid};
  std::uint32_t place = newest != 0 && processes[newest].key == key ? newest : find_process(key);
  if (place == 0) {
    if (const std::uint32_t other = process_index.find(process_hash(key))) forget_process(other);
    while (processes.live() >= limits.processes && oldest != 0) forget_process(oldest);
    place = processes.take();
    processes[place].key = key;
    process_index.set(process_hash(key), place);
    link_newest(place);
  } else if (place != newest) {
    unlink_process(place);
    link_newest(place);
  }
  processes[place].head = head;
  return place;
}

void Tree::Impl::link_newest(std::uint32_t place) {
  Process& process = processes[place];
  process.newer = 0;
  process.older = newest;
  if (newest != 0) processes[newest].newer = place;
  newest = place;
  if (oldest == 0) oldest = place;
}

void Tree::Impl::unlink_process(std::uint32_t place) {
  const Process& process = processes[place];
  (process.newer != 0 ? processes[process.newer].older : newest) = process.older;
  (process.older != 0 ? processes[process.older].newer : oldest) = process.newer;
}

void Tree::Impl::forget_process(std::uint32_t place) {
  Process& process = processes[place];
  while (process.first_client != 0)
    take(clients[process.first_client].root, [this](std::uint32_t node) {
      const state::Node& going = nodes[node];
      if (going.category == model::Category::kChannelGroup || going.category == model::Category::kChannel) {
        if (going.link != 0 && (going.flags & state::kRunning) != 0 && --contexts[going.link].live_groups == 0)
          contexts.give(going.link);
      } else {
        release(node);
      }
    });
  while (process.first_file != 0) remove_file(process.first_file);
  unlink_process(place);
  process_index.erase(process_hash(process.key));
  processes.give(place);
  ++forgotten_processes;
}

bool Tree::Impl::make_room(std::uint32_t place) {
  if (processes[place].objects >= limits.objects_per_process) {
    ++untracked;
    return false;
  }
  while (nodes.live() >= limits.objects) {
    // Not the caller, nor the owner of the client it uses: they would lose what
    // is about to be used.
    std::uint32_t victim = oldest;
    while (victim != 0 && (victim == place || victim == newest)) victim = processes[victim].newer;
    if (victim == 0) {
      ++untracked;
      return false;
    }
    forget_process(victim);
  }
  return true;
}

std::uint32_t Tree::Impl::add_file(const gpuwatch_rec& head, std::uint32_t minor, std::uint32_t process) {
  // The same id again: its release was lost.
  if (const std::uint32_t known = find_file(head.file_id)) {
    if (files[known].process == process) return known;
    remove_file(known);
  }
  if (files.live() >= limits.files) {
    ++untracked;
    return 0;
  }
  const std::uint32_t place = files.take();
  File& file = files[place];
  file.id = head.file_id;
  file.process = process;
  file.minor = minor;
  file.node_kind = head.node_kind;
  Process& owner = processes[process];
  file.process_next = owner.first_file;
  if (owner.first_file != 0) files[owner.first_file].process_previous = place;
  owner.first_file = place;
  file_index.set(head.file_id, place);
  return place;
}

void Tree::Impl::remove_file(std::uint32_t place) {
  const File file = files[place];
  for (std::uint32_t client = file.first_client; client != 0;) {
    const std::uint32_t next = clients[client].file_next;
    clients[client].file = clients[client].file_next = clients[client].file_previous = 0;
    client = next;
  }
  Process& owner = processes[file.process];
  (file.process_previous != 0 ? files[file.process_previous].process_next : owner.first_file) = file.process_next;
  if (file.process_next != 0) files[file.process_next].process_previous = file.process_previous;
  file_index.erase(file.id);
  files.give(place);
}

state::OpenGpu& Tree::Impl::open_gpu(Process& process, std::uint32_t minor) {
  for (state::OpenGpu& each : process.open_gpus)
    if (each.minor == minor) return each;
  return process.open_gpus.emplace_back(state::OpenGpu{minor, 0});
}

}  // namespace gpuwatch::decode
