// SPDX-License-Identifier: Apache-2.0
// Unit tests of parse_record and parse_ioctl: what is whole comes out, what
// is cut, absurd or of another kind does not.
#include "model/raw_record.h"

#include <gtest/gtest.h>

#include "model/loss.h"
#include "unit/support.h"

namespace gpuwatch::model {
namespace {

using test::Blob;

TEST(ParseRecord, EveryCutIsRefused) {
  const Blob whole = test::open_record(test::make_head(GPUWATCH_REC_OPEN));
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(parse_record(Bytes(whole).first(n))) << n;
  const auto record = parse_record(whole);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->payload.size(), sizeof(gpuwatch_rec_open));
}

TEST(ParseRecord, AbsurdLengthsAreRefused) {
  Blob bytes = test::open_record(test::make_head(GPUWATCH_REC_OPEN));
  bytes.resize(1 << 20);
  for (std::uint32_t len : {0u, 8u, 80u, 84u, 89u, 65537u, 65544u, 0x80000000u, 0xfffffff8u, 0xffffffffu}) {
    std::memcpy(bytes.data(), &len, sizeof len);
    EXPECT_FALSE(parse_record(bytes)) << len;
  }
  const std::uint32_t most = GPUWATCH_REC_MAX;
  std::memcpy(bytes.data(), &most, sizeof most);
  EXPECT_TRUE(parse_record(bytes));
}

TEST(ParseRecord, WorksUnaligned) {
  const Blob whole = test::open_record(test::make_head(GPUWATCH_REC_OPEN, 123));
  Blob shifted(1);
  shifted.insert(shifted.end(), whole.begin(), whole.end());
  const auto record = parse_record(Bytes(shifted).subspan(1));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->head.time_ns, 123u);
}

TEST(ParseIoctl, FindsCapturesByKind) {
  const Blob blob = test::ioctl_record(test::make_head(GPUWATCH_REC_IOCTL), 0xc020462a, 0,
                                       {{GPUWATCH_CAP_ARG_IN, "before"}, {GPUWATCH_CAP_ARG_OUT, "after-it"}});
  const auto record = parse_record(blob);
  ASSERT_TRUE(record);
  const auto view = parse_ioctl(*record);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->fixed.cmd, 0xc020462au);
  ASSERT_NE(view->find(GPUWATCH_CAP_ARG_OUT), nullptr);
  EXPECT_EQ(view->find(GPUWATCH_CAP_ARG_OUT)->bytes.size(), 8u);
  EXPECT_EQ(static_cast<char>(view->find(GPUWATCH_CAP_ARG_IN)->bytes[0]), 'b');
  EXPECT_EQ(view->find(GPUWATCH_CAP_NESTED0_IN), nullptr);
}

TEST(ParseIoctl, EveryCutOfThePayloadIsRefused) {
  const Blob blob = test::ioctl_record(test::make_head(GPUWATCH_REC_IOCTL), 1, 0,
                                       {{GPUWATCH_CAP_ARG_IN, "0123456789"}, {GPUWATCH_CAP_ARG_OUT, "0123456789"}});
  const auto record = parse_record(blob);
  ASSERT_TRUE(record);
  for (std::size_t n = 0; n < record->payload.size(); ++n) {
    RawRecord cut = *record;
    cut.payload = cut.payload.first(n);
    EXPECT_FALSE(parse_ioctl(cut)) << n;
  }
}

TEST(ParseIoctl, AbsurdCountsAndLengthsAreRefused) {
  Blob blob = test::ioctl_record(test::make_head(GPUWATCH_REC_IOCTL), 1, 0, {{GPUWATCH_CAP_ARG_IN, "x"}});
  const std::size_t count_at = sizeof(gpuwatch_rec) + offsetof(gpuwatch_rec_ioctl, nr_captures);
  for (__u16 count : {2, 8, 9, 0xffff}) {
    Blob bad = blob;
    std::memcpy(bad.data() + count_at, &count, sizeof count);
    EXPECT_FALSE(parse_ioctl(*parse_record(bad))) << count;
  }
  const std::size_t len_at = sizeof(gpuwatch_rec) + sizeof(gpuwatch_rec_ioctl) + offsetof(gpuwatch_capture, len);
  for (__u32 len : {9u, 4096u, 0x7fffffffu, 0xfffffff9u, 0xffffffffu}) {
    Blob bad = blob;
    std::memcpy(bad.data() + len_at, &len, sizeof len);
    EXPECT_FALSE(parse_ioctl(*parse_record(bad))) << len;
  }
}

TEST(ParseIoctl, OtherTypesAreRefused) {
  const Blob blob = test::open_record(test::make_head(GPUWATCH_REC_OPEN));
  EXPECT_FALSE(parse_ioctl(*parse_record(blob)));
}

TEST(RawRecord, BeginIsCompletionMinusDuration) {
  const Blob call = test::ioctl_record(test::make_head(GPUWATCH_REC_IOCTL, 10'000), 1, 0);
  EXPECT_EQ(parse_record(call)->begin_ns(), 9'500u);
  const Blob early = test::ioctl_record(test::make_head(GPUWATCH_REC_IOCTL, 100), 1, 0);
  EXPECT_EQ(parse_record(early)->begin_ns(), 100u);  // a duration beyond the clock's start is void
  const Blob cgroup = test::finish_record(test::make_head(GPUWATCH_REC_CGROUP, 77), Blob(8));
  EXPECT_EQ(parse_record(cgroup)->begin_ns(), 77u);
}

TEST(LossCounts, AddUpAndHaveNames) {
  LossCounts a;
  LossCounts b;
  a.by_reason[GPUWATCH_LOSS_RING_FULL] = 2;
  b.by_reason[GPUWATCH_LOSS_OVERWRITTEN] = 3;
  a += b;
  EXPECT_EQ(a.total(), 5u);
  EXPECT_EQ(loss_name(GPUWATCH_LOSS_OVERWRITTEN), "overwritten");
  EXPECT_EQ(loss_name(7), "");
}

}  // namespace
}  // namespace gpuwatch::model
