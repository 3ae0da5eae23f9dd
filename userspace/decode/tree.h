// SPDX-License-Identifier: Apache-2.0
// Tree: every object that programs made in the driver and have not freed, as
// far as their calls were seen: process → client → device → ... → engine, with
// who shares memory with whom and how much each holds. Fed by StoryBuilder
// only; everybody else reads it:
//
//   walk everything:       struct Mine : TreeVisitor {...} mine;  story.tree().walk(mine);
//   walk one process:      story.tree().walk({start_ns, tgid}, mine);
//   totals of a process:   story.tree().find(key)->memory[0].peak, or ->gpus
//   totals of a GPU:       story.tree().gpu(device).live
//
// Names in what a reader gets point into static tables; the rest are copies.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "model/tree.h"

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

class TreeVisitor {
 public:
  virtual ~TreeVisitor() = default;
  // Each: false leaves out what is below.
  virtual bool process(const model::TreeProcess&) { return true; }
  virtual bool client(const model::TreeClient&) { return true; }
  // depth 0: directly below the client. In the order in which they were made.
  virtual bool object(const model::TreeObject&, unsigned /*depth*/) { return true; }
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
  std::optional<model::TreeProcess> find(const model::ProcessKey& key) const;
  // All processes together, of one RM device instance (-1: device not known).
  model::Usage gpu(std::int32_t device) const;
  std::vector<model::GpuUsage> gpus() const;
  // All processes together, by Location.
  std::array<model::Usage, model::kLocations> memory() const;
  std::size_t objects() const;  // clients included
  TreeStats stats() const;

  struct Impl;
  Impl& impl() { return *impl_; }
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuwatch::decode
