// SPDX-License-Identifier: Apache-2.0
// Makes untrusted bytes (comm, paths, arguments) safe for a terminal: control
// bytes, backslash, DEL and broken or dangerous UTF-8 become \xNN. Nothing
// that comes out can move a cursor, change a colour or start a new line.
#pragma once

#include <string>
#include <string_view>

namespace gpuwatch::base {

void append_escaped(std::string& out, std::string_view bytes);
std::string escaped(std::string_view bytes);

// Valid UTF-8 for JSON: bytes that are no UTF-8 become U+FFFD.
std::string to_utf8(std::string_view bytes);

}  // namespace gpuwatch::base
