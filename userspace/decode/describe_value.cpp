// SPDX-License-Identifier: Apache-2.0
#include "decode/describe_value.h"

#include <array>
#include <charconv>
#include <cstring>

namespace gpuwatch::decode {

namespace {

using tables::FieldType;
using tables::LayoutField;

std::string decimal(std::uint64_t value) {
  return std::to_string(value);
}

std::int64_t sign_extended(std::uint64_t value, unsigned width) {
  const unsigned shift = 64 - 8 * width;
  return static_cast<std::int64_t>(value << shift) >> shift;
}

// "2 MiB" where that is the exact value, so that no digit is lost.
std::string binary_multiple(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 5> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  std::string_view unit;
  for (const std::string_view next : kUnits) {
    if (bytes == 0 || bytes % 1024 != 0) break;
    bytes /= 1024;
    unit = next;
  }
  return unit.empty() ? std::string() : decimal(bytes) + " " + std::string(unit);
}

std::uint64_t mask_of(const tables::ValueName& name) {
  return ((std::uint64_t{1} << (name.high - name.low + 1)) - 1) << name.low;
}

void append_word(std::string& out, std::string_view word) {
  if (!out.empty()) out += '|';
  out += word;
}

// Names of the bits; numbers where a field of bits has a value without a name.
std::string flag_names(std::span<const tables::ValueName> set, std::uint64_t value, Unnamed& unnamed) {
  std::string out;
  std::uint64_t left = value;
  for (std::size_t i = 0; i < set.size();) {
    const std::uint64_t mask = mask_of(set[i]);
    const std::uint64_t part = (value & mask) >> set[i].low;
    std::string_view name;
    std::size_t next = i;
    for (; next < set.size() && set[next].low == set[i].low && set[next].high == set[i].high; ++next)
      if (set[next].value == part) name = set[next].name;
    if (!name.empty()) {
      append_word(out, name);
      left &= ~mask;
    }
    i = next;
  }
  if (left != 0) {
    ++unnamed.bits;
    append_word(out, hex_number(left, 1));
  }
  return out;
}

std::string enum_name(std::span<const tables::ValueName> set, std::uint64_t value) {
  for (const tables::ValueName& name : set)
    if (name.value == value) return std::string(name.name);
  return {};
}

std::string table_name(const tables::Table& table, std::uint64_t value, unsigned branch, std::uint64_t& unknown) {
  if (const auto* entry = table.find(static_cast<std::uint32_t>(value), branch)) return std::string(entry->name);
  ++unknown;
  return {};
}

// Commands without a public name are still known by the family they belong to.
std::string control_name(std::uint64_t value, unsigned branch, Unnamed& unnamed) {
  std::string name = table_name(tables::controls, value, branch, unnamed.controls);
  if (!name.empty()) return name;
  const auto control = static_cast<std::uint32_t>(value);
  const auto* family = tables::interfaces.find(control >> 8, branch);
  if (family == nullptr) family = tables::classes.find(control >> 16, branch);
  return family == nullptr ? std::string() : "a command of " + std::string(family->name);
}

std::string meaning_of(const LayoutField& field, std::uint64_t value, unsigned branch, Unnamed& unnamed) {
  switch (field.type) {
    case FieldType::kStatus:
      return table_name(tables::statuses, value, branch, unnamed.statuses);
    case FieldType::kClass:
      return table_name(tables::classes, value, branch, unnamed.classes);
    case FieldType::kControl:
      return control_name(value, branch, unnamed);
    case FieldType::kNvkms:
      return table_name(tables::nvkms, value, branch, unnamed.enums);
    case FieldType::kFlags:
      return field.ref == tables::kNoRef ? std::string() : flag_names(tables::value_set(field.ref), value, unnamed);
    case FieldType::kEnum: {
      std::string name = enum_name(tables::value_set(field.ref), value);
      if (name.empty()) ++unnamed.enums;
      return name;
    }
    case FieldType::kBytes:
      return binary_multiple(value);
    case FieldType::kLimit:
      return value == ~std::uint64_t{0} ? std::string() : decimal(value + 1) + " bytes";
    default:
      return {};
  }
}

std::string text_of(const LayoutField& field, std::uint64_t value, unsigned width) {
  switch (field.type) {
    case FieldType::kNumber:
    case FieldType::kBytes:
    case FieldType::kNs:
    case FieldType::kNvkms:
    case FieldType::kEnum:
      return decimal(value);
    case FieldType::kSigned:
    case FieldType::kFd:
      return std::to_string(sign_extended(value, width));
    case FieldType::kBool:
      // Anything else than 0 and 1 is not what the driver means by it: say so.
      return value == 0 ? "false" : value == 1 ? "true" : decimal(value);
    case FieldType::kHandle:
    case FieldType::kStatus:
    case FieldType::kClass:
    case FieldType::kControl:
      return hex_number(value, 2 * width);
    default:
      return hex_number(value, 1);
  }
}

std::string uuid_text(const std::byte* at) {
  // As nvidia-smi prints it, but for the "GPU-" that only some of them have.
  static constexpr std::array<unsigned, 5> kGroups = {4, 2, 2, 2, 6};
  std::string out;
  for (const unsigned group : kGroups) {
    if (!out.empty()) out += '-';
    out += hex_bytes(at, group);
    at += group;
  }
  return out;
}

}  // namespace

std::uint64_t load_number(const std::byte* at, unsigned width) {
  std::uint64_t value = 0;
  std::memcpy(&value, at, width <= sizeof value ? width : sizeof value);  // little endian on both sides
  return value;
}

std::string hex_number(std::uint64_t value, unsigned digits) {
  std::array<char, 16> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, 16);
  std::string out = "0x";
  const auto length = static_cast<unsigned>(end - buffer.data());
  if (length < digits) out.append(digits - length, '0');
  return out.append(buffer.data(), end);
}

