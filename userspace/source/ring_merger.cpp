// SPDX-License-Identifier: Apache-2.0
#include "source/ring_merger.h"

#include <algorithm>
#include <memory>
#include <string>

namespace gpuwatch::source {

using base::Code;
using base::Error;
using base::Status;

namespace {

std::uint64_t load_acquire(const __u64& field) {
  return __atomic_load_n(&field, __ATOMIC_ACQUIRE);
}
std::uint64_t load_relaxed(const __u64& field) {
  return __atomic_load_n(&field, __ATOMIC_RELAXED);
}

Error corrupt(std::uint32_t cpu, std::uint64_t position, const std::string& what) {
  return Error(Code::kBadInput, "ring of CPU " + std::to_string(cpu) + ", position " + std::to_string(position) + ": " +
                                    what + "; reload the gpuwatch module and report this with `gpuwatch doctor`");
}

}  // namespace

RingMerger::RingMerger(std::vector<RingView> rings, std::uint64_t ring_bytes, Clock clock)
    : ring_bytes_(ring_bytes), clock_(std::move(clock)) {
  cursors_.reserve(rings.size());
  heap_.reserve(rings.size());
  for (const RingView& ring : rings) {
    Cursor cursor;
    cursor.ring = ring;
    if (ring.consumer != nullptr) cursor.tail = cursor.released = load_relaxed(ring.consumer->tail);
    cursors_.push_back(cursor);
  }
}

// Orders a heap whose top is the earliest record; the CPU decides ties, so
// that equal input gives equal output.
static bool later(std::uint64_t time_a, std::uint32_t cpu_a, std::uint64_t time_b, std::uint32_t cpu_b) {
  return time_a != time_b ? time_a > time_b : cpu_a > cpu_b;
}

Status RingMerger::load_front(Cursor& cursor) {
  cursor.ready = false;
  if (cursor.tail == cursor.head) return {};
  const std::uint64_t left = cursor.head - cursor.tail;
  const model::Bytes bytes(cursor.ring.data + cursor.tail % ring_bytes_, left);
  const auto record = model::parse_record(bytes);
  if (!record) return corrupt(cursor.ring.cpu, cursor.tail, "a record has a bad length");
  cursor.front = *record;
  cursor.ready = true;
  return {};
}

Status RingMerger::begin_round() {
  // The clock first, then the heads: see "Order" in linux/gpuwatch.h.
  limit_ns_ = clock_();
  heap_.clear();
  for (Cursor& cursor : cursors_) {
    // Acquire, partner of the kernel's release of head: the records before it
    // are whole.
    const std::uint64_t head = load_acquire(cursor.ring.producer->head);
    if (head < cursor.tail || head - cursor.tail > ring_bytes_ || head % 8 != 0)
      return corrupt(cursor.ring.cpu, cursor.tail, "head is at " + std::to_string(head));
    cursor.head = head;
    if (Status status = load_front(cursor); !status.ok()) return status;
    if (cursor.ready && cursor.front.head.time_ns <= limit_ns_) heap_.push_back(&cursor);
  }
  const auto order = [](const Cursor* a, const Cursor* b) {
    return later(a->front.head.time_ns, a->ring.cpu, b->front.head.time_ns, b->ring.cpu);
  };
  std::make_heap(heap_.begin(), heap_.end(), order);
  in_round_ = true;
  return {};
}

void RingMerger::hold(bool resumed) {
  holds_ = true;
  for (Cursor& cursor : cursors_) cursor.resumed = resumed;
}

bool RingMerger::pressed() const {
  for (const Cursor& cursor : cursors_)
    if (cursor.tail - cursor.released > ring_bytes_ / 4 &&
        load_relaxed(cursor.ring.producer->head) - cursor.released > ring_bytes_ / 2)
      return true;
  return false;
}

void RingMerger::release() {
  for (Cursor& cursor : cursors_) {
    if (cursor.released == cursor.tail) continue;
    // Release, partner of the kernel's acquire of tail: it may overwrite these
    // bytes only after we have read them.
    __atomic_store_n(&cursor.ring.consumer->tail, cursor.tail, __ATOMIC_RELEASE);
    cursor.released = cursor.tail;
  }
}

Status RingMerger::next_batch(std::vector<model::RawRecord>& batch, std::size_t max_records) {
  batch.clear();
  if (!holds_) release();
  if (!in_round_) {
    if (Status status = begin_round(); !status.ok()) return status;
  }
  const auto order = [](const Cursor* a, const Cursor* b) {
    return later(a->front.head.time_ns, a->ring.cpu, b->front.head.time_ns, b->ring.cpu);
  };
  while (!heap_.empty() && batch.size() < max_records) {
    std::pop_heap(heap_.begin(), heap_.end(), order);
    Cursor& cursor = *heap_.back();
    const std::uint64_t seq = cursor.front.head.seq;
    if (cursor.resumed)
      cursor.resumed = false;
    else if (seq > cursor.next_seq)
      cursor.gaps += seq - cursor.next_seq;
    cursor.next_seq = seq + 1;
    batch.push_back(cursor.front);
    cursor.tail += cursor.front.head.len;
    if (Status status = load_front(cursor); !status.ok()) return status;
    if (cursor.ready && cursor.front.head.time_ns <= limit_ns_)
      std::push_heap(heap_.begin(), heap_.end(), order);
    else
      heap_.pop_back();
  }
  if (heap_.empty() && batch.empty()) in_round_ = false;
  return {};
}

Status RingMerger::drain_batch(std::vector<model::RawRecord>& batch, std::size_t max_records) {
  Status status = next_batch(batch, max_records);
  if (!status.ok() || !batch.empty()) return status;
  return next_batch(batch, max_records);
}

Status RingMerger::snapshot(const std::function<Status(const model::RawRecord&, model::Bytes)>& sink) {
  struct Copy {
    std::vector<std::byte> bytes;
    std::size_t at = 0;
    model::RawRecord front;
    std::uint32_t cpu = 0;
  };
  std::vector<std::unique_ptr<Copy>> copies;
  for (const Cursor& cursor : cursors_) {
    const gpuwatch_ring_producer& producer = *cursor.ring.producer;
    const std::uint64_t head = load_acquire(producer.head);
    const std::uint64_t first = load_acquire(producer.oldest);
    if (first > head) continue;  // overtaken between the two loads
    if (head - first > ring_bytes_) return corrupt(cursor.ring.cpu, first, "head is at " + std::to_string(head));
    auto copy = std::make_unique<Copy>();
    copy->cpu = cursor.ring.cpu;
    const std::byte* from = cursor.ring.data + first % ring_bytes_;
    copy->bytes.assign(from, from + (head - first));
    // The copy must be done before `oldest` is looked at again; partner of the
    // kernel's store of oldest before it replaces bytes.
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    const std::uint64_t oldest = load_relaxed(producer.oldest);
    if (oldest >= head) continue;
    copy->at = oldest - first;
    copies.push_back(std::move(copy));
  }

  const auto order = [](const std::unique_ptr<Copy>& a, const std::unique_ptr<Copy>& b) {
    return later(a->front.head.time_ns, a->cpu, b->front.head.time_ns, b->cpu);
  };
  std::vector<std::unique_ptr<Copy>> heap;
  const auto advance = [&](std::unique_ptr<Copy> copy) -> Status {
    if (copy->at == copy->bytes.size()) return {};
    const auto record = model::parse_record(model::Bytes(copy->bytes).subspan(copy->at));
    if (!record) return corrupt(copy->cpu, copy->at, "a record of the snapshot has a bad length");
    copy->front = *record;
    heap.push_back(std::move(copy));
    std::push_heap(heap.begin(), heap.end(), order);
    return {};
  };
  for (auto& copy : copies)
    if (Status status = advance(std::move(copy)); !status.ok()) return status;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), order);
    std::unique_ptr<Copy> copy = std::move(heap.back());
    heap.pop_back();
    const model::Bytes whole = model::Bytes(copy->bytes).subspan(copy->at, copy->front.head.len);
    if (Status status = sink(copy->front, whole); !status.ok()) return status;
    copy->at += copy->front.head.len;
    if (Status status = advance(std::move(copy)); !status.ok()) return status;
  }
  return {};
}

model::LossCounts RingMerger::lost() const {
  model::LossCounts lost;
  for (const Cursor& cursor : cursors_) {
    model::LossCounts ring;
    for (std::size_t i = 0; i < ring.by_reason.size(); ++i)
      ring.by_reason[i] = load_relaxed(cursor.ring.producer->lost[i]);
    const std::uint64_t admitted = ring.total();
    if (cursor.gaps > admitted) ring.by_reason[GPUWATCH_LOSS_RING_FULL] += cursor.gaps - admitted;
    lost += ring;
  }
  return lost;
}

}  // namespace gpuwatch::source
