// SPDX-License-Identifier: Apache-2.0
#include "probe/rounds.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

namespace gpuwatch::probe {

namespace {

constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP};

volatile std::sig_atomic_t ended = 0;

void on_signal(int) {
  ended = 1;
}

}  // namespace

Rounds::Rounds(int every_s, int times, int out_fd) : every_s_(every_s), times_(times), out_fd_(out_fd) {
  if (!several()) return;
  sigset_t ending;
  ::sigemptyset(&ending);
  for (const int number : kEnding) ::sigaddset(&ending, number);
  ::pthread_sigmask(SIG_BLOCK, &ending, &while_waiting_);
  // Whoever started this may have blocked them, too.
  for (const int number : kEnding) ::sigdelset(&while_waiting_, number);
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (const int number : kEnding) ::sigaction(number, &action, nullptr);
}

bool Rounds::next() {
  if (!several() || (times_ != 0 && number_ >= static_cast<std::uint64_t>(times_))) return false;
  if (!wait_until(begin_ + std::chrono::seconds(every_s_))) return false;
  begin_ = Clock::now();
  ++number_;
  return true;
}

// Looks at signals and the reader once at least.
bool Rounds::wait_until(Clock::time_point begin) {
  for (;;) {
    const auto left =
        std::max<std::chrono::nanoseconds::rep>(0, std::chrono::nanoseconds(begin - Clock::now()).count());
    const timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
    // No events are asked for: errors are told always.
    pollfd out{out_fd_, 0, 0};
    const int ready = ::ppoll(&out, 1, &timeout, &while_waiting_);
    if (ended != 0) return false;
    if (ready == 0) return true;
    if (ready < 0) {
      if (errno != EINTR) return false;
    } else if ((out.revents & POLLNVAL) != 0) {
      out_fd_ = -1;  // there never was a reader
    } else {
      return false;
    }
  }
}

}  // namespace gpuwatch::probe
