// SPDX-License-Identifier: Apache-2.0
// Several workers, and jobs handed to whichever is free. A worker that dies or
// takes too long costs its job, with the reason, and is started anew.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "identify/worker.h"

namespace gpuwatch::identify {

struct Job {
  std::string request;
  int fd = -1;             // the file it is about; stays the caller's
  std::uint64_t cost = 0;  // memory it takes, see Pool::set_memory
  // Exactly one of these is called, once, on the thread of run().
  std::function<void(Bytes reply)> done;
  std::function<void(const std::string& reason)> failed;
  std::function<void(std::uint64_t bytes)> progress;  // may be empty
};

class Pool {
 public:
  Pool(unsigned workers, int timeout_ms) : workers_(workers), timeout_ms_(timeout_ms) {}

  // Jobs run one at a time when the sum of their costs would be more.
  void set_memory(std::uint64_t bytes) { memory_ = bytes; }

  void add(Job job) { queue_.push_back(std::move(job)); }
  // Until the queue is empty; done() and failed() may add more jobs. `tick` is
  // called now and then; false from it drops what has not begun.
  void run(const std::function<bool()>& tick = {});

  std::size_t size() const { return workers_.size(); }
  std::uint64_t restarts() const { return restarts_; }

 private:
  struct Slot {
    WorkerProcess process;
    Job job;
    bool busy = false;
    std::int64_t deadline_ms = 0;
  };
  void begin(Slot& slot);
  void fail(Slot& slot, bool timed_out);
  void take(Slot& slot);

  std::vector<Slot> workers_;
  std::deque<Job> queue_;
  int timeout_ms_;
  std::uint64_t memory_ = ~std::uint64_t{0};
  std::uint64_t in_use_ = 0;
  std::uint64_t restarts_ = 0;
};

}  // namespace gpuwatch::identify
