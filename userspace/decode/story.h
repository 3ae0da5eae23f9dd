// SPDX-License-Identifier: Apache-2.0
// StoryBuilder: turns the stream of calls into the events of model/story.h and
// keeps the tree of live objects (tree.h) they come from. State is bounded:
// over a limit the longest idle process is forgotten and counted. Reads Calls
// only; prints nothing.
//
//   observe(call, events)   appends what this call completes; usually nothing
//   settle(now_ns, events)  when no call came for a while: what was waiting
//   finish(events)          at the end of the records: what was still waiting
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "decode/tree.h"
#include "model/call.h"
#include "model/story.h"

namespace gpuwatch::decode {

class StoryBuilder {
 public:
  explicit StoryBuilder(TreeLimits limits = {});
  ~StoryBuilder();
  StoryBuilder(StoryBuilder&&) noexcept;
  StoryBuilder& operator=(StoryBuilder&&) noexcept;

  void observe(const model::Call& call, std::vector<model::StoryEvent>& out);
  void settle(std::uint64_t now_ns, std::vector<model::StoryEvent>& out);
  void finish(std::vector<model::StoryEvent>& out);

  const Tree& tree() const;

  // Processes forgotten and objects not taken in because of the limits.
  std::uint64_t forgotten() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuwatch::decode
