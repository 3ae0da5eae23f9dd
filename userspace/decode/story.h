// SPDX-License-Identifier: Apache-2.0
// StoryBuilder: turns the stream of calls into the few events a person wants to
// know. Keeps small bounded state per process (open GPUs, clients, memory,
// channel groups); over the bound the oldest process is forgotten and counted.
// Reads Calls only; prints nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/call.h"
#include "model/story.h"

namespace gpuwatch::decode {

struct StoryLimits {
  std::size_t processes = 4096;
  std::size_t objects = 262144;  // of all processes together
  std::size_t objects_per_process = 65536;
};

class StoryBuilder {
 public:
  explicit StoryBuilder(StoryLimits limits = {});
  ~StoryBuilder();
  StoryBuilder(StoryBuilder&&) noexcept;
  StoryBuilder& operator=(StoryBuilder&&) noexcept;

  // Appends the events this call completes; usually none.
  void observe(const model::Call& call, std::vector<model::StoryEvent>& out);

  // Processes or objects forgotten because of the limits.
  std::uint64_t forgotten() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuwatch::decode
