// SPDX-License-Identifier: Apache-2.0
// How the tree changes. StoryBuilder's side of tree.h: it says what was made
// and freed, the tree keeps handles, parents, references and totals right and
// itself within its limits. Nothing here knows events.
//
// Who may change what: a call changes a client only when the client belongs to
// the calling process or was made on the file the call came through. So a
// process that forges its own records (arguments can be rewritten while they
// are copied) can only lie about itself.
#pragma once

#include "decode/index_map.h"
#include "decode/tree.h"
#include "decode/tree_state.h"

namespace gpuwatch::decode {

struct ClassName {
  std::uint32_t number = 0;
  std::string_view name;
};

struct Tree::Impl {
  explicit Impl(TreeLimits set) : limits(set) {}

  // --- processes and files -------------------------------------------------

  // The caller's process, made when it is new, now the latest used.
  std::uint32_t touch(const gpuwatch_rec& head);
  std::uint32_t find_process(const model::ProcessKey& key) const;
  state::OpenGpu& open_gpu(state::Process& process, std::uint32_t minor);

  std::uint32_t find_file(std::uint64_t id) const { return file_index.find(id); }
  // 0 when the limit says no.
  std::uint32_t add_file(const gpuwatch_rec& head, std::uint32_t minor, std::uint32_t process);
  void remove_file(std::uint32_t file);

  // --- clients -------------------------------------------------------------

  // The client of that handle that this process may change.
  std::uint32_t own_client(std::uint32_t handle, std::uint32_t process, std::uint32_t file) const;
  // The client of that handle that somebody means who names it as a source:
  // somebody else's where there are several.
  std::uint32_t source_client(std::uint32_t handle, std::uint32_t process) const;
  // 0 when a limit says no.
  std::uint32_t add_client(std::uint32_t handle, std::uint32_t process, std::uint32_t file, std::uint64_t now_ns);

  // --- objects -------------------------------------------------------------

  std::uint32_t find(std::uint32_t client, std::uint32_t handle) const {
    return object_index.find(std::uint64_t{client} << 32 | handle);
  }
  // The handle must not be known in the client. An unknown parent makes the
  // object hang below its client, both marked partial. 0 when a limit says no.
  std::uint32_t add_object(std::uint32_t client, std::uint32_t parent_handle, std::uint32_t handle,
                           std::uint64_t now_ns);
  // Ends an object and, as the driver does, all below it, leaves first; `each`
  // sees a node right before it goes. A client goes with its root.
  template <typename Each>
  void take(std::uint32_t top, Each each) {
    if (top == 0) return;
    std::uint32_t at = top;
    for (;;) {
      while (nodes[at].first != 0) at = nodes[at].first;
      const std::uint32_t above = nodes[at].parent;
      const bool last = at == top;
      each(at);
      remove_leaf(at);
      if (last) return;
      at = above;
    }
  }

  // --- memory --------------------------------------------------------------

  void charge(std::uint32_t node);
  void share(std::uint32_t node, std::uint32_t source);  // one more reference to the same memory
  struct Released {
    bool freed = false;           // it was the last reference
    std::uint32_t inheritor = 0;  // node that the memory counts for from now on
  };
  // One reference less: takes the bytes out of the totals or passes them on.
  Released release(std::uint32_t node);
  std::uint32_t references(std::uint32_t node) const;
  state::GpuUsage& gpu_usage(std::vector<state::GpuUsage>& list, std::int32_t device);

  std::uint16_t class_id(std::uint32_t number, std::string_view name);
  std::uint32_t process_of(const state::Node& node) const { return clients[node.client].process; }
  std::size_t bytes() const;

  TreeLimits limits;
  Slab<state::Node, 10> nodes;
  Slab<state::Client, 6> clients;
  Slab<state::File, 6> files;
  Slab<state::Process, 2> processes;
  Slab<state::Context, 4> contexts;
  IndexMap object_index;                            // client << 32 | handle
  IndexMap client_index;                            // handle: first of those that have it
  IndexMap file_index;                              // id
  IndexMap process_index;                           // see process_hash()
  IndexMap class_index;                             // number
  std::vector<ClassName> class_names{ClassName{}};  // place 0: not known
  std::vector<state::GpuUsage> gpus;
  std::array<state::Usage, model::kLocations> memory{};  // of all processes; [kGpu] of all GPUs
  std::uint32_t newest = 0, oldest = 0;                  // processes by last use
  std::uint64_t context_count = 0;
  std::uint64_t forgotten_processes = 0;
  std::uint64_t untracked = 0;
  std::uint64_t ignored = 0;

 private:
  void unlink_process(std::uint32_t process);
  void link_newest(std::uint32_t process);
  void forget_process(std::uint32_t process);
  // Makes room for one more object of `process`; false when there is none.
  bool make_room(std::uint32_t process);
  void link_child(std::uint32_t parent, std::uint32_t node);
  void remove_leaf(std::uint32_t node);
  void remove_client(std::uint32_t client);
  void account(std::uint32_t node, bool add);
};

}  // namespace gpuwatch::decode
