// SPDX-License-Identifier: Apache-2.0
// The text of /proc/PID/maps, as far as executable mappings of files go. Paths
// in it are untrusted and only a hint: files are told by device and inode.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwatch::source {

struct ExecMapping {
  std::string range;   // "7f00-7f10", a name in /proc/PID/map_files
  std::string device;  // "fd:01"
  std::uint64_t inode = 0;
  std::string path;  // octal escapes as they are; may end in " (deleted)"
};

// One entry for each file; lines that make no sense are left out.
std::vector<ExecMapping> executable_files(std::string_view maps);

}  // namespace gpuwatch::source
