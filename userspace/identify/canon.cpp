// SPDX-License-Identifier: Apache-2.0
#include "identify/canon.h"

#include <algorithm>

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
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(length >> (8 * i));
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

std::string canonical_name(std::string_view name) {
  std::string out(name);
  // All three marks have this in common; most names do not have it.
  if (name.find('_') == std::string_view::npos) return out;
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

std::string seen_from(std::string_view reference, std::string_view self) {
  if (reference.starts_with("N:")) {
    const std::string_view name = reference.substr(2);
    if (name == self) return "N:@";
    if (name.size() > self.size() + 2 && name.front() == '$' && name.substr(1, self.size()) == self &&
        name[self.size() + 1] == '$')
      return "N:$@$" + std::string(name.substr(self.size() + 2));
  } else if (reference.starts_with("S:") && reference.size() > self.size() + 3 && reference.ends_with(self) &&
             reference[reference.size() - self.size() - 1] == '.') {
    return std::string(reference.substr(0, reference.size() - self.size())) + "@";
  }
  return std::string(reference);
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
  scratch_.clear();
  append_int(scratch_, value);
  batch_.add_copy(scratch_);
}

void ItemWriter::text(std::string_view text) {
  scratch_.clear();
  append_text(scratch_, text);
  batch_.add_copy(scratch_);
}

void ItemWriter::bytes(Bytes bytes) {
  constexpr std::size_t kCopyMax = 128;
  scratch_.clear();
  if (bytes.size() <= kCopyMax) {
    append_bytes(scratch_, bytes);
    batch_.add_copy(scratch_);
    return;
  }
  append_length(scratch_, bytes.size() + 1);
  scratch_ += 'b';
  batch_.add_copy(scratch_);
  batch_.add(bytes);
}

}  // namespace gpuwatch::identify
