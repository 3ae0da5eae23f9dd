// SPDX-License-Identifier: Apache-2.0
// Untrusted text inside a line of columns: besides what base/escape.h makes
// harmless, blanks and quotes must not fake a column or end a quoted string.
#pragma once

#include <string>
#include <string_view>

#include "base/escape.h"

namespace gpuwatch::publish {

namespace detail {

inline void append_replacing(std::string& out, std::string_view bytes, char unwanted, std::string_view instead) {
  const std::size_t from = out.size();
  base::append_escaped(out, bytes);
  for (std::size_t at = out.find(unwanted, from); at != std::string::npos; at = out.find(unwanted, at + instead.size()))
    out.replace(at, 1, instead);
}

}  // namespace detail

// One word: blanks become \x20.
inline void append_word(std::string& out, std::string_view bytes) {
  detail::append_replacing(out, bytes, ' ', "\\x20");
}

inline void append_quoted(std::string& out, std::string_view bytes) {
  out += '"';
  detail::append_replacing(out, bytes, '"', "\\x22");
  out += '"';
}

}  // namespace gpuwatch::publish
