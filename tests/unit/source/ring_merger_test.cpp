// SPDX-License-Identifier: Apache-2.0
// Unit tests of RingMerger on rings in plain memory: order over CPUs, wrap,
// what a bad kernel could write, snapshots, and a writer that runs along.
#include "source/ring_merger.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "unit/support.h"

namespace gpuwatch::source {
namespace {

using test::Blob;

// One ring as the kernel keeps it: data mapped twice, drop-newest or overwrite.
class FakeRing {
 public:
  explicit FakeRing(std::uint32_t cpu, std::uint64_t bytes = 4096) : cpu_(cpu), bytes_(bytes) {
    const int fd = ::memfd_create("ring", MFD_CLOEXEC);
    EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(bytes)), 0);
    void* area = ::mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    data_ = static_cast<std::byte*>(area);
    for (int half = 0; half < 2; ++half)
      EXPECT_NE(::mmap(data_ + static_cast<std::uint64_t>(half) * bytes, bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_FIXED, fd, 0),
                MAP_FAILED);
    ::close(fd);
  }
  FakeRing(const FakeRing&) = delete;
  FakeRing& operator=(const FakeRing&) = delete;
  ~FakeRing() { ::munmap(data_, 2 * bytes_); }

  RingView view() { return {&producer, &consumer, data_, cpu_}; }

  bool put(std::uint64_t time_ns, std::uint32_t tid, std::size_t filler = 0) {
    gpuwatch_rec head = test::make_head(GPUWATCH_REC_RELEASE, time_ns, tid);
    head.seq = producer.next_seq;
    head.cpu = cpu_;
    const Blob record = test::finish_record(head, Blob(8 + filler));
    __atomic_store_n(&producer.next_seq, producer.next_seq + 1, __ATOMIC_RELAXED);
    const std::uint64_t tail = __atomic_load_n(&consumer.tail, __ATOMIC_ACQUIRE);
    if (!overwrite && producer.head - tail + record.size() > bytes_) {
      __atomic_store_n(&producer.lost[GPUWATCH_LOSS_RING_FULL], producer.lost[GPUWATCH_LOSS_RING_FULL] + 1,
                       __ATOMIC_RELAXED);
      return false;
    }
    while (overwrite && producer.head - producer.oldest + record.size() > bytes_) {
      producer.oldest += model::parse_record(model::Bytes(data_ + producer.oldest % bytes_, bytes_))->head.len;
      ++producer.lost[GPUWATCH_LOSS_OVERWRITTEN];
    }
    std::memcpy(data_ + producer.head % bytes_, record.data(), record.size());
    __atomic_store_n(&producer.head, producer.head + record.size(), __ATOMIC_RELEASE);
    return true;
  }

  std::byte* at(std::uint64_t position) { return data_ + position % bytes_; }

  gpuwatch_ring_producer producer{};
  gpuwatch_ring_consumer consumer{};
  bool overwrite = false;

 private:
  std::uint32_t cpu_;
  std::uint64_t bytes_;
  std::byte* data_ = nullptr;
};

std::vector<std::uint64_t> times(const std::vector<model::RawRecord>& batch) {
  std::vector<std::uint64_t> out;
  for (const auto& record : batch) out.push_back(record.head.time_ns);
  return out;
}

using Times = std::vector<std::uint64_t>;

TEST(RingMerger, MergesByTimeAndHoldsBackWhatIsLater) {
  FakeRing a(0);
  FakeRing b(1);
  std::uint64_t now = 50;
  RingMerger merger({a.view(), b.view()}, 4096, [&] { return now; });
  a.put(10, 1);
  a.put(40, 1);
  a.put(60, 1);  // stamped after T: must wait for the next round
  b.put(20, 1);
  b.put(30, 2);
  std::vector<model::RawRecord> batch;
  ASSERT_TRUE(merger.next_batch(batch, 100).ok());
  EXPECT_EQ(times(batch), (Times{10, 20, 30, 40}));
  ASSERT_TRUE(merger.next_batch(batch, 100).ok());
  EXPECT_TRUE(batch.empty());
  now = 100;
  b.put(55, 3);
  ASSERT_TRUE(merger.next_batch(batch, 100).ok());
  EXPECT_EQ(times(batch), (Times{55, 60}));
}

TEST(RingMerger, ARoundEndsWhereItBegan) {
  FakeRing a(0);
  RingMerger merger({a.view()}, 4096, [] { return std::uint64_t{1000}; });
  for (std::uint64_t i = 0; i < 5; ++i) a.put(i, 1);
  std::vector<model::RawRecord> batch;
  ASSERT_TRUE(merger.next_batch(batch, 2).ok());
  EXPECT_EQ(times(batch), (Times{0, 1}));
  a.put(5, 1);  // came after the round began
  ASSERT_TRUE(merger.next_batch(batch, 10).ok());
  EXPECT_EQ(times(batch), (Times{2, 3, 4}));
  ASSERT_TRUE(merger.next_batch(batch, 10).ok());
  EXPECT_TRUE(batch.empty());
  ASSERT_TRUE(merger.next_batch(batch, 10).ok());
  EXPECT_EQ(times(batch), (Times{5}));
}

