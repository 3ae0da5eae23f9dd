// SPDX-License-Identifier: Apache-2.0
#include "source/record_delta.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "model/raw_record.h"

namespace gpuwatch::source {

namespace {

constexpr std::size_t kWord = 8;
constexpr std::size_t kChunk = 32;  // copies go in steps of this, into the slack
static_assert(kChunk <= kDeltaSlack);

alignas(64) constexpr std::array<std::byte, GPUWATCH_REC_MAX + kDeltaSlack> kZeros{};

struct Pair {
  std::uint16_t same;
  std::uint16_t fresh;
};

std::uint64_t word_at(const std::byte* bytes, std::size_t index) {
  std::uint64_t word;
  std::memcpy(&word, bytes + index * kWord, kWord);
  return word;
}

// Records likely to resemble each other share a slot: same length, type and
// node kind, and the same first word of payload, which is the ioctl's command.
std::size_t slot_of(const std::byte* record, std::size_t bytes) {
  std::uint64_t key = word_at(record, 0);
  std::uint8_t node_kind;
  std::memcpy(&node_kind, record + offsetof(gpuwatch_rec, node_kind), 1);
  key ^= static_cast<std::uint64_t>(node_kind) << 56;
  if (bytes > sizeof(gpuwatch_rec)) key ^= word_at(record, sizeof(gpuwatch_rec) / kWord) << 17;
  return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15u) >> 52);
}

// How two records differ, as pairs. One equal word between fresh ones does not
// end a run: the pair would cost more than the word.
void compare(const std::byte* record, const std::byte* base, std::size_t words, std::vector<Pair>& pairs) {
  pairs.clear();
  for (std::size_t at = 0; at < words;) {
    std::size_t same = 0;
    while (at + same < words && word_at(record, at + same) == word_at(base, at + same)) ++same;
    at += same;
    std::size_t fresh = 0;
    while (at + fresh < words) {
      const bool equal = word_at(record, at + fresh) == word_at(base, at + fresh);
      const bool next_equal =
          at + fresh + 1 >= words || word_at(record, at + fresh + 1) == word_at(base, at + fresh + 1);
      if (equal && next_equal) break;
      ++fresh;
    }
    at += fresh;
    pairs.push_back({static_cast<std::uint16_t>(same), static_cast<std::uint16_t>(fresh)});
  }
}

template <typename T>
void append(std::vector<std::byte>& out, const T* values, std::size_t count) {
  const auto* bytes = reinterpret_cast<const std::byte*>(values);
  out.insert(out.end(), bytes, bytes + count * sizeof(T));
}

void store_word(std::byte* bytes, std::size_t index, std::uint64_t word) {
  std::memcpy(bytes + index * kWord, &word, kWord);
}

void copy_chunks(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kChunk) std::memcpy(to + at, from + at, kChunk);
}

}  // namespace

void to_delta(std::span<const std::byte> raw, std::vector<std::byte>& out) {
  out.clear();
  std::array<std::uint32_t, 4096> last{};  // offset of the last record of a slot, plus 1
  std::vector<Pair> pairs;
  for (std::size_t at = 0; at < raw.size();) {
    const std::byte* record = raw.data() + at;
    std::uint32_t bytes;
    std::memcpy(&bytes, record, sizeof bytes);
    std::uint32_t& entry = last[slot_of(record, bytes)];
    const std::byte* base = kZeros.data();
    std::uint32_t distance = 0;
    if (entry != 0) {
      std::uint32_t base_bytes;
      std::memcpy(&base_bytes, raw.data() + entry - 1, sizeof base_bytes);
      if (base_bytes == bytes) {
        base = raw.data() + entry - 1;
        distance = static_cast<std::uint32_t>(at - (entry - 1)) / kWord;
      }
    }
    entry = static_cast<std::uint32_t>(at + 1);
    compare(record, base, bytes / kWord, pairs);
    const DeltaHead head{distance, static_cast<std::uint16_t>(bytes / kWord), static_cast<std::uint16_t>(pairs.size())};
    append(out, &head, 1);
    append(out, pairs.data(), pairs.size());
    std::size_t word = 0;
    for (const Pair& pair : pairs) {
      word += pair.same;
      for (std::size_t end = word + pair.fresh; word < end; ++word) {
        const std::uint64_t difference = word_at(record, word) - word_at(base, word);
        append(out, &difference, 1);
      }
    }
    at += bytes;
  }
}

bool Undelta::more(std::size_t bytes) {
  const std::size_t stop = restored() + bytes;
  while (in_ != in_end_ && restored() < stop)
    if (!record()) return false;
  return in_ != in_end_ || out_ == out_end_;
}

bool Undelta::record() {
  // Local copies: stores to the output might alias the members otherwise.
  const std::byte* in = in_;
  std::byte* out = out_;
  DeltaHead head;
  if (static_cast<std::size_t>(in_end_ - in) < sizeof head) return false;
  std::memcpy(&head, in, sizeof head);
  in += sizeof head;
  const std::size_t record_bytes = head.record_words * kWord;
  const std::size_t distance = head.distance_words * kWord;
  const std::size_t pair_bytes = head.pairs * sizeof(Pair);
  if (record_bytes == 0 || record_bytes > GPUWATCH_REC_MAX || record_bytes > static_cast<std::size_t>(out_end_ - out))
    return false;
  if (distance != 0 && (distance < record_bytes || distance > static_cast<std::size_t>(out - out_begin_))) return false;
  if (pair_bytes > static_cast<std::size_t>(in_end_ - in)) return false;
  const std::byte* pairs = in;
  in += pair_bytes;
  const std::byte* base = distance == 0 ? kZeros.data() : out - distance;
  std::byte* const record_end = out + record_bytes;
  for (std::size_t i = 0; i < head.pairs; ++i) {
    Pair pair;
    std::memcpy(&pair, pairs + i * sizeof pair, sizeof pair);
    const std::size_t same = pair.same * kWord;
    const std::size_t fresh = pair.fresh * kWord;
    if (same + fresh > static_cast<std::size_t>(record_end - out)) return false;
    // The copy may run into the slack, or over what comes next.
    copy_chunks(out, base, same);
    out += same;
    base += same;
    if (fresh > static_cast<std::size_t>(in_end_ - in)) return false;
    for (std::size_t word = 0; word < pair.fresh; ++word)
      store_word(out, word, word_at(base, word) + word_at(in, word));
    out += fresh;
    base += fresh;
    in += fresh;
  }
  if (out != record_end) return false;
  in_ = in;
  out_ = out;
  return true;
}

}  // namespace gpuwatch::source
