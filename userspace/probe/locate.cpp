// SPDX-License-Identifier: Apache-2.0
// Gives places to functions. A place settles by its relocations where symbols and
// other functions lie, so that taking it takes others with it: all of them fit
// together, or none is taken.
#include "probe/locate.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "probe/candidates.h"

namespace gpuwatch::probe {

namespace {

struct Target {
  std::size_t function;
  std::uint64_t address;
};

// What a function's relocations say when it lies at a place.
struct Relations {
  bool agree = true;  // with each other and with known symbols
  std::vector<Target> targets;
};

class Assignment {
 public:
  Assignment(const std::vector<Sought>& sought, Candidates& candidates, const std::vector<Copy>& copies);

  std::vector<Place> run(Search search);

 private:
  using Round = std::map<std::size_t, Candidate>;  // places taken together, by function

  const Relations& relations(std::size_t function, std::uint64_t address);
  Relations look(std::size_t function, std::uint64_t address) const;
  bool fits_together(std::size_t function, const Candidate& candidate, bool near, Round& round);
  bool take(std::size_t function, const Candidate& candidate, bool near);
  void put(std::size_t function, const Candidate& candidate);
  std::vector<std::size_t> left() const;
  void exact_together(bool leftover);
  void nearest_first(bool leftover, bool together);

