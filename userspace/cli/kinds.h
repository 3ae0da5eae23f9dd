// SPDX-License-Identifier: Apache-2.0
// Names of node kinds and record classes as the command line spells them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuwatch::cli {

std::string_view node_kind_name(unsigned kind);  // "gpu"; "?" for numbers beyond
std::string_view class_name(unsigned type);      // "ioctl"; "?" for numbers beyond
std::optional<unsigned> node_kind_from(std::string_view name);
std::optional<unsigned> class_from(std::string_view name);
std::string node_kind_list();  // "ctl, gpu, ..."
std::string class_list();

}  // namespace gpuwatch::cli
