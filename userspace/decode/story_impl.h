// SPDX-License-Identifier: Apache-2.0
// StoryBuilder's inside: one struct, its functions by topic in story_*.cpp. It
// decides by tag, category and the security table, which are data, never by a
// number. Habitual failures of CUDA programs are no events; refusals are.
#pragma once

#include <vector>

#include "decode/security.h"
#include "decode/story.h"
#include "decode/tree_impl.h"

namespace gpuwatch::decode {

using Events = std::vector<model::StoryEvent>;

// The call being told, with whose it is.
struct Scene {
  const model::Call& call;
  std::uint32_t process;  // place in the tree
  std::uint32_t file;     // place in the tree; 0 its open was not seen
  Events& out;
  // A denial of this call has a line already.
  bool denied_told = false;
};

struct StoryBuilder::Impl {
  explicit Impl(TreeLimits limits) : tree(limits), t(tree.impl()) {}

  Tree tree;
  Tree::Impl& t;

  // Exports of objects to file descriptors that may be imported, newest last.
  struct Export {
    model::Party from;
    std::int32_t fd = -1;
    std::uint64_t bytes = 0;
    std::uint32_t client = 0, node = 0;  // places, checked against the handles before use
  };
  std::vector<Export> exports;

  // story.cpp: dispatch, files, places
  void on_open(const model::Call& call, Events& out);
  void on_release(const model::Call& call, Events& out);
  void on_ioctl(const model::Call& call, Events& out);
  static void on_state(const model::Call& call, Events& out);
  model::StoryEvent& tell(model::StoryKind kind, Scene& scene, model::StoryBody body, std::int32_t device = -1);
  // About another process than the caller, or after its end: `at` is the call.
  model::StoryEvent& tell_of(model::StoryKind kind, std::uint32_t process, const gpuwatch_rec& at, Events& out,
                             model::StoryBody body, std::int32_t device);
  void place(model::StoryEvent& event, std::uint32_t process, std::int32_t device) const;
  model::Party party(std::uint32_t client, std::uint32_t object_handle) const;

  // story_objects.cpp: making and ending
  void on_alloc(Scene& scene);
  void on_heap_control(Scene& scene);
  void on_free(Scene& scene, std::uint32_t client_handle, std::uint32_t handle);
  // Ends what is below `node`, and itself; `quiet`: its end was lost, only keep the books.
  void end_tree(std::uint32_t node, const gpuwatch_rec& at, Events& out, bool by_file, bool quiet);
  std::uint32_t client_for(Scene& scene, std::uint32_t handle);
  void end_known(Scene& scene, std::uint32_t client, std::uint32_t handle);
  void tell_sign(Scene& scene, const state::Node& node);

  // story_memory.cpp
  void made_memory(Scene& scene, std::uint32_t node, std::uint64_t bytes);
  void tell_refused_memory(Scene& scene);
  struct FreedMemory {
    std::uint64_t bytes = 0;
    std::uint32_t objects = 0;
    std::uint32_t handle = 0;  // of the last
    std::uint16_t class_id = 0;
    std::int32_t device = -1;
  };
  void tell_freed(std::uint32_t process, std::uint32_t client, model::Location location, const FreedMemory& freed,
                  const gpuwatch_rec& at, Events& out);
  void tell_inherited(std::uint32_t node, std::uint32_t from_process, std::uint32_t from_client,
                      std::uint32_t from_handle, const gpuwatch_rec& at, Events& out);
  model::MemoryBody memory_body(std::uint32_t process, model::Location location, std::int32_t device) const;
  state::Usage& usage_of(std::uint32_t process, model::Location location, std::int32_t device);
  model::StoryView view_of_memory(std::uint32_t process, model::Location location, std::int32_t device);
  void on_map(Scene& scene, model::MapSpace space);
  void on_unmap(Scene& scene, model::MapSpace space);

  // story_contexts.cpp
  void made_group(Scene& scene, std::uint32_t node);
  void made_channel(Scene& scene, std::uint32_t node);
  void made_engine(std::uint32_t node);
  void on_schedule(Scene& scene);
  void run_group(std::uint32_t node, std::uint64_t now_ns);
  void count_channel(state::Context& context, const state::Node& channel) const;
  void recount(state::Context& context, std::uint8_t before, std::uint8_t after) const;
  // A group or channel is about to go.
  void ended_channel_thing(std::uint32_t node, const gpuwatch_rec& at, Events& out, bool quiet);
  void settle_contexts(std::uint32_t process, const gpuwatch_rec& at, Events& out);
  model::ContextBody context_body(const state::Context& context) const;
  void maybe_settle(Scene& scene);
  void settle(std::uint64_t now_ns, Events& out);

  // story_sharing.cpp
  void on_dup(Scene& scene);
  void on_grant(Scene& scene);
  void on_export(Scene& scene, model::Mechanism mechanism);
  void on_import(Scene& scene, model::Mechanism mechanism);
  void on_peer(Scene& scene, model::StoryKind kind);

  // story_security.cpp
  void tell_denial(Scene& scene);
  void look_for_findings(Scene& scene);
  void on_fault(Scene& scene);
};

constexpr bool is_engine(model::Category category) {
  using model::Category;
  return category == Category::kCompute || category == Category::kCopy || category == Category::kGraphics ||
         category == Category::kVideo || category == Category::kInlineToMemory;
}

constexpr bool is_memory(model::Category category) {
  using model::Category;
  return category == Category::kMemoryGpu || category == Category::kMemoryHost || category == Category::kMemoryPinned ||
         category == Category::kMemoryOther || category == Category::kFabric;
}

constexpr bool is_channel_thing(model::Category category) {
  return category == model::Category::kChannel || category == model::Category::kChannelGroup;
}

}  // namespace gpuwatch::decode
