// SPDX-License-Identifier: Apache-2.0
// Writers of JSON values into a caller's buffer, for the files of this room.
// Keys are this program's own and written as they are; values may be untrusted
// bytes and come out as valid UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/escape.h"
#include "publish/format.h"

namespace gpuwatch::publish::json {

inline bool is_plain(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f || c == '"' || c == '\\')
      return false;
  return true;
}

inline void append_string(std::string& out, std::string_view bytes) {
  out += '"';
  if (is_plain(bytes)) {
    out += bytes;
  } else {
    for (const char c : base::to_utf8(bytes)) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        out += '\\';
        out += c;
      } else if (byte < 0x20 || byte == 0x7f) {
        static constexpr char kDigits[] = "0123456789abcdef";
        out += "\\u00";
        out += kDigits[byte >> 4];
        out += kDigits[byte & 15];
      } else {
        out += c;
      }
    }
  }
  out += '"';
}

// Keys and values of one object, opened and closed by its lifetime. A line ends
// with its newline, an object inside of another has none.
class Object {
 public:
  explicit Object(std::string& out, std::string_view end = "}\n") : out_(out), end_(end) { out_ += '{'; }
  ~Object() { out_ += end_; }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  std::string& key(std::string_view name) {
    if (!first_) out_ += ',';
    first_ = false;
    out_ += '"';
    out_ += name;
    out_ += "\":";
    return out_;
  }
  void number(std::string_view name, std::uint64_t value) { format::append_number(key(name), value); }
  void signed_number(std::string_view name, std::int64_t value) { format::append_signed(key(name), value); }
  void flag(std::string_view name, bool value) { key(name) += value ? "true" : "false"; }
  void text(std::string_view name, std::string_view value) { append_string(key(name), value); }
  void text_if(std::string_view name, std::string_view value) {
    if (!value.empty()) text(name, value);
  }
  void number_if(std::string_view name, std::uint64_t value) {
    if (value != 0) number(name, value);
  }
  // Handles, numbers and addresses, as people write them.
  void hex(std::string_view name, std::uint64_t value) {
    format::append_hex(key(name) += '"', value);
    out_ += '"';
  }
  void errno_name(std::string_view name, std::int64_t value) {
    if (value >= 0) return;
    format::append_errno(key(name) += '"', value);
    out_ += '"';
  }

 private:
  std::string& out_;
  std::string_view end_;
  bool first_ = true;
};

}  // namespace gpuwatch::publish::json
