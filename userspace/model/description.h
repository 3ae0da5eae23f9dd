// SPDX-License-Identifier: Apache-2.0
// Description: every field of one call, for a person to read. Made by decode
// where somebody asks, never on the path of every record. Texts that come from
// a program are untrusted bytes; nothing is formatted for a terminal here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwatch::model {

struct FieldValue {
  std::vector<std::string> items;  // one, or the elements of an array up to the last that is not 0
  std::string meaning;             // name of the number, of its bits, of the file; empty: none or not known

  bool operator==(const FieldValue&) const = default;
};

struct DescribedField {
  std::string name;            // as the driver's headers have it: "hRoot", "perGpuAttributes[0].gpuMappingType"
  std::string_view type;       // "handle", "bytes", ...: types of decode/tables/layouts.in, or "unknown"
  std::string_view unit;       // "bytes", "ns"; empty: none
  std::uint32_t offset = 0;    // in the struct
  std::uint32_t elements = 1;  // of the array as declared
  bool array = false;
  bool numeric = false;  // items are JSON numbers or booleans; else texts
  // Values before and after the call; absent where the bytes were not copied.
  std::optional<FieldValue> before;
  std::optional<FieldValue> after;

  // What counts: the driver's answer where there is one.
  const FieldValue& value() const { return after ? *after : *before; }
  bool changed() const { return before && after && *before != *after; }
};

struct DescribedPart {
  std::string_view role;           // "argument", "parameters", "wrapper"
  std::string_view struct_name;    // empty: not known
  std::string_view layout_branch;  // driver branch the layout is of, where not the call's own: the size fits that one
  std::uint32_t bytes = 0;         // size as the caller declares it
  std::uint32_t table_bytes = 0;   // size of the struct by the table; 0 not known
  std::uint32_t elements = 1;      // structs in a row, where the argument is an array of them
  std::uint32_t missing = 0;       // fields whose bytes were not copied
  bool known = false;              // the struct's fields are known, not only some of its values
  std::vector<DescribedField> fields;
};

struct Description {
  std::vector<DescribedPart> parts;
};

}  // namespace gpuwatch::model
