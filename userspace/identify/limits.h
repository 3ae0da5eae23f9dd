// SPDX-License-Identifier: Apache-2.0
// Bounds on what a hostile file can make this room spend. The largest real
// values seen: image 167 MB, ratio 134:1, 8,074 sections, 2,016 kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuwatch::identify {

struct Limits {
  std::uint64_t image_bytes = 512ull << 20;         // one image, inflated
  std::uint64_t ratio = 1000;                       // inflated to stored
  std::uint64_t file_inflated_bytes = 64ull << 30;  // all images of one file
  std::uint64_t ptx_bytes = 64ull << 20;
  std::uint64_t entries = 4'000'000;  // of one file
  std::uint64_t sections = 1'000'000;
  std::uint64_t symbols = 4'000'000;
  std::uint64_t name_bytes = 64 << 10;
  std::uint64_t hashed_ratio = 4;  // bytes hashed for kernels, to image bytes: sections may overlap
  std::uint64_t archive_depth = 6;
  std::uint64_t archive_members = 1'000'000;
  std::uint64_t archive_ratio = 1100;  // deflate itself reaches 1032:1
  std::uint64_t archive_member_bytes = 16ull << 30;
  std::uint64_t archive_total_bytes = 256ull << 30;
  std::uint64_t files = 10'000'000;  // below one directory
};

}  // namespace gpuwatch::identify
