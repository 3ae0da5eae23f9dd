// SPDX-License-Identifier: Apache-2.0
// RetiredOutputs: sinks that a reload replaced. They get rid of what waits for
// them and end, each on a thread of its own: the main thread, which reloads and
// feeds the watchdog, waits for none of them.
#pragma once

#include <chrono>
#include <deque>
#include <future>
#include <memory>

#include "daemon/outputs.h"

namespace gpuwatch::daemon {

class RetiredOutputs {
 public:
  ~RetiredOutputs() { finish(); }

  // `stop_time`: what they have to end.
  void add(std::shared_ptr<Outputs> outputs, std::chrono::milliseconds stop_time);
  // Begins the end of those that the worker has let go of, forgets those that
  // have ended. Now and then.
  void look();
  // The end of all begins; waits for it.
  void begin_end();
  void finish();

 private:
  struct One {
    std::shared_ptr<Outputs> outputs;
    std::chrono::milliseconds stop_time;
    std::future<void> ended;
  };

  static void end(One& one);

  std::deque<One> all_;
};

}  // namespace gpuwatch::daemon
