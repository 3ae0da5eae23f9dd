// SPDX-License-Identifier: Apache-2.0
// SinkQueue: items on their way to one sink, and the thread that takes them
// there. push() never waits for the sink: what finds no room is dropped (the
// newest, so that what is kept has no holes) and counted. A sink that never
// returns is left behind at stop with its thread; nothing of it is freed then.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "sink/sink.h"

namespace gpuwatch::sink {

struct QueueLimits {
  std::size_t items = 65'536;
  std::size_t bytes = 64U << 20;
  std::size_t batch_items = 512;
  std::chrono::milliseconds retry_first{100};    // doubles with each failure in a row,
  std::chrono::milliseconds retry_most{10'000};  // up to this
  unsigned retries = 8;                          // of one item, before it counts as failed
};

// accepted == sent + failed + closed + items, always.
struct QueueCounts {
  std::uint64_t accepted = 0;         // had room
  std::uint64_t sent = 0;             // the sink took it
  std::uint64_t dropped_full = 0;     // had no room; not accepted
  std::uint64_t dropped_failed = 0;   // the sink failed, and tries ran out or made no sense
  std::uint64_t dropped_closed = 0;   // still there, or on its way, when time was up at stop
  std::uint64_t rejected_closed = 0;  // pushed after stop; not accepted
  std::uint64_t retries = 0;          // batches given again
  std::uint64_t failures = 0;         // calls of write() that failed
  std::uint64_t items = 0;            // waiting, and in the sink's hands
  std::uint64_t bytes = 0;
  std::uint64_t last_success_unix_ns = 0;  // 0: never
  bool failing = false;                    // the last call of write() failed
  bool abandoned = false;                  // stop() left the sink behind
  std::string last_error;

  std::uint64_t dropped() const { return dropped_full + dropped_failed + dropped_closed + rejected_closed; }
};

// QueueCounts::items, where somebody outside of this process can see it.
using WaitingCount = std::atomic<std::uint64_t>;

class SinkQueue {
 public:
  explicit SinkQueue(std::unique_ptr<Sink> sink, QueueLimits limits = {},
                     std::shared_ptr<WaitingCount> waiting = nullptr);
  ~SinkQueue();  // as stop(2 s)
  SinkQueue(const SinkQueue&) = delete;
  SinkQueue& operator=(const SinkQueue&) = delete;

  // The item's way begins. False: dropped and counted. An item that the sink
  // does not want is neither. Any thread.
  bool push(const ItemPtr& item);

  // The sink reopens its file before the next batch.
  void request_reopen();

  // Waits until all that was pushed before is sent or failed, and flushed.
  // False: not in that time.
  bool flush(std::chrono::milliseconds limit);

  // Takes no more items, gives the sink those that wait, cancels the sink when
  // time is up and soon after leaves it behind. True: nothing was left.
  bool stop(std::chrono::milliseconds limit);

  QueueCounts counts() const;
  const std::string& name() const;
  const QueueLimits& limits() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace gpuwatch::sink
