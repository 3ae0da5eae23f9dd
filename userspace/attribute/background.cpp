// SPDX-License-Identifier: Apache-2.0
#include "attribute/background.h"

#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/clock.h"

namespace gpuwatch::attribute {

struct Background::State {
  explicit State(std::size_t limit) : queue_limit(limit) {}

  const std::size_t queue_limit;
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::function<void()>> queue;
  bool started = false;
  bool stop = false;
  std::uint64_t refused = 0;
  std::atomic<std::uint64_t> busy_since{0};

  void work() {
    // Signals are the main thread's.
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    for (;;) {
      std::function<void()> job;
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return stop || !queue.empty(); });
        if (stop) return;
        job = std::move(queue.front());
        queue.pop_front();
      }
      busy_since.store(base::monotonic_ns());
      job();
      busy_since.store(0);
    }
  }
};

Background::Background(std::size_t queue_limit) : state_(std::make_shared<State>(queue_limit)) {}

Background::~Background() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
    state_->queue.clear();
  }
  state_->wake.notify_all();
}

bool Background::submit(std::function<void()> job) {
  const std::lock_guard lock(state_->mutex);
  if (state_->queue.size() >= state_->queue_limit) {
    ++state_->refused;
    return false;
  }
  if (!state_->started) {
    try {
      std::thread([state = state_] { state->work(); }).detach();
    } catch (const std::system_error&) {
      ++state_->refused;
      return false;
    }
    state_->started = true;
  }
  state_->queue.push_back(std::move(job));
  state_->wake.notify_one();
  return true;
}

std::uint64_t Background::refused() const {
  const std::lock_guard lock(state_->mutex);
  return state_->refused;
}

std::uint64_t Background::busy_ns() const {
  const std::uint64_t since = state_->busy_since.load();
  const std::uint64_t now = base::monotonic_ns();
  return since == 0 || now < since ? 0 : now - since;
}

}  // namespace gpuwatch::attribute
