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
  const std::byte* data = nullptr;
  std::uint32_t bytes = 0;
  std::uint32_t want = 0;
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
      flags |= head.flags;
      // The first of a kind counts; kinds of a newer schema are skipped.
      if (head.what < parts_.size() && parts_[head.what].data == nullptr)
        parts_[head.what] = {payload.data() + at, head.len, head.want};
      at += padded;
    }
    return true;
  }

  // Empty where there is none.
  const CapturePart& operator[](gpuwatch_capture_what what) const { return parts_[what]; }

  gpuwatch_rec_ioctl fixed;  // set by parse()
  std::uint32_t flags = 0;   // GPUWATCH_CAPF_* of all captures together

 private:
  static constexpr unsigned kMost = 8;
  std::array<CapturePart, 8> parts_{};
};

}  // namespace gpuwatch::decode
