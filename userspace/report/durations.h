// SPDX-License-Identifier: Apache-2.0
// Durations: how a set of times is spread, in bounded memory. Count, sum and
// extremes are exact; a quantile is read off buckets whose width is 1/32 of
// their value, 1/16 and so on when the values need more than kMaxBuckets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpuwatch::report {

class Durations {
 public:
  static constexpr std::size_t kMaxBuckets = 256;

  void add(std::uint64_t ns);

  std::uint64_t count() const { return count_; }
  std::uint64_t total_ns() const { return total_ns_; }
  std::uint64_t max_ns() const { return max_ns_; }
  // The value that `fraction` (0 to 1) of all are not above; 0 when empty.
  // Middle of a bucket, but never outside of what was added.
  std::uint64_t quantile_ns(double fraction) const;

 private:
  struct Bucket {
    std::uint16_t index;
    std::uint32_t count;
  };
  void widen();

  std::vector<Bucket> buckets_;  // by index
  unsigned sub_bits_ = 5;        // buckets per doubling: 1 << sub_bits_
  std::uint64_t count_ = 0;
  std::uint64_t total_ns_ = 0;
  std::uint64_t min_ns_ = ~std::uint64_t{0};
  std::uint64_t max_ns_ = 0;
};

}  // namespace gpuwatch::report
