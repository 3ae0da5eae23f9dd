// SPDX-License-Identifier: Apache-2.0
#include "model/raw_record.h"

namespace gpuwatch::model {

namespace {

std::uint64_t duration_ns(const RawRecord& record) {
  switch (record.head.type) {
    case GPUWATCH_REC_OPEN:
      return read_at<std::uint64_t>(record.payload, offsetof(gpuwatch_rec_open, duration_ns)).value_or(0);
    case GPUWATCH_REC_IOCTL:
      return read_at<std::uint64_t>(record.payload, offsetof(gpuwatch_rec_ioctl, duration_ns)).value_or(0);
    case GPUWATCH_REC_MMAP:
      return read_at<std::uint64_t>(record.payload, offsetof(gpuwatch_rec_mmap, duration_ns)).value_or(0);
    case GPUWATCH_REC_RELEASE:
      return read_at<std::uint64_t>(record.payload, offsetof(gpuwatch_rec_release, duration_ns)).value_or(0);
    case GPUWATCH_REC_IMAGE:
      return read_at<std::uint64_t>(record.payload, offsetof(gpuwatch_rec_image, duration_ns)).value_or(0);
    default:
      return 0;
  }
}

constexpr std::size_t round_up_8(std::size_t n) {
  return (n + 7) & ~std::size_t{7};
}

}  // namespace

std::uint64_t RawRecord::begin_ns() const {
  const std::uint64_t duration = duration_ns(*this);
  return duration <= head.time_ns ? head.time_ns - duration : head.time_ns;
}

std::optional<RawRecord> parse_record(Bytes bytes) {
  const auto head = read_at<gpuwatch_rec>(bytes, 0);
  if (!head) return std::nullopt;
  if (head->len < sizeof(gpuwatch_rec) || head->len % 8 != 0 || head->len > GPUWATCH_REC_MAX ||
      head->len > bytes.size())
    return std::nullopt;
  return RawRecord{*head, bytes.subspan(sizeof(gpuwatch_rec), head->len - sizeof(gpuwatch_rec))};
}

std::optional<IoctlView> parse_ioctl(const RawRecord& record) {
  if (record.head.type != GPUWATCH_REC_IOCTL) return std::nullopt;
  const auto fixed = read_at<gpuwatch_rec_ioctl>(record.payload, 0);
  // Made in place: the view is large, and this runs once per record.
  std::optional<IoctlView> result(std::in_place);
  IoctlView& view = *result;
  if (!fixed || fixed->nr_captures > view.captures.size()) return std::nullopt;
  view.fixed = *fixed;
  std::size_t at = sizeof(gpuwatch_rec_ioctl);
  for (; view.count < fixed->nr_captures; ++view.count) {
    const auto head = read_at<gpuwatch_capture>(record.payload, at);
    if (!head) return std::nullopt;
    at += sizeof(gpuwatch_capture);
    if (head->len > record.payload.size() - at) return std::nullopt;
    view.captures[view.count] = {*head, record.payload.subspan(at, head->len)};
    at += round_up_8(head->len);
    if (at > record.payload.size()) return std::nullopt;
  }
  return result;
}

}  // namespace gpuwatch::model
