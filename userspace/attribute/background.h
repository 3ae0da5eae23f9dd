// SPDX-License-Identifier: Apache-2.0
// Background: one thread that does what may take long or hang, one job after
// the other. The queue is bounded and the owner never waits for a job, at the
// end neither: a job must own all it touches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace gpuwatch::attribute {

class Background {
 public:
  explicit Background(std::size_t queue_limit);
  // Drops what is queued. A job that runs goes on, on its own.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // False, and counted, when the queue is full. The thread starts with the
  // first job.
  bool submit(std::function<void()> job);

  std::uint64_t refused() const;
  // Nanoseconds the running job has taken so far; 0 when none runs.
  std::uint64_t busy_ns() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace gpuwatch::attribute
