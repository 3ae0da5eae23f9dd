// SPDX-License-Identifier: Apache-2.0
// Text that fits into cells of a terminal: untrusted bytes made harmless, cut or
// filled to a number of columns; ages and sizes in few characters. Asks no
// locale, so that a screen is the same everywhere. Draws nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpuwatch::cli::top {

// No control byte, nothing that moves the cursor or has no width. `ascii`: the
// terminal shows no UTF-8, everything above 127 becomes \xNN.
std::string safe(std::string_view bytes, bool ascii);

// Of text that safe() made.
std::size_t columns_of(std::string_view text);

enum class Side { kLeft, kRight };

// Exactly `columns` wide: filled with blanks, or cut with a mark.
std::string fit(std::string_view text, std::size_t columns, bool ascii, Side side = Side::kLeft);

std::string age_text(std::uint64_t ns);      // 0.3s 12s 3m12s 2h05m 3d04h
std::string size_text(std::uint64_t bytes);  // 0 512K 414M 6.1G
std::string rate_text(double per_second);    // 0 0.4 12 1729 12k
std::string clock_text(std::uint64_t time_ns, std::int64_t realtime_offset_ns, std::int32_t utc_offset_s);  // 02:04:38

}  // namespace gpuwatch::cli::top
