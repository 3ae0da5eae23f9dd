// SPDX-License-Identifier: Apache-2.0
// Captures: the copied bytes of one ioctl record by what they are, found in one
// pass without copying. The decoder's own form of model::IoctlView: it is on
// the path that has 100 ns per record.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/raw_record.h"

namespace gpuwatch::decode {

struct CapturePart {
  const std::byte* data;
  std::uint32_t bytes;
  std::uint32_t want;
  std::uint32_t offset;  // of data in the argument or buffer

  // The bytes at a place in the argument, nullptr where not all were copied.
  const std::byte* at(std::uint32_t place, std::uint32_t width) const {
    if (place < offset || std::uint64_t{place} - offset + width > bytes) return nullptr;
    return data + (place - offset);
  }
};

class Captures {
 public:
  // False where the payload does not have the promised form.
  bool parse(model::Bytes payload) {
    if (payload.size() < sizeof fixed) return false;
    std::memcpy(&fixed, payload.data(), sizeof fixed);
    if (fixed.nr_captures > kMost) return false;
    std::size_t at = sizeof fixed;
    for (unsigned i = 0; i < fixed.nr_captures; ++i) {
      gpuwatch_capture head;
      if (payload.size() - at < sizeof head) return false;
      std::memcpy(&head, payload.data() + at, sizeof head);
      at += sizeof head;
      const std::size_t padded = (std::size_t{head.len} + 7) & ~std::size_t{7};
      if (payload.size() - at < padded) return false;
      const bool argument = head.what == GPUWATCH_CAP_ARG_IN || head.what == GPUWATCH_CAP_ARG_OUT;
      (argument ? argument_flags_ : flags_) |= head.flags;
      // Both ends of a large argument, as the plan wants it.
      if (head.offset != 0 && std::uint64_t{head.offset} + head.len >= head.want) both_ends_ = true;
      // The first of a kind counts; kinds of a newer schema are skipped.
      if (head.what < parts_.size() && ((present_ >> head.what) & 1U) == 0) {
        parts_[head.what] = {payload.data() + at, head.len, head.want, head.offset};
        present_ |= 1U << head.what;
      }
      at += padded;
    }
    return true;
  }

  // Empty where there is none.
  CapturePart operator[](gpuwatch_capture_what what) const {
    return ((present_ >> what) & 1U) != 0 ? parts_[what] : CapturePart{};
  }

  // Bytes are missing that the plan wanted, or a struct ends beyond them.
  bool truncated() const {
    return (flags_ | (both_ends_ ? argument_flags_ & ~std::uint32_t{GPUWATCH_CAPF_CAPPED} : argument_flags_)) != 0;
  }

  gpuwatch_rec_ioctl fixed;  // set by parse()

 private:
  static constexpr unsigned kMost = 8;
  std::array<CapturePart, 8> parts_;              // set where present: most calls have two
  std::uint32_t present_ = 0;                     // bit per gpuwatch_capture_what
  std::uint32_t argument_flags_ = 0, flags_ = 0;  // GPUWATCH_CAPF_* of captures
  bool both_ends_ = false;
};

}  // namespace gpuwatch::decode
