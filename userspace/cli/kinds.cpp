// SPDX-License-Identifier: Apache-2.0
#include "cli/kinds.h"

#include <array>

#include "model/raw_record.h"

namespace gpuwatch::cli {

namespace {

// Indexed by enum gpuwatch_node_kind.
constexpr std::array<std::string_view, GPUWATCH_NODE_MAX> kNodes = {"other",   "ctl",  "gpu",  "uvm",      "uvm-tools",
                                                                    "modeset", "caps", "imex", "nvswitch", "nvlink"};
// Indexed by enum gpuwatch_rec_type.
constexpr std::array<std::string_view, 9> kClasses = {"?",    "open",   "ioctl", "mmap", "release",
                                                      "task", "cgroup", "state", "image"};

template <std::size_t N>
std::optional<unsigned> index_of(const std::array<std::string_view, N>& names, std::string_view name) {
  for (unsigned i = 0; i < N; ++i)
    if (names[i] == name && name != "?") return i;
  return std::nullopt;
}

template <std::size_t N>
std::string list_of(const std::array<std::string_view, N>& names) {
  std::string out;
  for (std::string_view name : names) {
    if (name == "?") continue;
    if (!out.empty()) out += ", ";
    out += name;
  }
  return out;
}

}  // namespace

std::string_view node_kind_name(unsigned kind) {
  return kind < kNodes.size() ? kNodes[kind] : "?";
}
std::string_view class_name(unsigned type) {
  return type < kClasses.size() ? kClasses[type] : "?";
}
std::optional<unsigned> node_kind_from(std::string_view name) {
  return index_of(kNodes, name);
}
std::optional<unsigned> class_from(std::string_view name) {
  return index_of(kClasses, name);
}
std::string node_kind_list() {
  return list_of(kNodes);
}
std::string class_list() {
  return list_of(kClasses);
}

}  // namespace gpuwatch::cli
