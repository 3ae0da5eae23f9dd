// SPDX-License-Identifier: Apache-2.0
// See queue.h. The state is shared with the thread, so that a thread that was
// left behind in its sink finds it whole if it ever comes back.
#include "sink/queue.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace gpuwatch::sink {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// After cancel() a sink has this long to come back.
constexpr milliseconds kGrace{1500};

// What a sink throws is of no type we know.
template <typename Call>
Outcome guarded(Call&& call) {
  try {
    return call();
  } catch (const std::exception& thrown) {
    return base::Status(base::Error(base::Code::kIo, std::string("sink threw: ") + thrown.what()));
  } catch (...) {
    return base::Status(base::Error(base::Code::kIo, "sink threw something that is no exception"));
  }
}

}  // namespace

struct SinkQueue::State {
  State(std::unique_ptr<Sink> owned, QueueLimits given, std::shared_ptr<WaitingCount> seen)
      : sink(std::move(owned)), limits(given), name(sink->name()), seen_outside(std::move(seen)) {}

  const std::unique_ptr<Sink> sink;
  const QueueLimits limits;
  const std::string name;
  const std::shared_ptr<WaitingCount> seen_outside;
  std::thread thread;

  mutable std::mutex mutex;
  std::condition_variable work;  // for the thread
  std::condition_variable done;  // for flush() and stop()
  std::deque<ItemPtr> waiting;
  QueueCounts counts;
  std::size_t in_hand = 0;  // items of `counts.items` that are no more in `waiting`
  bool idle = false;        // the thread waits for work
  bool closed = false;
  bool reopen = false;
  bool left = false;  // the thread has ended
  std::uint64_t flush_wanted = 0;
  std::uint64_t flush_done = 0;
  std::uint64_t flush_target = 0;  // of `accepted`: all up to it is to be settled first
  Clock::time_point deadline = Clock::time_point::max();

  // To be called whenever `counts.items` has changed.
  void show() const {
    if (seen_outside) seen_outside->store(counts.items, std::memory_order_relaxed);
  }
  void run();
  void deliver(std::vector<ItemPtr>& batch);
  void settle(std::unique_lock<std::mutex>& lock, std::span<const ItemPtr> items, std::uint64_t QueueCounts::*where);
  void note(const Outcome& outcome);
  void tell(const Outcome& outcome);
  bool flush_is_due() const;
  bool pause(milliseconds time);
};

// `items` leave the queue for good, counted in `where`.
void SinkQueue::State::settle(std::unique_lock<std::mutex>&, std::span<const ItemPtr> items,
                              std::uint64_t QueueCounts::*where) {
  if (counts.abandoned) return;  // stop() has counted them
  std::size_t bytes = 0;
  for (const ItemPtr& item : items) bytes += item->bytes();
  counts.*where += items.size();
  counts.items -= items.size();
  counts.bytes -= bytes;
  in_hand -= items.size();
  show();
}

void SinkQueue::State::note(const Outcome& outcome) {
  if (outcome.error) {
    counts.failing = true;
    ++counts.failures;
    counts.last_error = outcome.error->message();
  } else if (!outcome.retry) {  // else it only waits
    counts.failing = false;
    counts.last_success_unix_ns = base::realtime_ns();
  }
}

// False: time is up, or the queue is closed and there is no sense in waiting.
bool SinkQueue::State::pause(milliseconds time) {
  std::unique_lock lock(mutex);
  const auto until = Clock::now() + time;
  work.wait_until(lock, until, [&] { return closed && deadline <= Clock::now(); });
  return !closed || (deadline > Clock::now() && !counts.abandoned);
}

void SinkQueue::State::deliver(std::vector<ItemPtr>& batch) {
  std::span<const ItemPtr> rest(batch);
  milliseconds back_off = limits.retry_first;
  unsigned tries = 0;
  while (!rest.empty()) {
    Outcome outcome = guarded([&] { return sink->write(rest); });
    const std::size_t sent = std::min(outcome.sent, rest.size());
    const std::size_t refused = std::min(outcome.refused, rest.size() - sent);
    // An outcome that moves nothing and says nothing would come again for ever.
    if (!outcome.error && sent + refused < rest.size() && !outcome.retry)
      outcome.error = base::Error(base::Code::kIo, "sink left items without a reason");
    bool again = false;
    {
      std::unique_lock lock(mutex);
      if (counts.abandoned) return;
      note(outcome);
      settle(lock, rest.subspan(0, sent), &QueueCounts::sent);
      settle(lock, rest.subspan(sent, refused), &QueueCounts::dropped_failed);
      rest = rest.subspan(sent + refused);
      if (sent + refused > 0) {
        tries = 0;
        back_off = limits.retry_first;
      }
      // A sink that only waits for its turn uses up no tries.
      const bool waits = outcome.retry && !outcome.error;
      again = outcome.retry && (waits || tries < limits.retries) && !rest.empty();
      if (waits) {
        back_off = milliseconds(1);
      } else if (again) {
        ++tries;
        ++counts.retries;
      } else if (!rest.empty()) {
        // Tries are per item: only the first one has used them up.
        const std::size_t gone = outcome.retry ? 1 : rest.size();
        settle(lock, rest.subspan(0, gone), &QueueCounts::dropped_failed);
        rest = rest.subspan(gone);
        tries = 0;
      }
    }
    if (again && !pause(std::max(back_off, outcome.retry_after))) {
      std::unique_lock lock(mutex);
      settle(lock, rest, &QueueCounts::dropped_closed);
      return;
    }
    if (again) back_off = outcome.error ? std::min(back_off * 2, limits.retry_most) : limits.retry_first;
  }
}

