// SPDX-License-Identifier: Apache-2.0
// Unsent: how many items wait for each sink, in a small mapped file beside the
// state. The kernel keeps the file's last content when the process is killed,
// so the next process can say what may not have gone out. It counts only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "sink/queue.h"

namespace gpuwatch::daemon {

class Unsent : public std::enable_shared_from_this<Unsent> {
 public:
  struct Left {
    std::string sink;
    std::uint64_t items = 0;
  };

  // Takes the file over; an error where another process has it or there is no
  // room for it. A file of another form is begun anew.
  static base::Result<std::shared_ptr<Unsent>> open(const std::string& path);
  ~Unsent();

  // What waited when the process before this one ended; empty: nothing.
  const std::vector<Left>& left() const { return left_; }

  // A count for one more sink, 0 at first and again when nobody holds it any
  // more. Nothing: all places are taken.
  std::shared_ptr<sink::WaitingCount> count_for(std::string_view sink);

 private:
  static constexpr std::size_t kPlaces = 64;
  struct Place;
  struct Shared;
  Unsent(base::Fd fd, Shared* shared);
  void begin();

  base::Fd fd_;
  Shared* shared_;
  std::vector<Left> left_;
  std::mutex lock_;  // what follows
  bool taken_[kPlaces] = {};
};

}  // namespace gpuwatch::daemon
