// SPDX-License-Identifier: Apache-2.0
// Lookup in the generated tables: number and driver branch in, name and struct
// out, in a few nanoseconds. Internal to decode; others see model::Call.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "model/call.h"
#include "model/driver_version.h"

namespace gpuwatch::decode::tables {

inline constexpr std::uint16_t kNoStruct = 0xFFFF;

struct Branch {
  std::uint32_t major;
  std::uint32_t since_minor;  // the tables hold from this one on
  std::string_view name;
};

// Where a value lies in a struct.
struct FieldSpec {
  std::uint16_t offset;
  model::Field field;
  std::uint8_t width;     // 1, 2, 4 or 8
  std::uint8_t source;    // 0 before the call, 1 after it, 2 after where it was read, else before
  std::uint8_t plus_one;  // the struct holds the last byte's offset, not a length
};

struct StructInfo {
  std::uint32_t bytes;
  std::uint16_t first_field;
  std::uint16_t fields;
};

// One number with its meaning in the branches of `branches` (a bit each).
struct Entry {
  std::uint32_t key;
  std::uint16_t struct_id;
  std::uint16_t other_struct_id;  // second form of the argument, told apart by size
  std::uint16_t branches;
  model::Tag tag;
  model::Category category;
  std::uint8_t privilege;
  std::uint8_t is_array;
  std::string_view name;
};

// Entries sorted by key; `index` is an open-addressing hash of the first entry
// of each key, 0 for an empty slot, else 1 + place.
struct Table {
  const Entry* entries;
  const std::uint16_t* index;
  std::uint32_t count;
  std::uint32_t shift;
  std::uint32_t mask;

  const Entry* find(std::uint32_t key, unsigned branch) const {
    for (std::uint32_t slot = (key * 0x9E3779B1U) >> shift; index[slot] != 0; slot = (slot + 1) & mask) {
      const Entry* entry = entries + index[slot] - 1;
      if (entry->key != key) continue;
      for (const Entry* const end = entries + count; entry != end && entry->key == key; ++entry)
        if ((entry->branches >> branch) & 1U) return entry;
      return nullptr;
    }
    return nullptr;
  }
};

inline std::span<const Entry> all(const Table& table) {
  return {table.entries, table.count};
}

extern const Table& escapes;
extern const Table& uvm;
extern const Table& classes;
extern const Table& controls;
extern const Table& interfaces;  // key: class << 8 | interface
extern const Table& statuses;
extern const Table& nvkms;

struct BranchChoice {
  unsigned index;
  bool inherited;  // the version is not one that the tables hold for, or not known
};

unsigned branch_count();
const Branch& branch(unsigned index);
// The newest branch that is not newer than the version; the newest of all for
// an unknown version, the oldest for one before it.
BranchChoice choose_branch(model::DriverVersion version);

extern const StructInfo* const struct_infos;
extern const FieldSpec* const fields;
// One row per branch: 0 where it does not have the struct, else 1 + place in
// struct_infos.
extern const std::uint16_t* const struct_index;
extern const std::uint32_t struct_count;

// nullptr where the branch does not have the struct.
inline const StructInfo* struct_info(std::uint16_t struct_id, unsigned branch) {
  if (struct_id == kNoStruct) return nullptr;
  const std::uint16_t place = struct_index[branch * struct_count + struct_id];
  return place == 0 ? nullptr : struct_infos + place - 1;
}
inline std::span<const FieldSpec> fields_of(const StructInfo& info) {
  return {fields + info.first_field, info.fields};
}
std::string_view privilege_name(const Entry& control);

}  // namespace gpuwatch::decode::tables
