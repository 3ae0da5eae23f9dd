// SPDX-License-Identifier: Apache-2.0
// Tree: every object that programs made in the driver and have not freed, as
// far as their calls were seen: process → client → device → ... → engine, with
// who shares memory with whom and how much each holds. Fed by StoryBuilder
// only; everybody else reads it:
//
//   walk everything:       struct Mine : TreeVisitor {...} mine;  story.tree().walk(mine);
//   walk one process:      story.tree().walk({start_ns, tgid}, mine);
//   totals of a process:   story.tree().find(key)->memory(Location::kGpu).peak
//   totals of a GPU:       story.tree().gpu(device).live
//
// Views point into the tree: good until the next record is observed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "decode/tree_state.h"

namespace gpuwatch::decode {

struct TreeLimits {
  std::size_t processes = 4096;
  std::size_t objects = 1U << 20;  // of all processes together, clients included
  std::size_t objects_per_process = 1U << 18;
  std::size_t files = 1U << 18;
};

struct TreeStats {
  std::size_t processes = 0;
  std::size_t clients = 0;
  std::size_t objects = 0;  // clients included
  std::size_t files = 0;
  std::size_t bytes = 0;                  // of memory the tree takes
  std::uint64_t forgotten_processes = 0;  // with all they had, to stay in the limits
  std::uint64_t untracked = 0;            // objects and files not taken in, for the same reason
  std::uint64_t ignored = 0;              // calls on a client of somebody else
};

struct Usage {
  std::uint64_t live = 0;
  std::uint64_t peak = 0;
};

class ProcessView {
 public:
  model::ProcessKey key() const { return process_->key; }
  // Of its latest call: comm, uid, cgroup.
  const gpuwatch_rec& head() const { return process_->head; }
  // GPU: of all GPUs together. Memory held by several clients counts once.
  Usage memory(model::Location location) const {
    const auto& usage = process_->totals[static_cast<std::size_t>(location)];
    return {usage.live, usage.peak};
  }
  // One for each RM device instance the process has or had memory on.
  std::span<const state::GpuUsage> gpus() const { return process_->gpus; }
  std::span<const state::OpenGpu> open_gpus() const { return process_->open_gpus; }
  std::uint32_t objects() const { return process_->objects; }    // live, clients included
  std::uint32_t contexts() const { return process_->contexts; }  // live
  bool partial() const { return process_->partial; }             // began before gpuwatch looked

 private:
  friend class Tree;
  explicit ProcessView(const state::Process* process) : process_(process) {}
  const state::Process* process_;
};

struct ClientView {
  std::uint32_t handle = 0;
  std::uint64_t made_ns = 0;
  std::uint32_t objects = 0;  // below it
  bool partial = false;
};

struct ObjectView {
  std::uint32_t client = 0;
  std::uint32_t handle = 0;
  std::uint32_t parent = 0;
  model::Category category = model::Category::kNone;
  std::uint32_t class_number = 0;
  std::string_view class_name;  // empty: not known
  std::uint64_t made_ns = 0;
  std::int32_t device = -1;  // RM device instance
  std::uint64_t bytes = 0;   // of memory
  model::Location location = model::Location::kGpu;
  bool counted = false;          // in this process's totals
  std::uint32_t references = 1;  // to the same memory, this one included; counting stops at 256
  std::uint32_t entries = 0;     // of a channel
  std::uint32_t engine = 0;
  std::uint64_t context = 0;  // id, of a group or channel that runs
  bool running = false;
  bool partial = false;  // its parent was not seen: it hangs below its client
};

class TreeVisitor {
 public:
  virtual ~TreeVisitor() = default;
  // Each: false leaves out what is below.
  virtual bool process(const ProcessView&) { return true; }
  virtual bool client(const ClientView&) { return true; }
  // depth 0: directly below the client. In the order in which they were made.
  virtual bool object(const ObjectView&, unsigned /*depth*/) { return true; }
};

class Tree {
 public:
  explicit Tree(TreeLimits limits = {});
  ~Tree();
  Tree(Tree&&) noexcept;
  Tree& operator=(Tree&&) noexcept;

  // Longest idle process first.
  void walk(TreeVisitor& visitor) const;
  // False when the process is not known.
  bool walk(const model::ProcessKey& key, TreeVisitor& visitor) const;
  std::optional<ProcessView> find(const model::ProcessKey& key) const;
  // All processes together, of one RM device instance (-1: device not known).
  Usage gpu(std::int32_t device) const;
  std::span<const state::GpuUsage> gpus() const;
  TreeStats stats() const;

  struct Impl;
  Impl& impl() { return *impl_; }
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuwatch::decode
