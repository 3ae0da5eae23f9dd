// SPDX-License-Identifier: Apache-2.0
#include "daemon/intake.h"

#include <algorithm>
#include <chrono>

namespace gpuwatch::daemon {

namespace {

constexpr std::size_t kChunkBytes = 256 << 10;
static_assert(kChunkBytes >= GPUWATCH_REC_MAX);
constexpr std::size_t kDropsMax = 4096;
// Definitions may take so much more than the limit, as a divisor of it.
constexpr std::size_t kReserve = 4;

bool defines(const gpuwatch_rec& head) {
  return head.type == GPUWATCH_REC_TASK || head.type == GPUWATCH_REC_CGROUP || head.type == GPUWATCH_REC_STATE;
}

}  // namespace

void Intake::note_drop(std::uint64_t cgroup, std::uint64_t count) {
  if (drops_.size() >= kDropsMax && !drops_.contains(cgroup)) cgroup = 0;
  drops_[cgroup] += count;
}

// The share of a cgroup is what everybody would have if all had the same.
bool Intake::make_room(std::uint64_t cgroup, std::size_t bytes) {
  if (counts_.bytes + bytes <= limit_) return true;
  const Group* own = nullptr;
  if (const auto at = groups_.find(cgroup); at != groups_.end()) own = &at->second;
  const std::size_t active = groups_.size() + (own == nullptr ? 1 : 0);
  const std::size_t share = limit_ / std::max<std::size_t>(active, 1);
  if (own != nullptr && own->bytes + bytes > share) {
    ++counts_.dropped_flood;
    note_drop(cgroup, 1);
    return false;
  }
  while (counts_.bytes + bytes > limit_) {
    auto fattest = groups_.end();
    for (auto at = groups_.begin(); at != groups_.end(); ++at)
      if (!at->second.entries.empty() && (fattest == groups_.end() || at->second.bytes > fattest->second.bytes))
        fattest = at;
    if (fattest == groups_.end() || fattest->first == cgroup || fattest->second.bytes <= share) {
      ++counts_.dropped_full;
      note_drop(cgroup, 1);
      return false;
    }
    // A stretch at once: the look for the fattest is not for each record.
    std::size_t freed = 0;
    std::uint64_t gone = 0;
    Group& group = fattest->second;
    while (!group.entries.empty() && group.bytes > share && freed < limit_ / 16) {
      Entry& entry = entries_[group.entries.back() - first_];
      group.entries.pop_back();
      entry.dropped = true;
      freed += entry.length;
      group.bytes -= entry.length;
      ++gone;
    }
    counts_.bytes -= freed;
    counts_.items -= gone;
    counts_.dropped_flood += gone;
    counts_.evicted += gone;
    note_drop(fattest->first, gone);
  }
  return true;
}

void Intake::push(const std::vector<model::RawRecord>& batch) {
  if (batch.empty()) return;
  {
    const std::lock_guard hold(lock_);
    for (const model::RawRecord& record : batch) {
      const std::size_t length = sizeof record.head + record.payload.size();
      const bool keep = defines(record.head);
      if (keep ? counts_.bytes + length > limit_ + limit_ / kReserve : !make_room(record.head.cgroup_id, length)) {
        if (keep) {
          ++counts_.dropped_full;
          note_drop(record.head.cgroup_id, 1);
        }
        continue;
      }
      if (!chunk_ || chunk_->bytes.size() - chunk_->used < length) {
        chunk_ = std::make_shared<Chunk>();
        chunk_->bytes.resize(kChunkBytes);
      }
      std::byte* to = chunk_->bytes.data() + chunk_->used;
      std::memcpy(to, &record.head, sizeof record.head);
      if (!record.payload.empty()) std::memcpy(to + sizeof record.head, record.payload.data(), record.payload.size());
      Group& group = groups_[record.head.cgroup_id];
      group.bytes += length;
      if (!keep) group.entries.push_back(first_ + entries_.size());
      entries_.push_back({chunk_, static_cast<std::uint32_t>(chunk_->used), static_cast<std::uint32_t>(length),
                          record.head.cgroup_id, false});
      chunk_->used += length;
      counts_.bytes += length;
      ++counts_.items;
      ++counts_.taken;
    }
  }
  wake_.notify_one();
}

bool Intake::wait_for_room() {
  std::unique_lock hold(lock_);
  return room_.wait_for(hold, std::chrono::milliseconds(200),
                        [this] { return counts_.bytes <= limit_ / 2 || closed_; });
}

void Intake::close() {
  {
    const std::lock_guard hold(lock_);
    closed_ = true;
  }
  wake_.notify_one();
}

void Intake::nudge() {
  {
    const std::lock_guard hold(lock_);
    nudged_ = true;
  }
  wake_.notify_one();
}

void Intake::pop(Batch& batch, std::size_t most, std::chrono::milliseconds wait) {
  batch.records.clear();
  batch.chunks.clear();
  batch.ends.clear();
  std::unique_lock hold(lock_);
  working_ = 0;
  wake_.wait_for(hold, wait, [this] { return counts_.items > 0 || closed_ || nudged_; });
  nudged_ = false;
  while (!entries_.empty() && batch.records.size() < most) {
    Entry& entry = entries_.front();
    if (!entry.dropped) {
      const auto record = model::parse_record(model::Bytes(entry.chunk->bytes).subspan(entry.offset, entry.length));
      if (record) batch.records.push_back(*record);
      if (batch.chunks.empty() || batch.chunks.back() != entry.chunk) {
        batch.chunks.push_back(entry.chunk);
        batch.ends.push_back(0);
      }
      batch.ends.back() = entry.offset + entry.length;
      const auto at = groups_.find(entry.cgroup);
      Group& group = at->second;
      group.bytes -= entry.length;
      if (!group.entries.empty() && group.entries.front() == first_) group.entries.pop_front();
      if (group.bytes == 0) groups_.erase(at);
      counts_.bytes -= entry.length;
      --counts_.items;
    }
    entries_.pop_front();
    ++first_;
  }
  working_ = batch.records.size();
  room_.notify_all();
  batch.closed = closed_ && entries_.empty() && batch.records.empty();
}

bool Intake::idle() const {
  const std::lock_guard hold(lock_);
  return counts_.items == 0 && working_ == 0;
}

IntakeCounts Intake::counts() const {
  const std::lock_guard hold(lock_);
  return counts_;
}

void Intake::set_limit(std::size_t bytes) {
  const std::lock_guard hold(lock_);
  limit_ = bytes;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> Intake::worst(std::size_t most) const {
  const std::lock_guard hold(lock_);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> list(drops_.begin(), drops_.end());
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  if (list.size() > most) list.resize(most);
  return list;
}

}  // namespace gpuwatch::daemon
