// SPDX-License-Identifier: Apache-2.0
// Holds the generated layouts. Only lookup here; meaning is describe.cpp's.
#include "decode/layouts.h"

#include <algorithm>
#include <iterator>

namespace gpuwatch::decode::tables {

namespace {
#include "layouts_data.inc"

constexpr std::string_view kFieldTypeNames[] = {"number", "signed", "hex",  "handle", "address", "offset",  "bytes",
                                                "ns",     "limit",  "bool", "status", "class",   "control", "nvkms",
                                                "fd",     "flags",  "enum", "struct", "uuid",    "text",    "raw"};
static_assert(std::size(kFieldTypeNames) == static_cast<std::size_t>(FieldType::kRaw) + 1);
}  // namespace

std::span<const LayoutField> layout_of(std::uint16_t struct_id, unsigned branch) {
  if (struct_id >= struct_count || branch >= branch_count()) return {};
  const std::uint16_t place = kLayoutIndex[branch * struct_count + struct_id];
  if (place == 0) return {};
  const Layout& layout = kLayouts[place - 1];
  return {kLayoutFields + layout.first, layout.fields};
}

std::span<const ValueName> value_set(std::uint16_t place) {
  if (place >= std::size(kValueSets)) return {};
  return {kValueNames + kValueSets[place].first, kValueSets[place].count};
}

std::string_view struct_name(std::uint16_t struct_id) {
  return struct_id < std::size(kStructNames) ? kStructNames[struct_id] : std::string_view{};
}

std::uint16_t struct_by_name(std::string_view name) {
  const auto* const end = std::end(kStructNames);
  const auto* const found = std::lower_bound(std::begin(kStructNames), end, name);
  return found != end && *found == name ? static_cast<std::uint16_t>(found - kStructNames) : kNoStruct;
}

std::string_view type_name(FieldType type) {
  return kFieldTypeNames[static_cast<std::size_t>(type)];
}

}  // namespace gpuwatch::decode::tables
