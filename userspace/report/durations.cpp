// SPDX-License-Identifier: Apache-2.0
#include "report/durations.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace gpuwatch::report {

namespace {

// Values below 1 << bits have a bucket each; above, every doubling has 1 <<
// bits.
std::uint16_t index_of(std::uint64_t ns, unsigned bits) {
  if (ns < (std::uint64_t{1} << bits)) return static_cast<std::uint16_t>(ns);
  const unsigned shift = static_cast<unsigned>(std::bit_width(ns)) - 1 - bits;
  return static_cast<std::uint16_t>(((shift + 1) << bits) + ((ns >> shift) - (std::uint64_t{1} << bits)));
}

std::uint64_t low_end(std::uint16_t index, unsigned bits) {
  const unsigned group = index >> bits;
  const std::uint64_t rest = index & ((1U << bits) - 1);
  return group == 0 ? rest : (rest + (std::uint64_t{1} << bits)) << (group - 1);
}

std::uint64_t middle(std::uint16_t index, unsigned bits) {
  const std::uint64_t low = low_end(index, bits);
  const unsigned group = index >> bits;
  return group <= 1 ? low : low + (std::uint64_t{1} << (group - 2));
}

}  // namespace

void Durations::add(std::uint64_t ns) {
  ++count_;
  total_ns_ += ns;
  min_ns_ = std::min(min_ns_, ns);
  max_ns_ = std::max(max_ns_, ns);
  const std::uint16_t index = index_of(ns, sub_bits_);
  const auto at = std::lower_bound(buckets_.begin(), buckets_.end(), index,
                                   [](const Bucket& bucket, std::uint16_t wanted) { return bucket.index < wanted; });
  if (at != buckets_.end() && at->index == index) {
    if (at->count < std::numeric_limits<std::uint32_t>::max()) ++at->count;
    return;
  }
  buckets_.insert(at, {index, 1});
  while (buckets_.size() > kMaxBuckets && sub_bits_ > 1) widen();
}

void Durations::widen() {
  std::vector<Bucket> wider;
  wider.reserve(buckets_.size());
  for (const Bucket& bucket : buckets_) {
    const std::uint16_t index = index_of(low_end(bucket.index, sub_bits_), sub_bits_ - 1);
    if (!wider.empty() && wider.back().index == index) {
      const std::uint64_t sum = std::uint64_t{wider.back().count} + bucket.count;
      wider.back().count =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, std::numeric_limits<std::uint32_t>::max()));
    } else {
      wider.push_back({index, bucket.count});
    }
  }
  buckets_ = std::move(wider);
  --sub_bits_;
}

std::uint64_t Durations::quantile_ns(double fraction) const {
  std::uint64_t all = 0;
  for (const Bucket& bucket : buckets_) all += bucket.count;
  if (all == 0) return 0;
  const double wanted = std::ceil(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(all));
  std::uint64_t seen = 0;
  for (const Bucket& bucket : buckets_) {
    seen += bucket.count;
    if (static_cast<double>(seen) >= wanted) return std::clamp(middle(bucket.index, sub_bits_), min_ns_, max_ns_);
  }
  return max_ns_;
}

}  // namespace gpuwatch::report
