// SPDX-License-Identifier: Apache-2.0
#include "source/proc_maps.h"

#include <algorithm>
#include <charconv>

namespace gpuwatch::source {

namespace {

std::string_view next_word(std::string_view& line) {
  while (line.starts_with(' ')) line.remove_prefix(1);
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

bool is_range(std::string_view word) {
  const std::size_t dash = word.find('-');
  return dash != 0 && dash != std::string_view::npos && dash + 1 < word.size() &&
         word.find_first_not_of("0123456789abcdef-") == std::string_view::npos &&
         word.find('-', dash + 1) == std::string_view::npos;
}

}  // namespace

std::vector<ExecMapping> executable_files(std::string_view maps) {
  std::vector<ExecMapping> files;
  while (!maps.empty()) {
    std::string_view line = maps.substr(0, maps.find('\n'));
    maps.remove_prefix(std::min(line.size() + 1, maps.size()));
    const std::string_view range = next_word(line);
    const std::string_view mode = next_word(line);
    next_word(line);  // offset
    const std::string_view device = next_word(line);
    const std::string_view inode_text = next_word(line);
    std::uint64_t inode = 0;
    const auto [end, error] = std::from_chars(inode_text.data(), inode_text.data() + inode_text.size(), inode);
    if (error != std::errc{} || end != inode_text.data() + inode_text.size() || inode == 0) continue;
    if (mode.size() != 4 || mode[2] != 'x' || !is_range(range)) continue;
    while (line.starts_with(' ')) line.remove_prefix(1);
    const bool known = std::any_of(files.begin(), files.end(), [&](const ExecMapping& other) {
      return other.inode == inode && other.device == device;
    });
    if (!known) files.push_back({std::string(range), std::string(device), inode, std::string(line)});
  }
  return files;
}

}  // namespace gpuwatch::source
