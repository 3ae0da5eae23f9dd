// SPDX-License-Identifier: Apache-2.0
// Lookup in the generated layouts: struct and driver branch in, fields out.
// Internal to decode and apart from tables.h: only describe.cpp wants it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "decode/tables.h"

namespace gpuwatch::decode::tables {

// Types of layouts.in; in the order of kFieldTypeNames in layouts.cpp.
enum class FieldType : std::uint8_t {
  kNumber,
  kSigned,
  kHex,
  kHandle,
  kAddress,
  kOffset,
  kBytes,
  kNs,
  kLimit,
  kBool,
  kStatus,
  kClass,
  kControl,
  kNvkms,
  kFd,
  kFlags,
  kEnum,
  kStruct,
  kUuid,
  kText,
  kRaw,
};

// What kind of file a descriptor must be for the driver to take it.
enum class FdKind : std::uint8_t { kAny, kCtl, kMap, kUvm };

inline constexpr std::uint16_t kNoRef = 0xFFFF;

struct LayoutField {
  std::string_view name;
  std::uint32_t when_value;
  std::uint16_t offset;
  std::uint16_t bytes;  // of all elements
  std::uint16_t count;
  std::uint16_t ref;   // place of a value set, or id of a struct
  std::uint16_t when;  // place in the layout of the field that must have when_value
  FieldType type;
  FdKind fd;
};

struct Layout {
  std::uint16_t first;
  std::uint16_t fields;
};

struct ValueName {
  std::uint8_t high, low;  // bits
  std::uint32_t value;
  std::string_view name;
};

struct ValueSet {
  std::uint16_t first;
  std::uint16_t count;
};

// Empty where the branch does not have the struct or its fields are not known.
std::span<const LayoutField> layout_of(std::uint16_t struct_id, unsigned branch);
std::span<const ValueName> value_set(std::uint16_t place);
std::string_view struct_name(std::uint16_t struct_id);
std::uint16_t struct_by_name(std::string_view name);  // kNoStruct where there is none
std::string_view type_name(FieldType type);

}  // namespace gpuwatch::decode::tables
