// SPDX-License-Identifier: Apache-2.0
// IndexMap and Slab: the two containers of the object tree. IndexMap finds a
// number by a 64-bit key in one probe or two; Slab keeps things at fixed places
// and hands out their numbers, 0 for none. Keys are chosen by strangers, so
// their hash has a secret in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace gpuwatch::decode {

// A number nobody outside can know, the same for the life of the program.
std::uint64_t hash_secret();

inline std::uint64_t mix_key(std::uint64_t key, std::uint64_t secret) {
  key ^= secret;
  key = (key ^ (key >> 33)) * 0xFF51AFD7ED558CCDULL;
  key = (key ^ (key >> 33)) * 0xC4CEB9FE1A85EC53ULL;
  return key ^ (key >> 33);
}

class IndexMap {
 public:
  // 0 when there is none.
  std::uint32_t find(std::uint64_t key) const {
    if (size_ == 0) return 0;
    for (std::size_t at = mix_key(key, secret_) & mask_; values_[at] != 0; at = (at + 1) & mask_)
      if (keys_[at] == key) return values_[at];
    return 0;
  }
  // `value` is not 0; replaces what the key had.
  void set(std::uint64_t key, std::uint32_t value) {
    if ((size_ + 1) * 3 > values_.size() * 2) resize(values_.size() < 16 ? 16 : values_.size() * 2);
    std::size_t at = mix_key(key, secret_) & mask_;
    while (values_[at] != 0 && keys_[at] != key) at = (at + 1) & mask_;
    size_ += values_[at] == 0;
    keys_[at] = key;
    values_[at] = value;
  }
  void erase(std::uint64_t key) {
    if (size_ == 0) return;
    std::size_t at = mix_key(key, secret_) & mask_;
    while (values_[at] != 0 && keys_[at] != key) at = (at + 1) & mask_;
    if (values_[at] == 0) return;
    // Close the gap: what could have stood here moves up.
    for (std::size_t next = (at + 1) & mask_; values_[next] != 0; next = (next + 1) & mask_) {
      const std::size_t home = mix_key(keys_[next], secret_) & mask_;
      if (((next - home) & mask_) < ((next - at) & mask_)) continue;
      keys_[at] = keys_[next];
      values_[at] = values_[next];
      at = next;
    }
    values_[at] = 0;
    --size_;
    if (values_.size() > 64 && size_ * 8 < values_.size()) resize(values_.size() / 2);
  }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return values_.size() * (sizeof(std::uint64_t) + sizeof(std::uint32_t)); }

 private:
  void resize(std::size_t slots) {
    std::vector<std::uint64_t> keys(slots);
    std::vector<std::uint32_t> values(slots);
    const std::size_t mask = slots - 1;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (values_[i] == 0) continue;
      std::size_t at = mix_key(keys_[i], secret_) & mask;
      while (values[at] != 0) at = (at + 1) & mask;
      keys[at] = keys_[i];
      values[at] = values_[i];
    }
    keys_ = std::move(keys);
    values_ = std::move(values);
    mask_ = mask;
  }

  std::vector<std::uint64_t> keys_;
  std::vector<std::uint32_t> values_;  // 0: empty
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
  std::uint64_t secret_ = hash_secret();
};

template <typename T, unsigned kChunkBits>
class Slab {
 public:
  // A fresh T; references to others stay good.
  std::uint32_t take() {
    ++live_;
    if (!free_.empty()) {
      const std::uint32_t place = free_.back();
      free_.pop_back();
      return place;
    }
    if ((used_ >> kChunkBits) >= chunks_.size()) chunks_.push_back(std::make_unique<T[]>(kChunk));
    if (used_ == 0) ++used_;  // place 0 means none
    return used_++;
  }
  void give(std::uint32_t place) {
    (*this)[place] = T{};
    free_.push_back(place);
    --live_;
  }
  T& operator[](std::uint32_t place) { return chunks_[place >> kChunkBits][place & (kChunk - 1)]; }
  const T& operator[](std::uint32_t place) const { return chunks_[place >> kChunkBits][place & (kChunk - 1)]; }
  std::size_t live() const { return live_; }
  // Places handed out so far are below this.
  std::uint32_t end() const { return used_; }
  std::size_t bytes() const { return chunks_.size() * kChunk * sizeof(T) + free_.capacity() * sizeof(std::uint32_t); }

 private:
  static constexpr std::uint32_t kChunk = 1U << kChunkBits;
  std::vector<std::unique_ptr<T[]>> chunks_;
  std::vector<std::uint32_t> free_;
  std::uint32_t used_ = 0;
  std::size_t live_ = 0;
};

}  // namespace gpuwatch::decode
