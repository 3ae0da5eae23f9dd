// SPDX-License-Identifier: Apache-2.0
// Alphabets and lengths of the ids in cgroup paths. Pure functions of bytes;
// what a word means at its place is container.cpp's.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gpuwatch::attribute::words {

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
inline bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f');
}
inline bool is_alnum(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

inline bool all_hex(std::string_view text, std::size_t length) {
  return text.size() == length && std::all_of(text.begin(), text.end(), is_hex);
}

inline bool is_id64(std::string_view text) {
  return all_hex(text, 64);
}

// Groups of hex digits, all joined by the same character.
template <std::size_t N>
bool is_grouped(std::string_view text, const std::size_t (&groups)[N], bool underscores) {
  std::size_t at = 0;
  char joint = '\0';
  for (std::size_t i = 0; i < N; ++i) {
    if (i != 0) {
      if (at >= text.size()) return false;
      const char c = text[at++];
      if (c != '-' && !(underscores && c == '_')) return false;
      if (joint != '\0' && c != joint) return false;
      joint = c;
    }
    if (text.size() - at < groups[i] || !all_hex(text.substr(at, groups[i]), groups[i])) return false;
    at += groups[i];
  }
  return at == text.size();
}

inline constexpr std::size_t kUuid[] = {8, 4, 4, 4, 12};
inline constexpr std::size_t kGardenGuid[] = {8, 4, 4, 4, 4};

inline bool is_uuid(std::string_view text) {
  return is_grouped(text, kUuid, false);
}

// A pod from the API has a UUID, a static pod the MD5 of its manifest.
inline bool is_pod_uid(std::string_view text) {
  return is_grouped(text, kUuid, true) || all_hex(text, 32);
}

// BuildKit's: 128 bits in base 36.
inline bool is_buildkit_id(std::string_view text) {
  return text.size() == 25 &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_digit(c) || (c >= 'a' && c <= 'z'); });
}

// Names of LXC containers, machines, tasks: what a host name or an instance of
// LXD, with the project before it, may hold.
inline bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 128 && is_alnum(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; });
}

// Likewise with systemd's escapes, which may stand for a dash only.
inline bool is_escaped_name(std::string_view text) {
  if (text.empty() || text.size() > 255) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      if (text.substr(i, 4) != "\\x2d") return false;
      i += 3;
    } else if (!is_alnum(text[i]) && text[i] != '_' && text[i] != '.' && !(text[i] == '-' && i != 0)) {
      return false;
    }
  }
  return true;
}

// What lies between prefix and suffix; empty where they do not fit.
inline std::string_view between(std::string_view text, std::string_view prefix, std::string_view suffix) {
  if (text.size() <= prefix.size() + suffix.size() || !text.starts_with(prefix) || !text.ends_with(suffix)) return {};
  return text.substr(prefix.size(), text.size() - prefix.size() - suffix.size());
}

// Digits only, none too many; nothing before, nothing after.
inline std::optional<std::uint32_t> number(std::string_view text) {
  if (text.empty() || !is_digit(text.front()) || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Name of a unit of the kinds that hold processes.
inline bool is_unit(std::string_view text) {
  if (text.size() > 255) return false;
  const std::size_t dot = text.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return false;
  const std::string_view kind = text.substr(dot + 1);
  if (kind != "service" && kind != "scope" && kind != "socket" && kind != "mount" && kind != "swap") return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_alnum(c) || c == ':' || c == '-' || c == '_' || c == '.' || c == '\\' || c == '@';
  });
}

}  // namespace gpuwatch::attribute::words