  const std::vector<Sought>& sought_;
  Candidates& candidates_;
  const std::vector<Copy>& copies_;
  std::map<std::pair<std::size_t, std::uint32_t>, std::size_t> by_section_;  // module and section to function
  std::vector<bool> has_targets_;
  std::map<std::pair<std::size_t, std::uint64_t>, Relations> relations_;
  std::vector<Place> places_;
  std::map<std::uint64_t, std::size_t> taken_;  // address to function
};

Assignment::Assignment(const std::vector<Sought>& sought, Candidates& candidates, const std::vector<Copy>& copies)
    : sought_(sought), candidates_(candidates), copies_(copies), has_targets_(sought.size()), places_(sought.size()) {
  for (std::size_t i = 0; i < sought.size(); ++i)
    if (sought[i].code != nullptr) by_section_[{sought[i].module, sought[i].function->section}] = i;
  for (std::size_t i = 0; i < sought.size(); ++i) {
    if (sought[i].code == nullptr) continue;
    for (const Relocation& relocation : sought[i].function->relocations)
      if (relocation.symbol < sought[i].code->symbols.size() &&
          by_section_.contains({sought[i].module, sought[i].code->symbols[relocation.symbol].section}))
        has_targets_[i] = true;
  }
}

Relations Assignment::look(std::size_t function, std::uint64_t address) const {
  const Sought& sought = sought_[function];
  Relations out;
  if (sought.code == nullptr || sought.function->relocations.empty()) return out;
  const identify::Bytes resident = resident_at(copies_, address, sought.function->text.size());
  if (resident.empty()) return {false, {}};
  Addresses solved;
  if (!solve(*sought.function, resident, solved)) return {false, {}};
  for (const auto& [index, value] : solved) {
    if (index >= sought.code->symbols.size()) continue;
    const CodeSymbol& symbol = sought.code->symbols[index];
    if (const auto it = by_section_.find({sought.module, symbol.section}); it != by_section_.end())
      out.targets.push_back({it->second, value - symbol.value});
  }
  if (sought.known == nullptr) return out;
  // Also where only half of an address is told: what is known must read the same.
  for (const Relocation& relocation : sought.function->relocations) {
    const auto known = sought.known->find(relocation.symbol);
    if (known == sought.known->end()) continue;
    // Of the address of a kernel what the loader writes is not known.
    if (relocation.type == kRelocDescLow32 || relocation.type == kRelocDescHigh32) continue;
    const std::uint64_t width = relocation.type == kReloc64 ? 8 : 16;
    const identify::Bytes there = resident.subspan(relocation.offset, width);
    std::vector<std::uint8_t> applied(there.begin(), there.end());
    Relocation here = relocation;
    here.offset = 0;
    apply(applied, here, known->second + static_cast<std::uint64_t>(relocation.addend));
    if (!std::ranges::equal(applied, there)) return {false, {}};
  }
  return out;
}

const Relations& Assignment::relations(std::size_t function, std::uint64_t address) {
  const auto [it, fresh] = relations_.try_emplace({function, address});
  if (fresh) it->second = look(function, address);
  return it->second;
}

// Puts into `round` all places that follow from this one. False when one of
// them is taken, or contradicts another, or is not like its function.
bool Assignment::fits_together(std::size_t function, const Candidate& candidate, bool near, Round& round) {
  std::map<std::uint64_t, std::size_t> claimed;
  std::vector<std::pair<std::size_t, Candidate>> open{{function, candidate}};
  while (!open.empty()) {
    const auto [here, place] = open.back();
    open.pop_back();
    if (const auto it = round.find(here); it != round.end()) {
      if (it->second.address != place.address) return false;
      continue;
    }
    if (taken_.contains(place.address) || !claimed.emplace(place.address, here).second) return false;
    if (place.differences != 0 && !near) return false;
    round.emplace(here, place);
    const Relations& said = relations(here, place.address);
    // Of a changed function the relocations may be what was changed.
    if (!said.agree && place.differences == 0) return false;
    for (const Target& target : said.targets) {
      if (places_[target.function].address == target.address) continue;
      if (places_[target.function].address != 0) return false;
      const std::optional<Candidate> there = candidates_.at(target.function, target.address);
      if (!there) return false;
      open.push_back({target.function, *there});
    }
  }
  return true;
}

void Assignment::put(std::size_t function, const Candidate& candidate) {
  places_[function] = {candidate.address, candidate.differences == 0, candidate.differences, candidate.first};
  taken_[candidate.address] = function;
}

bool Assignment::take(std::size_t function, const Candidate& candidate, bool near) {
  Round round;
  if (!fits_together(function, candidate, near, round)) return false;
  for (const auto& [one, place] : round) put(one, place);
  return true;
}

std::vector<std::size_t> Assignment::left() const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (places_[i].address == 0) out.push_back(i);
  return out;
}

// First who has no choice, then who decides for others, then the rest in the
// order of the files.
void Assignment::exact_together(bool leftover) {
  std::vector<std::tuple<int, std::size_t, std::size_t>> order;
  for (const std::size_t i : left()) {
    std::size_t choices = 0;
    for (const Candidate& candidate : candidates_.of(i))
      if (candidate.differences == 0 && candidate.leftover == leftover && relations(i, candidate.address).agree)
        ++choices;
    if (choices != 0) order.emplace_back(choices == 1 ? 0 : has_targets_[i] ? 1 : 2, choices == 1 ? 0 : choices, i);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [rank, choices, i] : order) {
    for (const Candidate& candidate : candidates_.of(i)) {
      if (places_[i].address != 0) break;
      if (candidate.differences == 0 && candidate.leftover == leftover) (void)take(i, candidate, false);
    }
  }
}

// What is least changed first, so that a function that is not there takes no
// place of one that is.
void Assignment::nearest_first(bool leftover, bool together) {
  std::vector<std::tuple<std::uint64_t, std::size_t, std::size_t>> order;
  for (const std::size_t i : left())
    for (std::size_t n = 0; n < candidates_.of(i).size(); ++n)
      if (candidates_.of(i)[n].leftover == leftover) order.emplace_back(candidates_.of(i)[n].differences, i, n);
  std::sort(order.begin(), order.end());
  for (const auto& [differences, i, n] : order) {
    if (places_[i].address != 0) continue;
    const Candidate& candidate = candidates_.of(i)[n];
    if (together)
      (void)take(i, candidate, true);
    else if (!taken_.contains(candidate.address))
      put(i, candidate);
  }
}

std::vector<Place> Assignment::run(Search search) {
  exact_together(false);
  if (search == Search::kAll) {
    if (const std::vector<std::size_t> rest = left(); !rest.empty()) candidates_.find_near(rest);
  }
  // Leftovers when nothing new will do, however well they fit: they may be clean
  // copies of code that was changed.
  for (const bool leftover : {false, true}) {
    if (leftover) exact_together(true);
    nearest_first(leftover, true);
    nearest_first(leftover, false);
  }
  return places_;
}

}  // namespace

std::vector<Place> locate(const std::vector<Sought>& functions, const std::vector<Copy>& copies,
                          const std::vector<Copy>& before, Search search) {
  std::vector<const Function*> plain;
  for (const Sought& sought : functions) plain.push_back(sought.function);
  Candidates candidates(plain, copies, before);
  candidates.find_exact();
  return Assignment(functions, candidates, copies).run(search);
}

std::vector<Place> locate(const std::vector<const Function*>& functions, const std::vector<Copy>& copies,
                          const std::vector<Copy>& before, Search search) {
  std::vector<Sought> sought;
  for (const Function* function : functions) sought.push_back({function, nullptr, 0, nullptr});
  return locate(sought, copies, before, search);
}

}  // namespace gpuwatch::probe
