// SPDX-License-Identifier: Apache-2.0
// Search for functions in copies of the code heap, by pieces of 32 bytes that no
// relocation touches.
#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>

#include "probe/code.h"

namespace gpuwatch::probe {

namespace {

constexpr std::size_t kPiece = 32;
constexpr std::size_t kStep = 16;
constexpr std::size_t kPlaceStep = 128;
constexpr std::size_t kPieces = 9;  // of one function, spread over it

struct Anchor {
  std::size_t function;
  std::size_t offset;
};

struct Candidate {
  std::uint64_t address;
  std::uint64_t differences;
  std::uint64_t first;
  bool leftover;
  bool same_function;  // half of what is not filling is there
};

std::string_view piece_at(identify::Bytes bytes, std::size_t at) {
  return identify::as_text(bytes.subspan(at, kPiece));
}

bool untouched(identify::Bytes mask, std::size_t at) {
  for (std::size_t i = at; i < at + kPiece; ++i)
    if (mask[i] != 0xff) return false;
  return true;
}

// Bytes of a text without the filling at its end, which repeats one unit (NOP):
// it is the same in all functions, and up to more than half of a short one.
std::size_t without_filling(identify::Bytes text) {
  std::size_t size = text.size() / kStep * kStep;
  if (size < 2 * kStep) return text.size();
  const identify::Bytes last = text.subspan(size - kStep, kStep);
  while (size > 0 && std::ranges::equal(text.subspan(size - kStep, kStep), last)) size -= kStep;
  return size >= kPiece ? size : text.size();
}

}  // namespace

std::vector<Place> locate(const std::vector<const Function*>& functions, const std::vector<Copy>& copies,
                          const std::vector<Copy>& before) {
  std::vector<std::vector<std::uint8_t>> masks;
  std::vector<std::size_t> own_bytes;  // of each without its filling
  std::unordered_map<std::string_view, std::vector<Anchor>> anchors;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    std::size_t unknown = 0;
    masks.push_back(mask_of(*functions[i], unknown));
    const identify::Bytes text = functions[i]->text;
    own_bytes.push_back(without_filling(text));
    if (text.size() < kPiece) continue;
    // The first piece, the last ones and some between, each moved on to where
    // no relocation is. Filling would be found everywhere.
    const std::size_t last = own_bytes[i] - kPiece;
    std::set<std::size_t> offsets;
    for (std::size_t n = 0; n < kPieces; ++n) {
      std::size_t at = last * n / (kPieces - 1) / kStep * kStep;
      while (at <= last && !untouched(masks[i], at)) at += kStep;
      if (at <= last) offsets.insert(at);
    }
    for (const std::size_t at : offsets) anchors[piece_at(text, at)].push_back({i, at});
  }
  std::vector<std::vector<Candidate>> candidates(functions.size());
  std::vector<std::set<std::uint64_t>> seen(functions.size());
  for (const Copy& copy : copies) {
    const identify::Bytes bytes = copy.bytes;
    for (std::size_t at = 0; at + kPiece <= bytes.size(); at += kStep) {
      const auto found = anchors.find(piece_at(bytes, at));
      if (found == anchors.end()) continue;
      for (const Anchor& anchor : found->second) {
        const identify::Bytes text = functions[anchor.function]->text;
        if (at < anchor.offset) continue;
        const std::size_t begin = at - anchor.offset;
        if ((copy.address + begin) % kPlaceStep != 0 || !identify::fits(begin, text.size(), bytes.size())) continue;
        if (!seen[anchor.function].insert(copy.address + begin).second) continue;
        const identify::Bytes earlier = resident_at(before, copy.address + begin, text.size());
        const bool leftover = !earlier.empty() && std::equal(earlier.begin(), earlier.end(),
                                                             bytes.begin() + static_cast<std::ptrdiff_t>(begin));
        Candidate candidate{copy.address + begin, 0, 0, leftover, false};
        std::uint64_t of_own = 0;
        const identify::Bytes& mask = masks[anchor.function];
        for (std::size_t unit = 0; unit < text.size(); unit += kStep) {
          const std::size_t size = std::min(kStep, text.size() - unit);
          const auto first =
              first_difference(text.subspan(unit, size), bytes.subspan(begin + unit, size), mask.subspan(unit, size));
          if (!first) continue;
          if (candidate.differences++ == 0) candidate.first = unit + *first;
          of_own += unit < own_bytes[anchor.function] ? 1 : 0;
        }
        candidate.same_function = of_own * 2 * kStep <= own_bytes[anchor.function];
        candidates[anchor.function].push_back(candidate);
      }
    }
  }
  // Exact places first, in the order of the file, so that twins take one each;
  // leftovers when nothing new will do, however well they fit: they may be
  // clean copies of code that was changed.
  std::vector<Place> places(functions.size());
  std::set<std::uint64_t> taken;
  for (std::vector<Candidate>& list : candidates)
    std::sort(list.begin(), list.end(), [](const Candidate& a, const Candidate& b) {
      return std::tuple(a.leftover, a.differences, a.address) < std::tuple(b.leftover, b.differences, b.address);
    });
  for (const bool leftover : {false, true})
    for (const bool exact : {true, false})
      for (std::size_t i = 0; i < functions.size(); ++i) {
        if (places[i].address != 0) continue;
        for (const Candidate& candidate : candidates[i]) {
          if (candidate.leftover != leftover || (candidate.differences == 0) != exact) continue;
          if (!candidate.same_function) continue;
          if (!taken.insert(candidate.address).second) continue;
          places[i] = {candidate.address, exact, candidate.differences, candidate.first};
          break;
        }
      }
  return places;
}

}  // namespace gpuwatch::probe
