// SPDX-License-Identifier: Apache-2.0
// Record delta: the step before compression. Calls of one kind resemble each
// other, and arguments are mostly zeros; so each record is told as what differs
// from an earlier one of the same length, or from zeros, in words of 8 bytes.
// It makes reading and writing several times faster than compression alone.
//
//   per record: DeltaHead, then `pairs` times {u16 same, u16 fresh} (words taken
//   from the base, words that differ), then the differences of the latter, as
//   numbers modulo 2^64: times and sequence numbers differ by little
//
// Knows nothing of records but that their first word starts with their length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpuwatch::source {

struct DeltaHead {
  std::uint32_t distance_words;  // from the base's start to this record's; 0: zeros
  std::uint16_t record_words;
  std::uint16_t pairs;
};
static_assert(sizeof(DeltaHead) == 8);

// Bytes behind the output that undelta() may overwrite.
inline constexpr std::size_t kDeltaSlack = 64;

// Upper bound of what to_delta() makes of that many bytes.
constexpr std::size_t delta_bound(std::size_t raw_bytes) {
  return 2 * raw_bytes + 64;
}

// `raw` must be whole, well-formed records.
void to_delta(std::span<const std::byte> raw, std::vector<std::byte>& out);

// Restores a block piece by piece, so that what was restored last is still in
// the processor's first cache when it is looked at.
class Undelta {
 public:
  Undelta() = default;
  // `out` has room for raw_bytes and kDeltaSlack more. Both must stay.
  Undelta(std::span<const std::byte> packed, std::byte* out, std::size_t raw_bytes)
      : in_(packed.data()), in_end_(in_ + packed.size()), out_begin_(out), out_(out), out_end_(out + raw_bytes) {}

  // Restores whole records until `bytes` more are there or the block is whole.
  // False where the packed bytes are not what to_delta() makes: nothing is
  // read or written outside the buffers then either.
  bool more(std::size_t bytes);

  std::size_t restored() const { return static_cast<std::size_t>(out_ - out_begin_); }
  bool done() const { return in_ == in_end_; }

 private:
  bool record();

  const std::byte* in_ = nullptr;
  const std::byte* in_end_ = nullptr;
  std::byte* out_begin_ = nullptr;
  std::byte* out_ = nullptr;
  std::byte* out_end_ = nullptr;
};

}  // namespace gpuwatch::source
