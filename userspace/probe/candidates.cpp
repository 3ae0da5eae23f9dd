// SPDX-License-Identifier: Apache-2.0
#include "probe/candidates.h"

#include <algorithm>
#include <bitset>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

namespace gpuwatch::probe {

namespace {

constexpr std::size_t kPiece = 32;
constexpr std::size_t kStep = 16;
constexpr std::size_t kPlaceStep = 128;
constexpr std::size_t kPieces = 9;        // of one function, spread over it
constexpr std::size_t kSharedMax = 8;     // functions with the same piece
constexpr std::size_t kRarest = 3;        // pieces that are taken however many share them
constexpr std::size_t kCandidates = 256;  // of one text, and some for each function that has it

std::string_view piece_at(identify::Bytes bytes, std::size_t at) {
  return identify::as_text(bytes.subspan(at, kPiece));
}

bool untouched(identify::Bytes mask, std::size_t at) {
  for (std::size_t i = at; i < at + kPiece && i < mask.size(); ++i)
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

bool same_bytes(identify::Bytes a, identify::Bytes b, identify::Bytes mask) {
  if (mask.empty()) return std::memcmp(a.data(), b.data(), a.size()) == 0;
  // In strides, so that a compiler can do many bytes at a time and an early
  // difference ends it.
  constexpr std::size_t kStride = 256;
  for (std::size_t at = 0; at < a.size(); at += kStride) {
    const std::size_t end = std::min(at + kStride, a.size());
    std::uint8_t different = 0;
    for (std::size_t i = at; i < end; ++i) different = static_cast<std::uint8_t>(different | ((a[i] ^ b[i]) & mask[i]));
    if (different != 0) return false;
  }
  return true;
}

std::size_t hash_of(const Function& function, identify::Bytes mask) {
  if (mask.empty()) return std::hash<std::string_view>()(identify::as_text(function.text));
  std::vector<std::uint8_t> text = function.text;
  for (std::size_t i = 0; i < text.size(); ++i) text[i] &= mask[i];
  return std::hash<std::string_view>()(identify::as_text(text));
}

// The first place that is a multiple of kPlaceStep, from the copy's begin.
std::size_t first_place(const Copy& copy) {
  return static_cast<std::size_t>((kPlaceStep - copy.address % kPlaceStep) % kPlaceStep);
}

// Offsets of pieces that no relocation touches: the first, the last and some
// between, each moved on. Filling would be found everywhere.
std::set<std::size_t> pieces_of(const Likes& likes) {
  std::set<std::size_t> offsets;
  if (likes.own_bytes < kPiece) return offsets;
  const std::size_t last = likes.own_bytes - kPiece;
  for (std::size_t n = 0; n < kPieces; ++n) {
    std::size_t at = last * n / (kPieces - 1) / kStep * kStep;
    while (at <= last && !untouched(likes.mask, at)) at += kStep;
    if (at <= last) offsets.insert(at);
  }
  return offsets;
}

// Most places hold no piece of any function: told without a look at the table.
class Sieve {
 public:
  void add(std::string_view piece) { bits_.set(slot(piece.data())); }
  bool may_have(const std::uint8_t* bytes) const { return bits_.test(slot(reinterpret_cast<const char*>(bytes))); }

 private:
  static std::size_t slot(const char* bytes) {
    std::uint64_t word;
    std::memcpy(&word, bytes, sizeof word);
    return static_cast<std::size_t>(word * 0x9e3779b97f4a7c15ull >> 46);
  }
  std::bitset<1 << 18> bits_;
};

}  // namespace

identify::Bytes resident_at(const std::vector<Copy>& copies, std::uint64_t address, std::uint64_t bytes) {
  for (const Copy& copy : copies)
    if (address >= copy.address && identify::fits(address - copy.address, bytes, copy.bytes.size()))
      return identify::Bytes(copy.bytes).subspan(address - copy.address, bytes);
  return {};
}

Candidates::Candidates(const std::vector<const Function*>& functions, const std::vector<Copy>& copies,
                       const std::vector<Copy>& before)
    : copies_(copies), before_(before) {
  std::unordered_map<std::size_t, std::vector<std::size_t>> by_hash;
  for (const Function* function : functions) {
    std::vector<std::uint8_t> mask;
    std::size_t unknown = 0;
    if (!function->relocations.empty()) mask = mask_of(*function, unknown);
    std::vector<std::size_t>& list = by_hash[hash_of(*function, mask)];
    const auto same = std::find_if(list.begin(), list.end(), [&](std::size_t i) {
      const Likes& likes = likes_[i];
      return likes.function->text.size() == function->text.size() && likes.mask == mask &&
             same_bytes(likes.function->text, function->text, mask);
    });
    if (same != list.end()) {
      like_of_.push_back(*same);
      ++likes_[*same].members;
      continue;
    }
    list.push_back(likes_.size());
    like_of_.push_back(likes_.size());
    likes_.push_back({function, std::move(mask), without_filling(function->text), 1, {}});
  }
}

bool Candidates::is_leftover(const Copy& copy, std::size_t begin, std::size_t bytes) const {
  const identify::Bytes earlier = resident_at(before_, copy.address + begin, bytes);
  return !earlier.empty() && std::memcmp(earlier.data(), copy.bytes.data() + begin, bytes) == 0;
}

// False when less than half of what is not filling is there.
bool Candidates::compare(const Likes& likes, const Copy& copy, std::size_t begin, Candidate& out) const {
  const identify::Bytes text = likes.function->text;
  const identify::Bytes there = identify::Bytes(copy.bytes).subspan(begin, text.size());
  out = {copy.address + begin, 0, 0, false};
  std::uint64_t of_own = 0;
  for (std::size_t unit = 0; unit < text.size(); unit += kStep) {
    const std::size_t size = std::min(kStep, text.size() - unit);
    const identify::Bytes mask =
        likes.mask.empty() ? identify::Bytes{} : identify::Bytes(likes.mask).subspan(unit, size);
    if (same_bytes(text.subspan(unit, size), there.subspan(unit, size), mask)) continue;
    if (out.differences++ == 0)
      out.first = unit + first_difference(text.subspan(unit, size), there.subspan(unit, size), mask).value_or(0);
    of_own += unit < likes.own_bytes ? 1 : 0;
    if (of_own * 2 * kStep > likes.own_bytes) return false;
  }
  out.leftover = is_leftover(copy, begin, text.size());
  return true;
}

void Candidates::find_exact() {
  // By the first piece without relocations; nearly all have it at their begin, so
  // that there are few offsets to look at.
  std::map<std::size_t, std::unordered_map<std::string_view, std::vector<std::size_t>>> anchors;
  for (std::size_t i = 0; i < likes_.size(); ++i) {
    const std::set<std::size_t> offsets = pieces_of(likes_[i]);
    if (!offsets.empty()) anchors[*offsets.begin()][piece_at(likes_[i].function->text, *offsets.begin())].push_back(i);
  }
  for (const auto& [offset, table] : anchors) {
    Sieve sieve;
    for (const auto& entry : table) sieve.add(entry.first);
    for (const Copy& copy : copies_) {
      const identify::Bytes bytes = copy.bytes;
      for (std::size_t begin = first_place(copy); begin + offset + kPiece <= bytes.size(); begin += kPlaceStep) {
        if (!sieve.may_have(bytes.data() + begin + offset)) continue;
        const auto found = table.find(piece_at(bytes, begin + offset));
        if (found == table.end()) continue;
        for (const std::size_t i : found->second) {
          Likes& likes = likes_[i];
          const std::size_t size = likes.function->text.size();
          if (likes.candidates.size() >= kCandidates + 4 * likes.members || !identify::fits(begin, size, bytes.size()))
            continue;
          if (!same_bytes(likes.function->text, bytes.subspan(begin, size), likes.mask)) continue;
          likes.candidates.push_back({copy.address + begin, 0, 0, is_leftover(copy, begin, size)});
        }
      }
    }
  }
  sort();
}

void Candidates::find_near(const std::vector<std::size_t>& functions) {
  struct Anchor {
    std::size_t likes, offset;
  };
  std::set<std::size_t> wanted;
  for (const std::size_t function : functions) wanted.insert(like_of_[function]);
  std::unordered_map<std::string_view, std::size_t> shared;
  for (const std::size_t i : wanted)
    for (const std::size_t at : pieces_of(likes_[i])) ++shared[piece_at(likes_[i].function->text, at)];
  // What many functions have, such as a common begin, finds them all at each of
  // their places: left to those that have nothing better.
  std::unordered_map<std::string_view, std::vector<Anchor>> anchors;
  Sieve sieve;
  for (const std::size_t i : wanted) {
    const identify::Bytes text = likes_[i].function->text;
    const std::set<std::size_t> offsets = pieces_of(likes_[i]);
    std::vector<std::size_t> order(offsets.begin(), offsets.end());
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return shared[piece_at(text, a)] < shared[piece_at(text, b)];
    });
    for (std::size_t n = 0; n < order.size(); ++n) {
      const std::string_view piece = piece_at(text, order[n]);
      if (n >= kRarest && shared[piece] > kSharedMax) break;
      anchors[piece].push_back({i, order[n]});
      sieve.add(piece);
    }
  }
  std::unordered_map<std::size_t, std::set<std::uint64_t>> seen;
  for (const std::size_t i : wanted)
    for (const Candidate& candidate : likes_[i].candidates) seen[i].insert(candidate.address);
  for (const Copy& copy : copies_) {
    const identify::Bytes bytes = copy.bytes;
    for (std::size_t at = 0; at + kPiece <= bytes.size(); at += kStep) {
      if (!sieve.may_have(bytes.data() + at)) continue;
      const auto found = anchors.find(piece_at(bytes, at));
      if (found == anchors.end()) continue;
      for (const Anchor& anchor : found->second) {
        Likes& likes = likes_[anchor.likes];
        if (at < anchor.offset) continue;
        const std::size_t begin = at - anchor.offset;
        if ((copy.address + begin) % kPlaceStep != 0 ||
            !identify::fits(begin, likes.function->text.size(), bytes.size()))
          continue;
        if (!seen[anchor.likes].insert(copy.address + begin).second) continue;
        if (likes.candidates.size() >= 2 * (kCandidates + 4 * likes.members)) continue;
        Candidate candidate;
        if (compare(likes, copy, begin, candidate)) likes.candidates.push_back(candidate);
      }
    }
  }
  sort();
}

std::optional<Candidate> Candidates::at(std::size_t function, std::uint64_t address) const {
  const Likes& likes = likes_[like_of_[function]];
  for (const Candidate& candidate : likes.candidates)
    if (candidate.address == address) return candidate;
  for (const Copy& copy : copies_) {
    if (address < copy.address ||
        !identify::fits(address - copy.address, likes.function->text.size(), copy.bytes.size()))
      continue;
    Candidate candidate;
    if (compare(likes, copy, static_cast<std::size_t>(address - copy.address), candidate)) return candidate;
  }
  return std::nullopt;
}

void Candidates::sort() {
  for (Likes& likes : likes_)
    std::sort(likes.candidates.begin(), likes.candidates.end(), [](const Candidate& a, const Candidate& b) {
      return std::tuple(a.leftover, a.differences, a.address) < std::tuple(b.leftover, b.differences, b.address);
    });
}

}  // namespace gpuwatch::probe