std::string hex_bytes(const std::byte* at, std::size_t count) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    out += kDigits[std::to_integer<unsigned>(at[i]) >> 4];
    out += kDigits[std::to_integer<unsigned>(at[i]) & 15];
  }
  return out;
}

bool is_numeric(FieldType type) {
  switch (type) {
    case FieldType::kNumber:
    case FieldType::kSigned:
    case FieldType::kBytes:
    case FieldType::kNs:
    case FieldType::kBool:
    case FieldType::kFd:
    case FieldType::kNvkms:
    case FieldType::kEnum:
      return true;
    default:
      return false;
  }
}

std::string_view unit_of(FieldType type) {
  if (type == FieldType::kBytes || type == FieldType::kOffset || type == FieldType::kLimit) return "bytes";
  return type == FieldType::kNs ? "ns" : std::string_view{};
}

model::FieldValue read_value(const LayoutField& field, const std::byte* at, std::uint32_t available, unsigned branch,
                             Unnamed& unnamed) {
  model::FieldValue value;
  const unsigned width = field.bytes / field.count;
  if (field.type == FieldType::kRaw) {
    value.items.push_back(hex_bytes(at, available));
    return value;
  }
  if (field.type == FieldType::kText) {
    const std::string_view all(reinterpret_cast<const char*>(at), available);
    value.items.emplace_back(all.substr(0, all.find('\0')));
    return value;
  }
  const std::uint32_t whole = available / width;
  if (field.type == FieldType::kUuid) {
    std::uint32_t used = whole;
    static constexpr std::array<std::byte, 16> kZero{};
    while (used > 1 && std::memcmp(at + 16 * (used - 1), kZero.data(), 16) == 0) --used;
    for (std::uint32_t i = 0; i < used; ++i) value.items.push_back(uuid_text(at + 16 * i));
    return value;
  }
  std::uint32_t used = whole;
  while (used > 1 && load_number(at + (used - 1) * width, width) == 0) --used;
  for (std::uint32_t i = 0; i < used; ++i) {
    const std::uint64_t number = load_number(at + i * width, width);
    value.items.push_back(text_of(field, number, width));
    // Of an array a name is given for the only element that is there.
    if (used == 1) value.meaning = meaning_of(field, number, branch, unnamed);
  }
  return value;
}

}  // namespace gpuwatch::decode
