// SPDX-License-Identifier: Apache-2.0
// The text of /proc/PID/maps, line by line. Paths in it are untrusted bytes
// and a hint only: a file is told by device and inode.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwatch::scan {

struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool readable = false;
  bool writable = false;
  std::uint64_t offset = 0;
  std::uint32_t device = 0;  // (major << 20) | minor
  std::uint64_t inode = 0;   // 0: no file
  std::string path;          // "/lib/x.so", "[heap]", "/memfd:x (deleted)", ""

  std::uint64_t bytes() const { return end - begin; }
  bool operator==(const Mapping&) const = default;
};

// Lines that make no sense are left out.
std::vector<Mapping> parse_maps(std::string_view text);

// Name of the mapping in /proc/PID/map_files.
std::string range_name(const Mapping& mapping);

}  // namespace gpuwatch::scan
