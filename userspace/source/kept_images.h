// SPDX-License-Identifier: Apache-2.0
// KeptImages: images of a .gwcap file between their blocks and the moment they
// are taken, compressed as they lie in the file. A file is hostile: pieces that
// do not fit together are no image, and memory is bounded. One thread may add
// while another takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "base/result.h"

namespace gpuwatch::source {

inline constexpr std::uint64_t kGwcapKeptMax = 512ull << 20;

class KeptImages {
 public:
  // `stored`: what follows a block header of kind kImage. Nonsense is left out.
  void add(std::span<const std::byte> stored, std::uint32_t raw_bytes);

  // kNotFound, or kBadInput where the pieces are not what they say.
  base::Result<std::vector<std::byte>> take(std::uint64_t id);

 private:
  struct Piece {
    std::uint64_t at = 0;
    std::uint32_t raw_bytes = 0;
    std::vector<std::byte> frame;
  };
  struct Image {
    std::uint64_t bytes = 0;
    std::uint64_t next_at = 0;
    std::uint64_t kept = 0;
    std::vector<Piece> pieces;
  };

  void drop(std::map<std::uint64_t, Image>::iterator image);

  std::mutex lock_;
  std::map<std::uint64_t, Image> images_;  // ids rise: the first is the oldest
  std::uint64_t kept_ = 0;                 // bytes of all frames
};

}  // namespace gpuwatch::source
