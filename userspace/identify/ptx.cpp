// SPDX-License-Identifier: Apache-2.0
#include "identify/ptx.h"

#include <algorithm>

namespace gpuwatch::identify {

namespace {

constexpr std::size_t kTargetWithin = 64;
constexpr std::size_t kLeadMax = 4096;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_text(std::uint8_t c) {
  return c == '\n' || c == '\t' || c == '\r' || (c >= 0x20 && c < 0x7f);
}

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r\f\v\n";
  const std::size_t first = line.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(kBlank) - first + 1);
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

std::string ptx_normal_form(Bytes image) {
  std::string out;
  std::string clean;
  clean.reserve(image.size());
  for (const std::uint8_t c : image)
    if (c != 0) clean += static_cast<char>(c);
  const std::string_view text = clean;
  bool in_debug = false;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    line = trimmed(line.substr(0, line.find("//")));
    if (in_debug) {
      if (line.find('}') != std::string_view::npos) in_debug = false;
      continue;
    }
    if (line.empty() || line.starts_with(".file") || line.starts_with(".loc")) continue;
    if (line.starts_with(".section") && line.find(".debug") != std::string_view::npos) {
      in_debug = line.find('}') == std::string_view::npos;
      continue;
    }
    if (!out.empty()) out += '\n';
    out += line;
  }
  return out;
}

}  // namespace gpuwatch::identify
