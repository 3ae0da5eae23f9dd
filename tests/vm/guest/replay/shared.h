// SPDX-License-Identifier: Apache-2.0
// What the processes of one replay share: counts, and the state of every open
// file, so that a call waits for the open it needs and a close for the calls
// before it, across threads and processes.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace gpuwatch::replay {

struct Counts {
  std::atomic<std::uint64_t> opens, ioctls, mmaps, releases;
  std::atomic<std::uint64_t> mismatches;  // bytes or return values not as recorded
  std::atomic<std::uint64_t> errors;      // trouble of the replay itself
};

class Shared {
 public:
  // Anonymous shared memory: survives fork, goes with the last process.
  static base::Result<Shared*> create(std::size_t files);
  static void destroy(Shared* shared, std::size_t files);  // of the calling process's view

  Counts& counts() { return counts_; }

  void opened(std::size_t file, int fd);  // by the calling process; fd < 0: failed
  void used(std::size_t file);            // one call on it is done

  struct Holder {
    pid_t pid;
    int fd;  // < 0: the open failed
  };
  Holder wait_open(std::size_t file);
  void wait_uses(std::size_t file, std::uint32_t uses);

 private:
  struct FileState {
    bool known;
    pid_t pid;
    int fd;
    std::uint32_t uses;
  };

  static std::size_t bytes_for(std::size_t files);

  template <typename Done>
  bool wait_until(Done done);  // with lock_ held

  Counts counts_;
  pthread_mutex_t lock_;  // files_
  pthread_cond_t changed_;
  FileState* files_;  // in the same memory, right behind
};

}  // namespace gpuwatch::replay
