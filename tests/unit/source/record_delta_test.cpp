// SPDX-License-Identifier: Apache-2.0
// Unit tests of record deltas: exact round trips, and hostile packed bytes,
// which must be refused without touching memory outside the buffers.
#include "source/record_delta.h"

#include <gtest/gtest.h>

#include <random>

#include "unit/support.h"

namespace gpuwatch::source {
namespace {

using test::Blob;

constexpr std::byte kCanary{0xa5};

// The restored bytes; nothing where Undelta refuses. Fails the test where
// it wrote behind the slack.
std::optional<Blob> restore(const Blob& packed, std::size_t raw_bytes, std::size_t step = 1 << 30) {
  Blob buffer(raw_bytes + kDeltaSlack + 64, kCanary);
  const Blob exact(packed);  // of exact size: the sanitizer sees overruns
  Undelta undelta(exact, buffer.data(), raw_bytes);
  bool good = undelta.more(step);
  while (good && !undelta.done()) good = undelta.more(step);
  for (std::size_t i = raw_bytes + kDeltaSlack; i < buffer.size(); ++i) EXPECT_EQ(buffer[i], kCanary);
  if (!good) return std::nullopt;
  buffer.resize(raw_bytes);
  return buffer;
}

void expect_round_trip(const Blob& raw) {
  Blob packed;
  to_delta(raw, packed);
  EXPECT_LE(packed.size(), delta_bound(raw.size()));
  const auto back = restore(packed, raw.size());
  ASSERT_TRUE(back);
  EXPECT_TRUE(*back == raw);
  EXPECT_TRUE(restore(packed, raw.size(), 1) == back);  // record by record
}

Blob join(const std::vector<Blob>& records) {
  Blob all;
  for (const Blob& record : records) all.insert(all.end(), record.begin(), record.end());
  return all;
}

Blob sample_stream(unsigned seed, std::size_t count) {
  std::mt19937 random(seed);
  std::vector<Blob> records;
  for (std::size_t i = 0; i < count; ++i) {
    gpuwatch_rec head = test::make_head(GPUWATCH_REC_IOCTL, i * 1000 + random() % 1000);
    head.seq = i;
    head.node_kind = static_cast<__u8>(random() % 4);
    std::string in(8 * (random() % 40), '\0');
    for (std::size_t k = random() % 10; k > 0 && !in.empty(); --k)
      in[random() % in.size()] = static_cast<char>(random());
    records.push_back(test::ioctl_record(head, 0xc0304627u + random() % 6, 0,
                                         {{GPUWATCH_CAP_ARG_IN, in}, {GPUWATCH_CAP_ARG_OUT, in}}));
  }
  return join(records);
}

TEST(RecordDelta, RoundTrips) {
  expect_round_trip({});
  for (unsigned seed = 0; seed < 20; ++seed) expect_round_trip(sample_stream(seed, 1 + seed * 17));
}

TEST(RecordDelta, RoundTripsOfExtremes) {
  std::mt19937 random(3);
  for (const std::size_t payload :
       {std::size_t{0}, std::size_t{8}, std::size_t{GPUWATCH_REC_MAX - sizeof(gpuwatch_rec)}}) {
    Blob noise(payload);
    for (std::byte& b : noise) b = static_cast<std::byte>(random());
    const Blob zero = test::finish_record(test::make_head(GPUWATCH_REC_IOCTL), Blob(payload));
    const Blob loud = test::finish_record(test::make_head(GPUWATCH_REC_IOCTL), noise);
    expect_round_trip(join({zero, loud, zero, loud, loud}));
  }
}

TEST(RecordDelta, AlternatingWordsStayWithinTheBound) {
  Blob payload(GPUWATCH_REC_MAX - sizeof(gpuwatch_rec));
  for (std::size_t stride : {2, 3, 4}) {
    for (std::size_t word = 0; word < payload.size() / 8; ++word)
      payload[word * 8] = word % stride == 0 ? std::byte{1} : std::byte{0};
    expect_round_trip(test::finish_record(test::make_head(GPUWATCH_REC_IOCTL), payload));
  }
}

TEST(RecordDelta, RepeatedCallsAreSmall) {
  const Blob one =
      test::ioctl_record(test::make_head(GPUWATCH_REC_IOCTL), 1, 0, {{GPUWATCH_CAP_ARG_IN, std::string(2000, 'x')}});
  Blob packed;
  to_delta(join(std::vector<Blob>(100, one)), packed);
  EXPECT_LT(packed.size(), one.size() + 100 * 16);
}

TEST(RecordDelta, EveryCutIsRefused) {
  const Blob raw = sample_stream(1, 6);
  Blob packed;
  to_delta(raw, packed);
  for (std::size_t n = 0; n < packed.size(); ++n)
    EXPECT_FALSE(restore(Blob(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(n)), raw.size())) << n;
  EXPECT_FALSE(restore(packed, raw.size() - 8));
  EXPECT_FALSE(restore(packed, raw.size() + 8));
}

TEST(RecordDelta, HostileHeadsAreRefused) {
  const auto refused = [](DeltaHead head, std::vector<std::uint16_t> pairs, std::size_t words) {
    Blob packed;
    test::append_struct(packed, head);
    for (std::uint16_t value : pairs) test::append_struct(packed, value);
    packed.resize(packed.size() + words * 8);
    return !restore(packed, 88);
  };
  EXPECT_FALSE(refused({0, 11, 1}, {0, 11}, 11));
  EXPECT_FALSE(refused({0, 11, 1}, {11, 0}, 0));
  EXPECT_TRUE(refused({1, 11, 1}, {11, 0}, 0));  // base before the start
  EXPECT_TRUE(refused({0xffffffff, 11, 1}, {11, 0}, 0));
  EXPECT_TRUE(refused({0, 0, 0}, {}, 0));
  EXPECT_TRUE(refused({0, 12, 1}, {12, 0}, 0));  // over the block's end
  EXPECT_TRUE(refused({0, 0xffff, 1}, {0xffff, 0}, 0));
  EXPECT_TRUE(refused({0, 11, 1}, {10, 0}, 0));  // does not fill the record
  EXPECT_TRUE(refused({0, 11, 1}, {0xffff, 0xffff}, 11));
  EXPECT_TRUE(refused({0, 11, 1}, {0, 11}, 10));  // fewer words than promised
  EXPECT_TRUE(refused({0, 11, 0xffff}, {11, 0}, 0));
}

TEST(RecordDelta, ABaseMayNotOverlapItsRecord) {
  Blob packed;
  test::append_struct(packed, DeltaHead{0, 11, 1});
  for (std::uint16_t value : {11, 0}) test::append_struct(packed, value);
  test::append_struct(packed, DeltaHead{10, 11, 1});
  for (std::uint16_t value : {11, 0}) test::append_struct(packed, value);
  EXPECT_FALSE(restore(packed, 176));
}

TEST(RecordDelta, NoMutationWritesOutside) {
  const Blob raw = sample_stream(5, 12);
  Blob packed;
  to_delta(raw, packed);
  std::mt19937 random(9);
  for (int i = 0; i < 20000; ++i) {
    Blob bad = packed;
    for (std::size_t k = 1 + random() % 3; k > 0; --k) bad[random() % bad.size()] = static_cast<std::byte>(random());
    (void)restore(bad, raw.size());
  }
}

}  // namespace
}  // namespace gpuwatch::source
