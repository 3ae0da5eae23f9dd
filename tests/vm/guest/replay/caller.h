// SPDX-License-Identifier: Apache-2.0
// One thread's hand on the driver: buffers, descriptors and mappings of its
// process, and the comparison of what comes back with the recording.
#pragma once

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "recording.h"
#include "shared.h"

namespace gpuwatch::replay {

// Descriptors and mappings of the calling process, by file of the recording.
class Descriptors {
 public:
  // `process` is the index of the calling process in the recording.
  Descriptors(const Recording& recording, std::size_t process, Shared& shared)
      : recording_(recording), process_(process), shared_(shared) {}

  // The process's descriptor for `file`: its own, or a copy of the opener's.
  // Waits for the open. -1 when that failed.
  [[nodiscard]] int get(std::size_t file);
  void opened(std::size_t file, int fd);
  void mapped(std::size_t file, void* address, std::size_t length);

  // Unmaps and closes, after all calls of the recording on it were made.
  void release(std::size_t file);
  void release_all();  // what is left at the end of the process

 private:
  struct Held {
    int fd = -1;
    std::vector<std::pair<void*, std::size_t>> mappings;
  };
  void drop(std::size_t file, Held& held);

  const Recording& recording_;
  std::size_t process_;
  Shared& shared_;
  std::mutex lock_;  // held_
  std::map<std::size_t, Held> held_;
};

class Caller {
 public:
  Caller(Descriptors& descriptors, Shared& shared, std::uint64_t spoil)
      : descriptors_(descriptors), shared_(shared), spoil_(spoil) {}

  void make(const Step& step);

 private:
  void open(const Step& step);
  void ioctl(const Step& step);
  void mmap(const Step& step);
  void mismatch(const Step& step, const char* what, long got, long expected);
  bool is_pointer(const Step& step, std::size_t offset) const;
  void compare(const Step& step);

  Descriptors& descriptors_;
  Shared& shared_;
  std::uint64_t spoil_;                          // see RunOptions
  std::vector<std::vector<std::byte>> buffers_;  // one per part of the step
};

}  // namespace gpuwatch::replay
