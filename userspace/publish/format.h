// SPDX-License-Identifier: Apache-2.0
// Number, time and name formatting shared by the text and JSON writers. Appends
// to a buffer; no locale, no allocation beyond the buffer's growth.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/call.h"

namespace gpuwatch::publish::format {

void append_number(std::string& out, std::uint64_t value);
void append_signed(std::string& out, std::int64_t value);
void append_hex(std::string& out, std::uint64_t value);                      // 0x1f
void append_padded(std::string& out, std::uint64_t value, unsigned digits);  // leading zeros

// "EINVAL", or "errno 4095" where the C library has no name.
void append_errno(std::string& out, std::int64_t negative_errno);

// 22:31:05.123456, or seconds since boot without an offset; `fraction` digits.
void append_time(std::string& out, std::uint64_t time_ns, std::int64_t realtime_offset_ns, std::int32_t utc_offset_s,
                 unsigned fraction);
// 12us, 1.204ms, 2.000s
void append_duration(std::string& out, std::uint64_t ns);

void append_node(std::string& out, std::string_view family, unsigned node_kind, std::uint32_t rdev);

// Pads `out` with blanks until `width` columns lie behind `from`.
void pad_to(std::string& out, std::size_t from, std::size_t width);

std::string_view state_name(std::uint32_t event);
std::string_view image_kind_name(std::uint32_t kind);  // "unknown" for numbers beyond

// Calls `say` with the name of each flag of a gpuwatch_rec_image.
template <typename Say>
void each_image_flag(std::uint32_t flags, Say&& say) {
  static constexpr std::string_view kNames[] = {"wrapped", "sized",       "fault",     "malformed",
                                                "too_big", "over_budget", "no_memory", "deadline"};
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    if ((flags >> i & 1) != 0) say(kNames[i]);
}

}  // namespace gpuwatch::publish::format