TEST(RingMerger, DrainingReadsWhatCameDuringTheRound) {
  FakeRing a(0);
  RingMerger merger({a.view()}, 4096, [] { return std::uint64_t{1000}; });
  a.put(0, 1);
  std::vector<model::RawRecord> batch;
  ASSERT_TRUE(merger.next_batch(batch, 10).ok());
  EXPECT_EQ(times(batch), (Times{0}));
  a.put(1, 1);  // the last one, after the round began and before its end was read
  ASSERT_TRUE(merger.drain_batch(batch, 10).ok());
  EXPECT_EQ(times(batch), (Times{1}));
  ASSERT_TRUE(merger.drain_batch(batch, 10).ok());
  EXPECT_TRUE(batch.empty());
}

TEST(RingMerger, SpaceIsGivenBackOnlyAfterTheBatch) {
  FakeRing a(0);
  RingMerger merger({a.view()}, 4096, [] { return std::uint64_t{1000}; });
  a.put(1, 1);
  std::vector<model::RawRecord> batch;
  ASSERT_TRUE(merger.next_batch(batch, 10).ok());
  EXPECT_EQ(a.consumer.tail, 0u);
  ASSERT_TRUE(merger.next_batch(batch, 10).ok());
  EXPECT_EQ(a.consumer.tail, a.producer.head);
}

