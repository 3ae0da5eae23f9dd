// SPDX-License-Identifier: Apache-2.0
// What is pushed is sent, failed, closed or dropped, and counted as one of
// these, whatever the sink does: nothing, never return, fail, throw.
#include "sink/queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace gpuwatch::sink {
namespace {

using namespace std::chrono_literals;
using Batch = std::span<const ItemPtr>;

ItemPtr item(const std::string& json = "{}", ItemKind kind = ItemKind::kEvent) {
  auto made = std::make_shared<Item>();
  made->json = json;
  made->kind = kind;
  return made;
}

// What the test and its sinks share; outlives a sink that is left behind.
struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> seen;
  unsigned calls = 0;
  unsigned flushes = 0;
  unsigned reopens = 0;
  bool gate_open = true;
  bool inside = false;
  bool cancelled = false;

  void open_gate() {
    std::unique_lock lock(mutex);
    gate_open = true;
    changed.notify_all();
  }
  // The sink's thread is in write() and waits there.
  void await_inside() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return inside; });
  }
  void pass_gate() {
    std::unique_lock lock(mutex);
    inside = true;
    changed.notify_all();
    changed.wait(lock, [&] { return gate_open; });
    inside = false;
  }
  void keep(Batch batch) {
    std::unique_lock lock(mutex);
    for (const ItemPtr& one : batch) seen.push_back(one->json);
  }
};

class TestSink : public Sink {
 public:
  using Write = std::function<Outcome(Shared&, Batch)>;
  TestSink(std::shared_ptr<Shared> shared, Write write) : shared_(std::move(shared)), write_(std::move(write)) {}
  std::string_view name() const override { return "test"; }
  bool wants(const Item& one) const override { return one.kind != ItemKind::kLoss; }
  Outcome write(Batch batch) override {
    {
      std::unique_lock lock(shared_->mutex);
      ++shared_->calls;
    }
    return write_(*shared_, batch);
  }
  base::Status flush() override {
    std::unique_lock lock(shared_->mutex);
    ++shared_->flushes;
    return {};
  }
  base::Status reopen() override {
    std::unique_lock lock(shared_->mutex);
    ++shared_->reopens;
    return {};
  }
  void cancel() override {
    std::unique_lock lock(shared_->mutex);
    shared_->cancelled = true;
  }

 private:
  std::shared_ptr<Shared> shared_;
  Write write_;
};

std::unique_ptr<Sink> sink_of(const std::shared_ptr<Shared>& shared, TestSink::Write write) {
  return std::make_unique<TestSink>(shared, std::move(write));
}

Outcome take(Shared& shared, Batch batch) {
  shared.keep(batch);
  return Outcome::all();
}

Outcome gated(Shared& shared, Batch batch) {
  shared.pass_gate();
  return take(shared, batch);
}

base::Error trouble() {
  return {base::Code::kIo, "no luck"};
}

void expect_whole(const QueueCounts& counts) {
  EXPECT_EQ(counts.accepted, counts.sent + counts.dropped_failed + counts.dropped_closed + counts.items);
}

TEST(SinkQueue, DeliversInOrder) {
  auto shared = std::make_shared<Shared>();
  SinkQueue queue(sink_of(shared, take));
  EXPECT_EQ(queue.name(), "test");
  for (int i = 0; i < 5000; ++i) EXPECT_TRUE(queue.push(item(std::to_string(i))));
  EXPECT_TRUE(queue.push(item("x", ItemKind::kLoss)));  // not wanted: neither sent nor dropped
  EXPECT_TRUE(queue.flush(10s));
  EXPECT_EQ(shared->flushes, 1U);
  EXPECT_TRUE(queue.stop(10s));
  ASSERT_EQ(shared->seen.size(), 5000U);
  for (int i = 0; i < 5000; ++i) EXPECT_EQ(shared->seen[static_cast<std::size_t>(i)], std::to_string(i));
  const QueueCounts counts = queue.counts();
  EXPECT_EQ(counts.sent, 5000U);
  EXPECT_EQ(counts.dropped(), 0U);
  EXPECT_EQ(counts.bytes, 0U);
  EXPECT_GT(counts.last_success_unix_ns, 0U);
  expect_whole(counts);
  EXPECT_FALSE(queue.push(item()));
  EXPECT_EQ(queue.counts().rejected_closed, 1U);
}

