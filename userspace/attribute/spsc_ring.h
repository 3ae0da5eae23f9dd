// SPDX-License-Identifier: Apache-2.0
// SpscRing: a bounded queue between one producer and one consumer thread.
// Neither side ever waits for the other; full and empty are answers.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace gpuwatch::attribute {

template <typename T>
class SpscRing {
 public:
  explicit SpscRing(std::size_t capacity) : slots_(capacity + 1) {}

  // Producer. False: full, `value` is left alone.
  bool push(T&& value) {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    const std::size_t next = head + 1 == slots_.size() ? 0 : head + 1;
    if (next == tail_.load(std::memory_order_acquire)) return false;  // pairs with pop's release
    slots_[head] = std::move(value);
    head_.store(next, std::memory_order_release);  // pairs with pop's acquire
    return true;
  }

  // Consumer.
  std::optional<T> pop() {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail == head_.load(std::memory_order_acquire)) return std::nullopt;  // pairs with push's release
    std::optional<T> value(std::move(slots_[tail]));
    slots_[tail] = T{};
    tail_.store(tail + 1 == slots_.size() ? 0 : tail + 1, std::memory_order_release);  // pairs with push's acquire
    return value;
  }

 private:
  std::vector<T> slots_;
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) std::atomic<std::size_t> tail_{0};
};

}  // namespace gpuwatch::attribute
