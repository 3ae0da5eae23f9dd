// SPDX-License-Identifier: Apache-2.0
// When one round of probes follows the other, and when none does: after so many,
// at a signal, when nobody reads any more. It waits between rounds only; what is
// done in one is the caller's.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>

namespace gpuwatch::probe {

class Rounds {
 public:
  // `every_s` 0: one round, and nothing is changed. Else SIGINT, SIGTERM and SIGHUP
  // end it between rounds: until the process ends they are blocked in this thread
  // and those it makes later, so that none breaks a call in a round. `times` 0:
  // without end. `out_fd`: whose reader has gone ends it, too.
  Rounds(int every_s, int times, int out_fd = 1);

  bool several() const { return every_s_ != 0; }
  std::uint64_t number() const { return number_; }  // of this round, from 1
  // Waits for the begin of the next, which is at once where this one was too long.
  // False: there is none.
  bool next();

 private:
  using Clock = std::chrono::steady_clock;
  bool wait_until(Clock::time_point begin);

  int every_s_, times_, out_fd_;
  std::uint64_t number_ = 1;
  Clock::time_point begin_ = Clock::now();
  sigset_t while_waiting_{};
};

}  // namespace gpuwatch::probe
