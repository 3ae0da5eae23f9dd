// SPDX-License-Identifier: Apache-2.0
#include "identify/canon.h"

#include <algorithm>
#include <cstring>

namespace gpuwatch::identify {

namespace {

constexpr std::size_t kHashDigits = 8;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f');
}

void append_length(std::string& out, std::uint64_t length) {
  char bytes[8];
  std::memcpy(bytes, &length, sizeof bytes);  // little endian, as all that is read here
  out.append(bytes, sizeof bytes);
}

// Zeroes the digits at `at` when they are a hash with '_' behind.
void blank(std::string& name, std::size_t at) {
  if (!fits(at, kHashDigits + 1, name.size()) || name[at + kHashDigits] != '_') return;
  if (std::all_of(name.begin() + static_cast<std::ptrdiff_t>(at),
                  name.begin() + static_cast<std::ptrdiff_t>(at + kHashDigits), is_hex))
    name.replace(at, kHashDigits, kHashDigits, '0');
}

void blank_after(std::string& name, std::string_view mark) {
  for (std::size_t at = name.find(mark); at != std::string::npos; at = name.find(mark, at + 1))
    blank(name, at + mark.size());
}

}  // namespace

bool holds_path_hash(std::string_view name) {
  for (std::size_t at = name.find('_'); at != std::string_view::npos; at = name.find('_', at + 1)) {
    const std::string_view rest = name.substr(at);
    if (rest.size() < 11) return false;
    if ((rest[1] == 'G' && rest.starts_with("_GLOBAL__N__")) || (rest[1] == 'I' && rest.starts_with("_INTERNAL_")) ||
        (rest[1] == '_' && rest.starts_with("__nv_static_")))
      return true;
  }
  return false;
}

std::string canonical_name(std::string_view name) {
  std::string out(name);
  blank_after(out, "_GLOBAL__N__");
  blank_after(out, "_INTERNAL_");
  constexpr std::string_view kStatic = "__nv_static_";
  for (std::size_t at = out.find(kStatic); at != std::string::npos; at = out.find(kStatic, at + 1)) {
    std::size_t end = at + kStatic.size();
    const std::size_t digits = end;
    while (end < out.size() && is_digit(out[end])) ++end;
    if (end > digits && out.compare(end, 2, "__") == 0) blank(out, end + 2);
  }
  return out;
}

std::string_view CanonicalNames::get(std::string_view name) {
  if (!holds_path_hash(name)) return name;
  return changed_.emplace_back(canonical_name(name));
}

void append_symbol(std::string& out, std::string_view name, std::string_view self) {
  out += "N:";
  if (!self.empty() && name == self) {
    out += '@';
  } else if (!self.empty() && name.size() > self.size() + 2 && name.front() == '$' &&
             name.substr(1, self.size()) == self && name[self.size() + 1] == '$') {
    out += "$@$";
    out += name.substr(self.size() + 2);
  } else {
    out += name;
  }
}

void append_section(std::string& out, std::string_view name, std::string_view self) {
  out += "S:";
  if (!self.empty() && name.size() > self.size() + 1 && name.ends_with(self) &&
      name[name.size() - self.size() - 1] == '.') {
    out += name.substr(0, name.size() - self.size());
    out += '@';
  } else {
    out += name;
  }
}

void append_int(std::string& out, std::uint64_t value) {
  append_length(out, 9);
  out += 'i';
  append_length(out, value);
}

void append_text(std::string& out, std::string_view text) {
  append_length(out, text.size() + 1);
  out += 's';
  out += text;
}

void append_bytes(std::string& out, Bytes bytes) {
  append_length(out, bytes.size() + 1);
  out += 'b';
  out += as_text(bytes);
}

void ItemWriter::integer(std::uint64_t value) {
  const std::uint64_t length = 9;
  std::uint8_t item[17];
  std::memcpy(item, &length, 8);
  item[8] = 'i';
  std::memcpy(item + 9, &value, 8);
  batch_.add_copy(Bytes(item));
}

void ItemWriter::head(char type, std::size_t size) {
  const std::uint64_t length = size + 1;
  std::uint8_t item[9];
  std::memcpy(item, &length, 8);
  item[8] = static_cast<std::uint8_t>(type);
  batch_.add_copy(Bytes(item));
}

void ItemWriter::text(std::string_view text) {
  head('s', text.size());
  batch_.add_copy(text);
}

void ItemWriter::bytes(Bytes bytes) {
  constexpr std::size_t kCopyMax = 128;
  head('b', bytes.size());
  if (bytes.size() <= kCopyMax)
    batch_.add_copy(bytes);
  else
    batch_.add(bytes);
}

}  // namespace gpuwatch::identify
