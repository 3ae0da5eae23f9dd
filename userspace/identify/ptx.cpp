// SPDX-License-Identifier: Apache-2.0
#include "identify/ptx.h"

#include <algorithm>
#include <cstring>

namespace gpuwatch::identify {

namespace {

constexpr std::size_t kTargetWithin = 64;
constexpr std::size_t kLeadMax = 4096;
constexpr std::size_t kPiece = 32;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_text(std::uint8_t c) {
  return c == '\n' || c == '\t' || c == '\r' || (c >= 0x20 && c < 0x7f);
}

bool is_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// Lines are short: plain loops beat searches here.
std::string_view trimmed(std::string_view line) {
  std::size_t first = 0;
  std::size_t last = line.size();
  while (first < last && is_blank(line[first])) ++first;
  while (last > first && is_blank(line[last - 1])) --last;
  return line.substr(first, last - first);
}

// Short copies by pieces of a fixed size are one instruction each; `out` and
// `from` have room for the last one. Gives the end.
char* copy_line(char* out, const char* from, std::size_t size, std::size_t room) {
  if (room < ((size + kPiece - 1) & ~(kPiece - 1))) {
    std::memcpy(out, from, size);
    return out + size;
  }
  for (std::size_t at = 0; at < size; at += kPiece) std::memcpy(out + at, from + at, kPiece);
  return out + size;
}

}  // namespace

std::optional<PtxHeader> ptx_header(Bytes bytes) {
  const std::string_view text =
      as_text(bytes.first(std::min<std::size_t>(bytes.size(), kPtxMark.size() + 16 + kTargetWithin)));
  if (!text.starts_with(kPtxMark)) return std::nullopt;
  std::size_t at = kPtxMark.size();
  const std::size_t major = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  if (at == major || at - major > 2 || at >= text.size() || text[at] != '.') return std::nullopt;
  const std::size_t minor = ++at;
  while (at < text.size() && is_digit(text[at])) ++at;
  if (at == minor || at - minor > 2) return std::nullopt;
  // The text ends at a NUL, what follows belongs to another.
  const std::string_view rest = text.substr(at, std::min(kTargetWithin, text.substr(at).find('\0')));
  for (const std::string_view target : {".target sm_", ".target compute_"}) {
    const std::size_t found = rest.find(target);
    if (found == std::string_view::npos) continue;
    PtxHeader header;
    std::size_t digit = found + target.size();
    for (; digit < rest.size() && is_digit(rest[digit]) && header.sm < 1000; ++digit)
      header.sm = header.sm * 10 + static_cast<std::uint32_t>(rest[digit] - '0');
    if (header.sm == 0) return std::nullopt;
    if (digit < rest.size() && (rest[digit] == 'a' || rest[digit] == 'f')) header.suffix = rest[digit];
    return header;
  }
  return std::nullopt;
}

std::size_t ptx_lead(Bytes before) {
  std::size_t lead = 0;
  while (lead < before.size() && lead < kLeadMax && is_text(before[before.size() - 1 - lead])) ++lead;
  // Text of another kind may lie in front: the lead starts with a line of its
  // own, or with a comment.
  const std::string_view text = as_text(before.last(lead));
  if (text.empty() || lead == before.size()) return lead;
  const std::string_view start = trimmed(text);
  return start.empty() || start.starts_with("//") || start.starts_with("/*") ? lead : 0;
}

PtxHeader find_ptx_header(Bytes image) {
  const std::string_view text = as_text(image);
  for (std::size_t at = text.find(kPtxMark); at != std::string_view::npos; at = text.find(kPtxMark, at + 1))
    if (const auto header = ptx_header(image.subspan(at))) return *header;
  return {};
}

Bytes ptx_text(Bytes image) {
  while (!image.empty() && image.back() == 0) image = image.first(image.size() - 1);
  return image;
}

std::size_t ptx_normal_form(Bytes image, std::span<std::uint8_t> room) {
  std::string clean;
  std::string_view text = as_text(image);
  if (text.find('\0') != std::string_view::npos) {
    clean.reserve(text.size());
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\0'), text.size());
      clean += text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    text = clean;
  }
  char* const begin = reinterpret_cast<char*>(room.data());
  char* out = begin;
  bool in_debug = false;
  std::size_t comment = text.find("//");  // the next one; most texts have few
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (comment < at) comment = text.find("//", at);
    const std::string_view line = trimmed(text.substr(at, std::min(comment, end) - at));
    at = end + 1;
    if (in_debug) {
      if (line.find('}') != std::string_view::npos) in_debug = false;
      continue;
    }
    if (line.empty()) continue;
    if (line.front() == '.') {
      if (line.starts_with(".file") || line.starts_with(".loc")) continue;
      if (line.starts_with(".section") && line.find(".debug") != std::string_view::npos) {
        in_debug = line.find('}') == std::string_view::npos;
        continue;
      }
    }
    if (out != begin) *out++ = '\n';
    out = copy_line(out, line.data(), line.size(), static_cast<std::size_t>(text.data() + text.size() - line.data()));
  }
  return static_cast<std::size_t>(out - begin);
}

std::string ptx_normal_form(Bytes image) {
  std::string out(ptx_normal_room(image.size()), '\0');
  out.resize(ptx_normal_form(image, {reinterpret_cast<std::uint8_t*>(out.data()), out.size()}));
  return out;
}

}  // namespace gpuwatch::identify
