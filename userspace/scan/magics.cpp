// SPDX-License-Identifier: Apache-2.0
#include "scan/magics.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

namespace gpuwatch::scan {

namespace {

constexpr std::uint64_t kContainerKey = 0x00100001BA55ED50;  // magic, version 1, header 16
constexpr std::size_t kContainerHead = 16, kEntryHead = 64;
constexpr std::uint32_t kElfMagic = 0x464c457f;
constexpr std::uint16_t kCudaMachine = 190;
constexpr std::string_view kVersion = ".version ", kTarget = ".target ";
constexpr std::size_t kTargetWithin = 64;
constexpr std::size_t kTextStep = 1 << 16;

template <typename T>
T load(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Headers may lie beyond the window.
template <std::size_t N>
std::optional<std::array<std::byte, N>> read_head(std::uint64_t address, std::uint64_t end, const ReadMemory& read) {
  std::array<std::byte, N> head;
  if (end - address < N || read(address, head) != N) return std::nullopt;
  return head;
}

std::optional<std::uint64_t> container_size(std::uint64_t address, std::uint64_t end, const ReadMemory& read) {
  const auto head = read_head<kContainerHead + 8>(address, end, read);
  if (!head) return std::nullopt;
  const auto body = load<std::uint64_t>(*head, 8);
  if (body < kEntryHead || body > end - address - kContainerHead) return std::nullopt;
  // Version and header size of the first entry.
  if (load<std::uint16_t>(*head, kContainerHead + 2) != 0x0101 ||
      load<std::uint32_t>(*head, kContainerHead + 4) < kEntryHead)
    return std::nullopt;
  return kContainerHead + body;
}

std::optional<std::uint64_t> cubin_size(std::uint64_t address, std::uint64_t end, const ReadMemory& read) {
  const auto head = read_head<64>(address, end, read);
  if (!head) return std::nullopt;
  const auto abi = load<std::uint8_t>(*head, 7);
  if (load<std::uint8_t>(*head, 4) != 2 || load<std::uint8_t>(*head, 5) != 1 ||
      load<std::uint16_t>(*head, 18) != kCudaMachine || (abi != 0x33 && abi != 0x41) ||
      load<std::uint16_t>(*head, 52) != 64)
    return std::nullopt;
  const std::uint64_t room = end - address;
  const auto phoff = load<std::uint64_t>(*head, 32), shoff = load<std::uint64_t>(*head, 40);
  std::uint64_t sections = load<std::uint16_t>(*head, 60);
  const std::uint64_t segments = load<std::uint16_t>(*head, 56);
  if (sections == 0 && shoff != 0 && shoff < room) {  // the count lies in section 0
    const auto first = read_head<64>(address + shoff, end, read);
    if (!first) return std::nullopt;
    sections = load<std::uint64_t>(*first, 32);
  }
  if (sections > 1u << 24 || load<std::uint16_t>(*head, 58) != 64 || shoff > room || phoff > room ||
      64 * sections > room - shoff || 56 * segments > room - phoff)
    return std::nullopt;
  return std::max(shoff + 64 * sections, phoff + 56 * segments);
}

std::string_view text_at(std::span<const std::byte> window, std::size_t at) {
  return {reinterpret_cast<const char*>(window.data()) + at, window.size() - at};
}

// ".version 8.0" with ".target sm_" or ".target compute_" soon after.
bool ptx_begins(std::string_view text) {
  if (!text.starts_with(kVersion) || text.size() < kVersion.size() + 1 || text[kVersion.size()] < '1' ||
      text[kVersion.size()] > '9')
    return false;
  const std::string_view near = text.substr(0, kVersion.size() + kTargetWithin);
  const std::size_t target = near.find(kTarget);
  if (target == std::string_view::npos) return false;
  const std::string_view rest = text.substr(target + kTarget.size());
  return rest.starts_with("sm_") || rest.starts_with("compute_");
}

std::optional<std::uint64_t> ptx_size(std::uint64_t address, std::uint64_t end, const ReadMemory& read,
                                      std::uint64_t max_bytes) {
  std::vector<std::byte> step(kTextStep);
  for (std::uint64_t size = 0; size < max_bytes && address + size < end;) {
    const std::size_t want = static_cast<std::size_t>(std::min<std::uint64_t>(step.size(), end - address - size));
    const std::size_t got = read(address + size, std::span(step).first(want));
    const auto nul = std::find(step.begin(), step.begin() + static_cast<std::ptrdiff_t>(got), std::byte{0});
    size += static_cast<std::uint64_t>(nul - step.begin());
    if (nul != step.begin() + static_cast<std::ptrdiff_t>(got)) return size;
    if (got < want) return size;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Find> find_code(std::span<const std::byte> window, std::uint64_t address, std::uint64_t end,
                            const ReadMemory& read, std::uint64_t max_bytes) {
  std::vector<Find> finds;
  const auto add = [&](FindKind kind, std::uint64_t at, std::optional<std::uint64_t> bytes) {
    if (bytes && *bytes != 0 && *bytes <= max_bytes) finds.push_back({kind, at, *bytes});
    return bytes.has_value();
  };
  std::uint64_t skip_to = 0;  // what lies inside of a container belongs to it
  for (std::size_t at = 0; at + 8 <= window.size(); at += 8) {
    const auto key = load<std::uint64_t>(window, at);
    if (address + at < skip_to) continue;
    std::optional<std::uint64_t> bytes;
    if (key == kContainerKey) {
      bytes = container_size(address + at, end, read);
      if (add(FindKind::kContainer, address + at, bytes)) skip_to = address + at + *bytes;
    } else if (static_cast<std::uint32_t>(key) == kElfMagic) {
      bytes = cubin_size(address + at, end, read);
      if (add(FindKind::kCubin, address + at, bytes)) skip_to = address + at + *bytes;
    }
  }
  // Text need not be aligned; most of memory has no ".version".
  const std::string_view text = text_at(window, 0);
  for (std::size_t at = text.find(kVersion); at != std::string_view::npos; at = text.find(kVersion, at + 1)) {
    const bool inside = std::any_of(finds.begin(), finds.end(), [&](const Find& find) {
      return find.kind != FindKind::kPtx && address + at >= find.address && address + at < find.address + find.bytes;
    });
    if (!inside && ptx_begins(text.substr(at)))
      add(FindKind::kPtx, address + at, ptx_size(address + at, end, read, max_bytes));
  }
  std::sort(finds.begin(), finds.end(), [](const Find& a, const Find& b) { return a.address < b.address; });
  return finds;
}

}  // namespace gpuwatch::scan
