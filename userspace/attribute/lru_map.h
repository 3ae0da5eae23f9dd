// SPDX-License-Identifier: Apache-2.0
// LruMap: a hash map with a bound; when full, the least recently used entry
// goes. Values keep their address until they are evicted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace gpuwatch::attribute {

template <typename Key, typename Value, typename Hash>
class LruMap {
 public:
  explicit LruMap(std::size_t limit) : limit_(limit == 0 ? 1 : limit) {}

  // nullptr where the key is not known; else the entry becomes the newest.
  Value* find(const Key& key) {
    const auto at = index_.find(key);
    if (at == index_.end()) return nullptr;
    order_.splice(order_.begin(), order_, at->second);
    return &at->second->second;
  }

  Value& insert_or_get(const Key& key) {
    if (Value* known = find(key)) return *known;
    if (order_.size() >= limit_) {
      index_.erase(order_.back().first);
      order_.pop_back();
      ++evicted_;
    }
    order_.emplace_front(std::piecewise_construct, std::forward_as_tuple(key), std::forward_as_tuple());
    index_.emplace(key, order_.begin());
    return order_.front().second;
  }

  std::size_t size() const { return order_.size(); }
  std::uint64_t evicted() const { return evicted_; }

 private:
  using Order = std::list<std::pair<Key, Value>>;
  std::size_t limit_;
  Order order_;
  std::unordered_map<Key, typename Order::iterator, Hash> index_;
  std::uint64_t evicted_ = 0;
};

}  // namespace gpuwatch::attribute
