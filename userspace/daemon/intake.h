// SPDX-License-Identifier: Apache-2.0
// Intake: records between the thread that reads the kernel's rings and the one
// that works on them. Bounded by bytes. The reader never waits: when there is no
// room, the cgroup that fills most of it loses its newest records, so a flood
// costs itself only. Definitions of processes and cgroups are the last to go.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "model/raw_record.h"

namespace gpuwatch::daemon {

// Bytes of records in a row, each as in the ring. Kept alive by all who use it.
struct Chunk {
  std::vector<std::byte> bytes;
  std::size_t used = 0;
};
using ChunkPtr = std::shared_ptr<Chunk>;

struct IntakeCounts {
  std::uint64_t taken = 0;          // records that had room
  std::uint64_t dropped_flood = 0;  // of a cgroup over its share
  std::uint64_t dropped_full = 0;   // of one within it: nobody else had anything to give
  std::uint64_t evicted = 0;        // of `dropped_flood`: had room at first
  std::uint64_t items = 0;          // waiting
  std::uint64_t bytes = 0;
};

class Intake {
 public:
  explicit Intake(std::size_t limit_bytes) : limit_(limit_bytes) {}

  // The reader's side. Copies the records; the batch may go then.
  void push(const std::vector<model::RawRecord>& batch);
  // For a source that can wait: until half of the room is free, or closed.
  // False: not yet, after a moment.
  bool wait_for_room();
  // Nothing follows.
  void close();

  struct Batch {
    std::vector<model::RawRecord> records;  // point into `chunks`
    std::vector<ChunkPtr> chunks;
    std::vector<std::size_t> ends;  // of each chunk: behind the last record of the batch in it
    bool closed = false;            // and nothing is left
  };
  // The worker has something else to look at: pop() waits no longer, once.
  void nudge();
  // The worker's side: what waits, at most `most` records; waits for some until
  // the time is over. Records of the batch before count as worked off.
  void pop(Batch& batch, std::size_t most, std::chrono::milliseconds wait);

  // All that was pushed is worked off.
  bool idle() const;
  IntakeCounts counts() const;
  void set_limit(std::size_t bytes);
  // Drops by cgroup, the worst first; bounded.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> worst(std::size_t most) const;

 private:
  struct Entry {
    ChunkPtr chunk;
    std::uint32_t offset = 0;
    std::uint32_t length = 0;
    std::uint64_t cgroup = 0;
    bool dropped = false;
  };
  struct Group {
    std::size_t bytes = 0;
    std::deque<std::uint64_t> entries;  // numbers of those that may be dropped
  };

  bool make_room(std::uint64_t cgroup, std::size_t bytes);
  void note_drop(std::uint64_t cgroup, std::uint64_t count);

  mutable std::mutex lock_;
  std::condition_variable wake_, room_;
  std::size_t limit_;
  std::deque<Entry> entries_;
  std::uint64_t first_ = 0;  // number of entries_.front()
  std::unordered_map<std::uint64_t, Group> groups_;
  ChunkPtr chunk_;
  IntakeCounts counts_;
  std::uint64_t working_ = 0;  // in the worker's hands
  std::unordered_map<std::uint64_t, std::uint64_t> drops_;
  bool closed_ = false;
  bool nudged_ = false;
};

}  // namespace gpuwatch::daemon
