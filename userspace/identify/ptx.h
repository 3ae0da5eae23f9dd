// SPDX-License-Identifier: Apache-2.0
// PTX text: where one begins and ends among other bytes, which architecture it
// is for, and a normal form without comments and debug lines. Nothing is
// compiled or parsed beyond lines.
#pragma once

#include <optional>
#include <string>

#include "identify/bytes.h"
#include "identify/limits.h"

namespace gpuwatch::identify {

struct PtxHeader {
  std::uint32_t sm = 0;
  char suffix = 0;
};

inline constexpr std::string_view kPtxMark = ".version ";

// Is ".version D.D" at the start of `text`, with ".target sm_" or
// ".target compute_" within 64 bytes?
std::optional<PtxHeader> ptx_header(Bytes text);

// How many bytes before a mark belong to the text: comments that lead it. Only
// `before`, which ends where the mark begins, is looked at.
std::size_t ptx_lead(Bytes before);

// The header of an image that is known to be PTX: it may lie behind comments,
// or be missing.
PtxHeader find_ptx_header(Bytes image);

// NULs, // comments, blank lines, .file and .loc lines and debug sections gone,
// lines trimmed and joined by \n.
std::string ptx_normal_form(Bytes image);
// The same into `room`, which has ptx_normal_room() bytes; gives the length.
std::size_t ptx_normal_form(Bytes image, std::span<std::uint8_t> room);
constexpr std::size_t ptx_normal_room(std::size_t image_bytes) {
  return image_bytes + 64;
}

// Without the NULs at its end.
Bytes ptx_text(Bytes image);

}  // namespace gpuwatch::identify
