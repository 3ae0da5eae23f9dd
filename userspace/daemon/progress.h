// SPDX-License-Identifier: Apache-2.0
// Progress: how far the records of each CPU are worked off, in memory that
// outlives the process, since somebody else (systemd's store of descriptors, or
// our own supervisor) holds it too. The next process skips what was told and
// counts what was taken from the ring and not told.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "model/loss.h"
#include "model/raw_record.h"

namespace gpuwatch::daemon {

class Progress {
 public:
  static constexpr std::uint32_t kCpusMax = 8192;

  static base::Result<Progress> create();
  // The memory of an earlier process. What is no such memory is an error.
  static base::Result<Progress> adopt(base::Fd fd);
  Progress(Progress&& other) noexcept;
  Progress& operator=(Progress&&) = delete;
  ~Progress();

  int fd() const { return fd_.get(); }

  // The reader's side, for each record in order. False: an earlier process
  // worked it off.
  bool wanted(const gpuwatch_rec& head);
  // Records that an earlier process had taken and not worked off, found so far.
  std::uint64_t missed() const { return missed_; }

  // The worker's side.
  void done(const gpuwatch_rec& head);
  // Calls (open, ioctl, mmap, release) worked off, by all processes together.
  std::uint64_t calls() const;
  // Losses of the ring that were told, all together, over processes.
  model::LossCounts told() const;
  void set_told(const model::LossCounts& told);

 private:
  struct Shared;
  Progress(base::Fd fd, Shared* shared);

  base::Fd fd_;
  Shared* shared_;
  std::vector<std::uint64_t> resume_at_;  // by CPU: first sequence not worked off; of an earlier process
  std::vector<bool> seen_;                // by CPU: a record came since
  std::uint64_t missed_ = 0;
};

}  // namespace gpuwatch::daemon
