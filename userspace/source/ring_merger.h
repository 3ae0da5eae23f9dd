// SPDX-License-Identifier: Apache-2.0
// RingMerger: reads the per-CPU rings of one consumer, as mapped memory, and
// merges them so that every thread's records stay in order. It knows memory
// only, no device: tests run it on rings of their own. Nothing in a ring is
// believed before it was checked.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "model/loss.h"
#include "model/raw_record.h"

namespace gpuwatch::source {

struct RingView {
  const gpuwatch_ring_producer* producer = nullptr;
  gpuwatch_ring_consumer* consumer = nullptr;
  const std::byte* data = nullptr;  // 2 * ring_bytes, the second half mirrors the first
  std::uint32_t cpu = 0;
};

class RingMerger {
 public:
  using Clock = std::function<std::uint64_t()>;  // CLOCK_MONOTONIC, replaced in tests

  RingMerger(std::vector<RingView> rings, std::uint64_t ring_bytes, Clock clock);

  // Drop-newest rings. Gives back the space of the batch before, then fills
  // `batch` with at most `max_records` views into the rings. A round covers
  // what was committed when it began; at its end comes one empty batch, which
  // is the time to wait for more.
  base::Status next_batch(std::vector<model::RawRecord>& batch, std::size_t max_records);

  // For when nothing more is written: as next_batch, but an empty batch means
  // that the rings are empty. The round in progress may have begun before the
  // last record came, so its end alone says nothing.
  base::Status drain_batch(std::vector<model::RawRecord>& batch, std::size_t max_records);

  // Overwrite rings: copies what they hold now and gives it to `sink` in
  // order. May be repeated; takes nothing out.
  base::Status snapshot(const std::function<base::Status(const model::RawRecord&, model::Bytes)>& sink);

  // From now on space is given back by release_read() only, so that what was
  // read and not yet worked on is still there for another reader of the same
  // rings. `resumed`: an earlier reader took records out, sequences begin in the
  // middle.
  void hold(bool resumed);
  void release_read() { release(); }
  // Some ring has less than half of its space free, because of what is held.
  bool pressed() const;

  // From the producers' counters; where sequence numbers show more loss than
  // those admit, the difference is added to GPUWATCH_LOSS_RING_FULL.
  model::LossCounts lost() const;

 private:
  struct Cursor {
    RingView ring;
    std::uint64_t tail = 0;      // next byte to read
    std::uint64_t head = 0;      // end of what this round may read
    std::uint64_t released = 0;  // tail as the producer knows it
    std::uint64_t next_seq = 0;
    std::uint64_t gaps = 0;
    bool resumed = false;    // the next sequence is not known yet
    model::RawRecord front;  // record at `tail`, where `ready`
    bool ready = false;
  };

  base::Status begin_round();
  base::Status load_front(Cursor& cursor);
  void release();

  std::vector<Cursor> cursors_;
  std::vector<Cursor*> heap_;  // those with a front, earliest first
  std::uint64_t ring_bytes_;
  std::uint64_t limit_ns_ = 0;  // T of the round
  bool in_round_ = false;
  bool holds_ = false;
  Clock clock_;
};

}  // namespace gpuwatch::source
