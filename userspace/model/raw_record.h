// SPDX-License-Identifier: Apache-2.0
// RawRecord: one record of include/uapi/linux/gpuwatch.h, checked for bounds
// and copied out of nothing: `payload` points into the buffer it was parsed
// from and lives as long as that buffer. No meaning is given here.
#pragma once

#include <linux/gpuwatch.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace gpuwatch::model {

using Bytes = std::span<const std::byte>;

struct RawRecord {
  gpuwatch_rec head{};  // copied: ring and file bytes need not be aligned
  Bytes payload;        // head.len - sizeof(head) bytes

  // Begin of the call, CLOCK_MONOTONIC ns; equals time_ns for records without
  // a duration.
  std::uint64_t begin_ns() const;
};

struct Capture {
  gpuwatch_capture head{};
  Bytes bytes;  // head.len bytes
};

// The parts of an ioctl record. At most one capture per gpuwatch_capture_what.
struct IoctlView {
  gpuwatch_rec_ioctl fixed{};
  std::array<Capture, 8> captures;
  std::size_t count = 0;

  const Capture* find(gpuwatch_capture_what what) const {
    for (std::size_t i = 0; i < count; ++i)
      if (captures[i].head.what == what) return &captures[i];
    return nullptr;
  }
};

// Copies a T from `bytes` at `offset`; nothing where it does not fit.
template <typename T>
std::optional<T> read_at(Bytes bytes, std::size_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Reads the record at the start of `bytes`. Nothing when the header is
// incomplete, len is not a multiple of 8, below the header's size, over
// GPUWATCH_REC_MAX or beyond `bytes`.
std::optional<RawRecord> parse_record(Bytes bytes);

// Nothing when the record is no ioctl or its captures do not fit its payload.
std::optional<IoctlView> parse_ioctl(const RawRecord& record);

}  // namespace gpuwatch::model