TEST(RingMerger, WhatIsHeldIsThereForTheNextReader) {
  FakeRing ring(0);
  for (std::uint64_t i = 1; i <= 10; ++i) ASSERT_TRUE(ring.put(i, 1));
  std::vector<model::RawRecord> batch;
  {
    RingMerger first({ring.view()}, 4096, [] { return std::uint64_t{100}; });
    first.hold(false);
    ASSERT_TRUE(first.next_batch(batch, 4).ok());
    first.release_read();  // 1 to 4 are worked off
    ASSERT_TRUE(first.next_batch(batch, 3).ok());
    EXPECT_EQ(times(batch), (std::vector<std::uint64_t>{5, 6, 7}));
    ASSERT_TRUE(first.next_batch(batch, 1).ok());
    EXPECT_FALSE(first.pressed());
  }
  RingMerger second({ring.view()}, 4096, [] { return std::uint64_t{100}; });
  second.hold(true);
  ASSERT_TRUE(second.next_batch(batch, 100).ok());
  EXPECT_EQ(times(batch), (std::vector<std::uint64_t>{5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(second.lost().total(), 0u) << "sequences that begin in the middle are no loss";
}

TEST(RingMerger, HoldingTooMuchIsSeen) {
  FakeRing ring(0);
  std::uint64_t count = 0;
  while (ring.put(++count, 1)) {
  }
  RingMerger merger({ring.view()}, 4096, [] { return std::uint64_t{1000}; });
  merger.hold(false);
  std::vector<model::RawRecord> batch;
  EXPECT_FALSE(merger.pressed()) << "nothing is held yet";
  ASSERT_TRUE(merger.next_batch(batch, 1000).ok());
  EXPECT_TRUE(merger.pressed());
  merger.release_read();
  EXPECT_FALSE(merger.pressed());
  EXPECT_TRUE(ring.put(count + 1, 1));
}

TEST(RingMerger, RecordsOverTheEndOfTheRingAreWhole) {
  FakeRing a(0);
  RingMerger merger({a.view()}, 4096, [] { return ~std::uint64_t{0}; });
  std::vector<model::RawRecord> batch;
  std::uint64_t seen = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(a.put(i, 1, 8 * (i % 50)));
    ASSERT_TRUE(merger.next_batch(batch, 10).ok());
    for (const auto& record : batch) {
      EXPECT_EQ(record.head.time_ns, seen++);
      EXPECT_EQ(record.payload.size(), 8 + 8 * (record.head.time_ns % 50));
    }
    ASSERT_TRUE(merger.next_batch(batch, 10).ok());
  }
  EXPECT_EQ(seen, 1000u);
  EXPECT_EQ(merger.lost().total(), 0u);
}

TEST(RingMerger, LossIsTheProducersCount) {
  FakeRing a(0);
  RingMerger merger({a.view()}, 4096, [] { return ~std::uint64_t{0}; });
  std::uint64_t refused = 0;
  for (std::uint64_t i = 0; i < 100; ++i)
    if (!a.put(i, 1)) ++refused;
  ASSERT_GT(refused, 0u);
  std::vector<model::RawRecord> batch;
  ASSERT_TRUE(merger.next_batch(batch, 1000).ok());
  EXPECT_EQ(batch.size() + refused, 100u);
  EXPECT_EQ(merger.lost().by_reason[GPUWATCH_LOSS_RING_FULL], refused);
}

TEST(RingMerger, GapsShowLossTheCountersDoNotAdmit) {
  FakeRing a(0);
  RingMerger merger({a.view()}, 4096, [] { return ~std::uint64_t{0}; });
  a.put(1, 1);
  a.producer.next_seq += 7;
  a.put(2, 1);
  std::vector<model::RawRecord> batch;
  ASSERT_TRUE(merger.next_batch(batch, 1000).ok());
  EXPECT_EQ(merger.lost().by_reason[GPUWATCH_LOSS_RING_FULL], 7u);
}

TEST(RingMerger, CorruptRingsGiveErrorsThatNameTheCpu) {
  const auto run = [](const std::function<void(FakeRing&)>& harm) {
    FakeRing a(3);
    RingMerger merger({a.view()}, 4096, [] { return ~std::uint64_t{0}; });
    a.put(1, 1);
    a.put(2, 1);
    harm(a);
    std::vector<model::RawRecord> batch;
    const base::Status status = merger.next_batch(batch, 10);
    EXPECT_FALSE(status.ok());
    return status.ok() ? std::string() : status.error().message();
  };
  const auto set_len = [](std::uint32_t len) {
    return [len](FakeRing& ring) { std::memcpy(ring.at(0), &len, sizeof len); };
  };
  for (std::uint32_t len : {0u, 8u, 89u, 0xffffffffu, 65536u, 4096u})
    EXPECT_NE(run(set_len(len)).find("CPU 3"), std::string::npos) << len;
  EXPECT_NE(run([](FakeRing& ring) { ring.producer.head += 4096; }).find("head is at"), std::string::npos);
  EXPECT_NE(run([](FakeRing& ring) { ring.producer.head += 4; }).find("head is at"), std::string::npos);
  EXPECT_NE(run([](FakeRing& ring) { ring.producer.head = ~0ull; }).find("head is at"), std::string::npos);
}

TEST(RingMerger, SnapshotKeepsTheNewest) {
  FakeRing a(0);
  FakeRing b(1);
  a.overwrite = b.overwrite = true;
  RingMerger merger({a.view(), b.view()}, 4096, [] { return ~std::uint64_t{0}; });
  for (std::uint64_t i = 0; i < 1000; ++i) (i % 3 == 0 ? a : b).put(i, 1);
  for (int again = 0; again < 2; ++again) {
    Times seen;
    ASSERT_TRUE(merger
                    .snapshot([&](const model::RawRecord& record, model::Bytes whole) {
                      EXPECT_EQ(whole.size(), record.head.len);
                      seen.push_back(record.head.time_ns);
                      return base::Status();
                    })
                    .ok());
    ASSERT_FALSE(seen.empty());
    EXPECT_EQ(seen.back(), 999u);
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    EXPECT_EQ(seen.size() + merger.lost().by_reason[GPUWATCH_LOSS_OVERWRITTEN], 1000u);
  }
}

// Two writers that never rest, one reader: every thread's records come in
// order and none is seen twice, whatever the timing; what is missing is counted.
TEST(RingMerger, ConcurrentWriters) {
  constexpr std::uint64_t kEach = 30'000;
  FakeRing rings[] = {FakeRing(0, 1 << 16), FakeRing(1, 1 << 16)};
  RingMerger merger({rings[0].view(), rings[1].view()}, 1 << 16, base::monotonic_ns);
  std::atomic<int> running{2};
  std::vector<std::thread> writers;
  for (std::uint32_t cpu = 0; cpu < 2; ++cpu)
    writers.emplace_back([&, cpu] {
      for (std::uint64_t i = 0; i < kEach; ++i) rings[cpu].put(base::monotonic_ns(), cpu, 8 * (i % 20));
      --running;
    });
  std::uint64_t seen = 0;
  std::map<std::uint32_t, std::uint64_t> last_seq;
  std::vector<model::RawRecord> batch;
  bool final_round = false;
  for (;;) {
    ASSERT_TRUE(merger.next_batch(batch, 64).ok());
    if (batch.empty()) {
      if (final_round) break;
      final_round = running == 0;
      continue;
    }
    for (const auto& record : batch) {
      const auto [it, first] = last_seq.try_emplace(record.head.tid, record.head.seq);
      if (!first) {
        ASSERT_GT(record.head.seq, it->second);
      }
      it->second = record.head.seq;
      ++seen;
    }
  }
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(seen + merger.lost().total(), 2 * kEach);
}

}  // namespace
}  // namespace gpuwatch::source
