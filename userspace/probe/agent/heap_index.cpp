// SPDX-License-Identifier: Apache-2.0
#include "probe/agent/heap_index.h"

#include <algorithm>
#include <functional>

namespace gpuwatch::probe::agent {

namespace {

constexpr std::size_t kPiece = 32;
constexpr std::size_t kStep = 16;
constexpr std::size_t kPieces = 16;  // of one function

std::uint64_t hash_at(identify::Bytes bytes, std::size_t at) {
  return std::hash<std::string_view>{}(identify::as_text(bytes.subspan(at, kPiece)));
}

// Ends of functions repeat one unit, which is the same everywhere.
std::size_t without_filling(identify::Bytes text) {
  std::size_t size = text.size() / kStep * kStep;
  while (size >= kPiece + kStep &&
         std::ranges::equal(text.subspan(size - kStep, kStep), text.subspan(size - kPiece, kStep)))
    size -= kStep;
  return size;
}

}  // namespace

HeapIndex::HeapIndex(const std::vector<Copy>& copies) {
  for (const Copy& copy : copies) {
    const identify::Bytes bytes = copy.bytes;
    std::size_t zeros = 0;  // that end where the next unit begins
    for (std::size_t at = 0; at + kStep <= bytes.size(); at += kStep) {
      const identify::Bytes unit = bytes.subspan(at, kStep);
      const bool zero = std::all_of(unit.begin(), unit.end(), [](std::uint8_t byte) { return byte == 0; });
      zeros = zero ? zeros + kStep : 0;
      if (at >= kStep && zeros < kPiece) pieces_.push_back(hash_at(bytes, at - kStep));
    }
  }
  std::sort(pieces_.begin(), pieces_.end());
  pieces_.erase(std::unique(pieces_.begin(), pieces_.end()), pieces_.end());
}

bool HeapIndex::may_hold(const Function& function) const {
  const identify::Bytes text = function.text;
  const std::size_t own = without_filling(text);
  if (own < kPiece) return true;
  std::size_t unknown = 0;
  const std::vector<std::uint8_t> mask = mask_of(function, unknown);
  std::size_t looked = 0, there = 0, next = 0;
  const std::size_t last = own - kPiece;
  for (std::size_t n = 0; n < kPieces; ++n) {
    std::size_t at = std::max(next, last * n / (kPieces - 1) / kStep * kStep);
    const auto touched = [&] {
      return std::any_of(mask.begin() + static_cast<std::ptrdiff_t>(at),
                         mask.begin() + static_cast<std::ptrdiff_t>(at + kPiece),
                         [](std::uint8_t bits) { return bits != 0xff; });
    };
    while (at <= last && touched()) at += kStep;
    if (at > last) break;
    ++looked;
    there += std::binary_search(pieces_.begin(), pieces_.end(), hash_at(text, at)) ? 1 : 0;
    next = at + kStep;
  }
  return 2 * there >= looked;
}

bool HeapIndex::may_hold(const Code& code) const {
  return std::any_of(code.functions.begin(), code.functions.end(),
                     [&](const Function& function) { return may_hold(function); });
}

}  // namespace gpuwatch::probe::agent
