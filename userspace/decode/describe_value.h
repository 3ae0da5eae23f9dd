// SPDX-License-Identifier: Apache-2.0
// Turns the bytes of one field into the texts a person reads, by its type in
// layouts.in. Internal to decode: describe.cpp decides which fields and which
// bytes, this decides how they look.
#pragma once

#include <cstdint>
#include <string>

#include "decode/layouts.h"
#include "model/description.h"

namespace gpuwatch::decode {

// How many numbers of each kind had no name, over all that was described.
struct Unnamed {
  std::uint64_t structs = 0;   // parts whose fields are not known
  std::uint64_t bytes = 0;     // bytes that belong to no field and are not 0
  std::uint64_t statuses = 0;  // each: values without a name
  std::uint64_t classes = 0;
  std::uint64_t controls = 0;
  std::uint64_t enums = 0;
  std::uint64_t bits = 0;  // flags with bits that no line of their set names

  std::uint64_t total() const { return structs + bytes + statuses + classes + controls + enums + bits; }
};

std::uint64_t load_number(const std::byte* at, unsigned width);

// `available` bytes at `at`, of a field that has field.bytes: the elements that
// are whole.
model::FieldValue read_value(const tables::LayoutField& field, const std::byte* at, std::uint32_t available,
                             unsigned branch, Unnamed& unnamed);

bool is_numeric(tables::FieldType type);
std::string_view unit_of(tables::FieldType type);

std::string hex_number(std::uint64_t value, unsigned digits);
std::string hex_bytes(const std::byte* at, std::size_t count);

}  // namespace gpuwatch::decode