// Told apart from waiting for an empty queue, which may never come.
bool SinkQueue::State::flush_is_due() const {
  return flush_wanted != flush_done && counts.accepted - counts.items >= flush_target;
}

void SinkQueue::State::run() {
  std::vector<ItemPtr> batch;
  while (true) {
    bool reopen_now = false;
    {
      std::unique_lock lock(mutex);
      idle = true;
      work.wait(lock, [&] { return !waiting.empty() || closed || reopen || flush_is_due(); });
      idle = false;
      if (counts.abandoned) break;
      reopen_now = std::exchange(reopen, false);
      const std::size_t take = std::min(waiting.size(), std::max<std::size_t>(limits.batch_items, 1));
      batch.assign(std::make_move_iterator(waiting.begin()),
                   std::make_move_iterator(waiting.begin() + static_cast<std::ptrdiff_t>(take)));
      waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(take));
      in_hand = take;
      if (batch.empty() && !reopen_now && !flush_is_due() && closed) break;
    }
    if (reopen_now) tell(guarded([&] { return Outcome(sink->reopen()); }));
    deliver(batch);
    batch.clear();
    std::unique_lock lock(mutex);
    if (!flush_is_due()) continue;
    const std::uint64_t flush_now = flush_wanted;
    lock.unlock();
    tell(guarded([&] { return Outcome(sink->flush()); }));
    lock.lock();
    flush_done = flush_now;
    done.notify_all();
  }
  tell(guarded([&] { return Outcome(sink->flush()); }));
  std::unique_lock lock(mutex);
  left = true;
  flush_done = flush_wanted;
  done.notify_all();
}

// Of what is not write(): only trouble is news.
void SinkQueue::State::tell(const Outcome& outcome) {
  std::unique_lock lock(mutex);
  if (outcome.error) note(outcome);
}

SinkQueue::SinkQueue(std::unique_ptr<Sink> sink, QueueLimits limits, std::shared_ptr<WaitingCount> waiting)
    : state_(std::make_shared<State>(std::move(sink), limits, std::move(waiting))) {
  // The thread keeps its own share, for the case that it is left behind.
  state_->thread = std::thread([state = state_] {
    // Signals are for the program's own threads; SIGPIPE becomes EPIPE here.
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    ::pthread_setname_np(::pthread_self(), ("sink-" + state->name).substr(0, 15).c_str());
    state->run();
  });
}

SinkQueue::~SinkQueue() {
  stop(milliseconds(2000));
}

bool SinkQueue::push(const ItemPtr& item) {
  State& state = *state_;
  if (item == nullptr || !state.sink->wants(*item)) return true;
  const std::size_t bytes = item->bytes();
  bool wake = false;
  {
    std::unique_lock lock(state.mutex);
    if (state.closed) {
      ++state.counts.rejected_closed;
      return false;
    }
    if (state.counts.items >= state.limits.items || state.counts.bytes + bytes > state.limits.bytes) {
      ++state.counts.dropped_full;
      return false;
    }
    state.waiting.push_back(item);
    ++state.counts.accepted;
    ++state.counts.items;
    state.counts.bytes += bytes;
    state.show();
    wake = std::exchange(state.idle, false);
  }
  if (wake) state.work.notify_one();
  return true;
}

void SinkQueue::request_reopen() {
  std::unique_lock lock(state_->mutex);
  state_->reopen = true;
  state_->work.notify_one();
}

bool SinkQueue::flush(milliseconds limit) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  const std::uint64_t wanted = ++state.flush_wanted;
  state.flush_target = state.counts.accepted;
  state.work.notify_one();
  return state.done.wait_for(lock, limit, [&] { return state.flush_done >= wanted || state.left; });
}

bool SinkQueue::stop(milliseconds limit) {
  State& state = *state_;
  if (!state.thread.joinable()) return counts().dropped_closed == 0;
  {
    std::unique_lock lock(state.mutex);
    state.closed = true;
    state.deadline = Clock::now() + limit;
    state.work.notify_all();
    if (!state.done.wait_until(lock, state.deadline, [&] { return state.left; })) {
      // What waits is not given to the sink any more; what it has, it may finish.
      const auto rest = std::exchange(state.waiting, {});
      std::size_t bytes = 0;
      for (const ItemPtr& item : rest) bytes += item->bytes();
      state.counts.dropped_closed += rest.size();
      state.counts.items -= rest.size();
      state.counts.bytes -= bytes;
      state.show();
      state.work.notify_all();
      lock.unlock();
      state.sink->cancel();
      lock.lock();
      if (!state.done.wait_for(lock, kGrace, [&] { return state.left; })) {
        state.counts.abandoned = true;
        state.counts.dropped_closed += state.counts.items;
        state.counts.items = 0;
        state.counts.bytes = 0;
        state.show();
        lock.unlock();
        state.thread.detach();
        return false;
      }
    }
  }
  state.thread.join();
  return counts().dropped_closed == 0;
}

QueueCounts SinkQueue::counts() const {
  std::unique_lock lock(state_->mutex);
  return state_->counts;
}

const std::string& SinkQueue::name() const {
  return state_->name;
}

const QueueLimits& SinkQueue::limits() const {
  return state_->limits;
}

}  // namespace gpuwatch::sink