TEST(SinkQueue, ManyProducers) {
  auto shared = std::make_shared<Shared>();
  SinkQueue queue(sink_of(shared, take), {.items = 1 << 20});
  std::vector<std::thread> producers;
  for (int p = 0; p < 4; ++p)
    producers.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) queue.push(item());
    });
  for (std::thread& producer : producers) producer.join();
  EXPECT_TRUE(queue.stop(30s));
  EXPECT_EQ(queue.counts().sent, 20'000U);
}

TEST(SinkQueue, FullByItemsDropsTheNewest) {
  auto shared = std::make_shared<Shared>();
  shared->gate_open = false;
  SinkQueue queue(sink_of(shared, gated), {.items = 10});
  queue.push(item("0"));
  shared->await_inside();
  for (int i = 1; i < 100; ++i) queue.push(item(std::to_string(i)));
  EXPECT_EQ(queue.counts().dropped_full, 90U);  // the one in the sink's hands takes room too
  EXPECT_EQ(queue.counts().items, 10U);
  shared->open_gate();
  EXPECT_TRUE(queue.stop(10s));
  const std::vector<std::string> first = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  EXPECT_EQ(shared->seen, first);
  expect_whole(queue.counts());
}

TEST(SinkQueue, FullByBytes) {
  auto shared = std::make_shared<Shared>();
  shared->gate_open = false;
  SinkQueue queue(sink_of(shared, gated), {.bytes = 10'000});
  queue.push(item("0"));
  shared->await_inside();
  EXPECT_TRUE(queue.push(item(std::string(8000, 'x'))));
  EXPECT_FALSE(queue.push(item(std::string(8000, 'y'))));
  EXPECT_TRUE(queue.push(item("small")));
  EXPECT_EQ(queue.counts().dropped_full, 1U);
  EXPECT_LE(queue.counts().bytes, 10'000U);
  shared->open_gate();
  EXPECT_TRUE(queue.stop(10s));
  EXPECT_EQ(queue.counts().sent, 3U);
}

TEST(SinkQueue, ASinkThatNeverReturnsIsLeftBehind) {
  auto stuck = std::make_shared<Shared>();
  auto well = std::make_shared<Shared>();
  stuck->gate_open = false;
  {
    SinkQueue dead(sink_of(stuck, gated), {.items = 100, .batch_items = 1});
    SinkQueue alive(sink_of(well, take));
    for (int i = 0; i < 1000; ++i) {
      dead.push(item(std::to_string(i)));
      alive.push(item(std::to_string(i)));
    }
    stuck->await_inside();
    EXPECT_TRUE(alive.stop(10s));
    EXPECT_EQ(alive.counts().sent, 1000U);
    EXPECT_FALSE(dead.stop(10ms));
    EXPECT_TRUE(stuck->cancelled);
    const QueueCounts counts = dead.counts();
    EXPECT_TRUE(counts.abandoned);
    EXPECT_EQ(counts.sent, 0U);
    EXPECT_EQ(counts.dropped_closed, 100U);
    EXPECT_EQ(counts.dropped_full, 900U);
    expect_whole(counts);
  }
  // It comes back after its queue is gone, and finds what it needs.
  stuck->open_gate();
  while (stuck.use_count() > 1) std::this_thread::yield();
  EXPECT_EQ(stuck->calls, 1U);
}

TEST(SinkQueue, ACancelledSinkFinishesWhatItHas) {
  auto shared = std::make_shared<Shared>();
  SinkQueue queue(sink_of(shared,
                          [](Shared& mine, Batch batch) {
                            while (true) {
                              {
                                std::unique_lock lock(mine.mutex);
                                mine.inside = true;
                                mine.changed.notify_all();
                                if (mine.cancelled) break;
                              }
                              std::this_thread::yield();
                            }
                            return take(mine, batch);
                          }),
                  {.batch_items = 1});
  for (int i = 0; i < 3; ++i) queue.push(item());
  shared->await_inside();
  EXPECT_FALSE(queue.stop(1ms));
  EXPECT_FALSE(queue.counts().abandoned);
  EXPECT_EQ(queue.counts().sent, 1U);
  EXPECT_EQ(queue.counts().dropped_closed, 2U);
  expect_whole(queue.counts());
}

TEST(SinkQueue, FailureForGoodIsNotTriedAgain) {
  auto shared = std::make_shared<Shared>();
  SinkQueue queue(sink_of(shared, [](Shared&, Batch) { return Outcome(base::Status(trouble())); }), {.batch_items = 1});
  for (int i = 0; i < 7; ++i) queue.push(item());
  EXPECT_TRUE(queue.flush(10s));
  const QueueCounts counts = queue.counts();
  EXPECT_EQ(counts.dropped_failed, 7U);
  EXPECT_EQ(counts.failures, 7U);
  EXPECT_EQ(counts.retries, 0U);
  EXPECT_TRUE(counts.failing);
  EXPECT_EQ(counts.last_error, "no luck");
  expect_whole(counts);
}

TEST(SinkQueue, RetriesOnlyTheRest) {
  auto shared = std::make_shared<Shared>();
  // Each call takes one item and asks for another chance.
  SinkQueue queue(sink_of(shared,
                          [](Shared& mine, Batch batch) {
                            mine.keep(batch.subspan(0, 1));
                            return batch.size() == 1 ? Outcome::all() : Outcome::again(trouble(), 1);
                          }),
                  {.retry_first = 1ms, .retries = 1});
  for (int i = 0; i < 9; ++i) queue.push(item(std::to_string(i)));
  EXPECT_TRUE(queue.stop(10s));
  ASSERT_EQ(shared->seen.size(), 9U);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(shared->seen[static_cast<std::size_t>(i)], std::to_string(i));
  EXPECT_EQ(queue.counts().dropped_failed, 0U);
}

TEST(SinkQueue, TriesOfAnItemRunOut) {
  auto shared = std::make_shared<Shared>();
  // "bad" never goes through; what is behind it does.
  SinkQueue queue(sink_of(shared,
                          [](Shared& mine, Batch batch) {
                            if (batch[0]->json == "bad") return Outcome::again(trouble());
                            mine.keep(batch.subspan(0, 1));
                            Outcome outcome = Outcome::again(trouble(), 1);
                            outcome.retry_after = 1ms;
                            return outcome;
                          }),
                  {.retry_first = 1ms, .retry_most = 2ms, .retries = 3});
  for (const char* json : {"a", "bad", "b"}) queue.push(item(json));
  EXPECT_TRUE(queue.flush(10s));
  EXPECT_EQ(queue.counts().sent, 2U);
  EXPECT_EQ(queue.counts().dropped_failed, 1U);
  EXPECT_EQ(shared->seen, (std::vector<std::string>{"a", "b"}));
  expect_whole(queue.counts());
}

// A sink that waits for its rate limit has not failed, and uses up no tries.
TEST(SinkQueue, WaitingIsNoFailure) {
  auto shared = std::make_shared<Shared>();
  std::atomic<int> turn = 0;
  SinkQueue queue(sink_of(shared,
                          [&turn](Shared& mine, Batch batch) {
                            if (turn++ % 20 != 19) return Outcome::wait(1ms);
                            return take(mine, batch);
                          }),
                  {.batch_items = 1, .retries = 2});
  for (int i = 0; i < 3; ++i) queue.push(item(std::to_string(i)));
  EXPECT_TRUE(queue.flush(20s));
  const QueueCounts counts = queue.counts();
  EXPECT_EQ(counts.sent, 3U);
  EXPECT_EQ(counts.failures, 0U);
  EXPECT_EQ(counts.retries, 0U);
  EXPECT_FALSE(counts.failing);
}

TEST(SinkQueue, StopEndsALongBackOff) {
  auto shared = std::make_shared<Shared>();
  SinkQueue queue(sink_of(shared,
                          [](Shared& mine, Batch) {
                            mine.pass_gate();
                            Outcome outcome = Outcome::again(trouble());
                            outcome.retry_after = 1h;
                            return outcome;
                          }),
                  {});
  queue.push(item());
  while (queue.counts().failures == 0) std::this_thread::yield();
  EXPECT_FALSE(queue.stop(5ms));
  EXPECT_FALSE(queue.counts().abandoned);
  EXPECT_EQ(queue.counts().dropped_closed, 1U);
  expect_whole(queue.counts());
}

TEST(SinkQueue, GarbageThrownOrReturnedHarmsNobody) {
  auto shared = std::make_shared<Shared>();
  std::atomic<int> turn = 0;
  SinkQueue queue(sink_of(shared,
                          [&turn](Shared&, Batch) -> Outcome {
                            Outcome odd;
                            switch (turn++) {
                              case 0:
                                throw 42;
                              case 1:
                                throw std::runtime_error("oh");
                              case 2:  // more than there were
                                odd.sent = 1'000'000;
                                odd.refused = Outcome::kAll;
                                return odd;
                              case 3:  // nothing, and no reason
                                return odd;
                              case 4:
                                odd.refused = Outcome::kAll;
                                return odd;
                              default:
                                return Outcome::all();
                            }
                          }),
                  {.batch_items = 1});
  for (int i = 0; i < 6; ++i) queue.push(item());
  EXPECT_TRUE(queue.stop(10s));
  const QueueCounts counts = queue.counts();
  EXPECT_EQ(counts.sent, 2U);
  EXPECT_EQ(counts.dropped_failed, 4U);
  EXPECT_EQ(counts.last_error, "sink left items without a reason");
  expect_whole(counts);
}

TEST(SinkQueue, Reopen) {
  auto shared = std::make_shared<Shared>();
  SinkQueue queue(sink_of(shared, take));
  queue.request_reopen();
  queue.push(item());
  EXPECT_TRUE(queue.flush(10s));
  EXPECT_EQ(shared->reopens, 1U);
  EXPECT_TRUE(queue.stop(1s));
  EXPECT_TRUE(queue.stop(1s));  // again: nothing happens
}

TEST(SinkQueue, FlushDoesNotWaitLongerThanItsLimit) {
  auto shared = std::make_shared<Shared>();
  shared->gate_open = false;
  SinkQueue queue(sink_of(shared, gated));
  queue.push(item());
  EXPECT_FALSE(queue.flush(5ms));
  shared->open_gate();
  EXPECT_TRUE(queue.flush(10s));
}

// The queue is never empty, and flush() still ends.
TEST(SinkQueue, FlushUnderAProducerThatNeverRests) {
  auto shared = std::make_shared<Shared>();
  SinkQueue queue(sink_of(shared,
                          [](Shared&, Batch) {
                            std::this_thread::yield();
                            return Outcome::all();
                          }),
                  {.items = 1000, .batch_items = 1});
  std::atomic<bool> ended = false;
  std::thread producer([&] {
    while (!ended) queue.push(item());
  });
  while (queue.counts().dropped_full == 0) std::this_thread::yield();
  EXPECT_TRUE(queue.flush(30s));
  ended = true;
  producer.join();
}

}  // namespace
}  // namespace gpuwatch::sink
