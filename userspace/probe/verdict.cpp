// SPDX-License-Identifier: Apache-2.0
#include "probe/verdict.h"

#include <algorithm>

namespace gpuwatch::probe {

namespace {

const Function* function_in(const Code& code, std::uint32_t section) {
  if (section == 0) return nullptr;
  for (const Function& function : code.functions)
    if (function.section == section) return &function;
  return nullptr;
}

bool is_checked(const Relocation& relocation) {
  return relocation.type == kReloc64 || relocation.type == kRelocLow32 || relocation.type == kRelocHigh32 ||
         relocation.type == kRelocCall55;
}

// Is the code of `target` what lies there? Its own relocations are not compared.
bool lies_at(const Function& target, std::uint64_t address, const std::vector<Copy>& copies) {
  std::size_t unknown = 0;
  const identify::Bytes there = resident_at(copies, address, target.text.size());
  return !there.empty() && !first_difference(target.text, there, mask_of(target, unknown));
}

}  // namespace

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kMatch:
      return "match";
    case Verdict::kMatchRelocated:
      return "match-relocated";
    case Verdict::kDiffer:
      return "differ";
    case Verdict::kNotResident:
      return "not-resident";
    case Verdict::kNotProbed:
      return "not-probed";
  }
  return "";
}

void tell_differences(identify::Bytes expected, identify::Bytes resident, FunctionVerdict& verdict) {
  constexpr std::size_t kUnit = 16;
  const std::size_t both = std::min(expected.size(), resident.size());
  for (std::size_t unit = 0; unit < both; unit += kUnit) {
    const std::size_t end = std::min(unit + kUnit, both);
    std::uint64_t here = 0;
    for (std::size_t at = unit; at < end; ++at) {
      if (expected[at] == resident[at]) continue;
      if (verdict.different_bytes + here++ == 0) verdict.first_offset = at;
    }
    verdict.different_bytes += here;
    if (here == 0 || verdict.differences.size() >= kDifferencesMax) continue;
    const auto part = [&](identify::Bytes code) {
      return std::vector<std::uint8_t>(code.begin() + static_cast<std::ptrdiff_t>(unit),
                                       code.begin() + static_cast<std::ptrdiff_t>(end));
    };
    verdict.differences.push_back({unit, part(expected), part(resident)});
  }
}

void settle_function(const Code& code, const Function& function, identify::Bytes resident,
                     const std::vector<Copy>& copies, const std::function<bool(std::uint64_t)>& mapped,
                     Addresses addresses, FunctionVerdict& verdict, std::vector<std::uint8_t>& expected,
                     const FunctionPlaces* places) {
  const Addresses given = addresses;
  const bool agree = solve(function, resident, addresses);
  // What no relocation tells in full, the other function's place tells.
  for (const Relocation& relocation : function.relocations) {
    if (places == nullptr || relocation.symbol >= code.symbols.size()) continue;
    const CodeSymbol& symbol = code.symbols[relocation.symbol];
    if (const auto place = places->find(symbol.section); place != places->end())
      addresses.emplace(relocation.symbol, place->second + symbol.value);
  }
  for (const auto& [index, address] : addresses) {
    if (index >= code.symbols.size()) continue;
    const CodeSymbol& symbol = code.symbols[index];
    if (const Function* target = function_in(code, symbol.section)) {
      const std::uint64_t begin = address - symbol.value;
      if (places != nullptr) {
        // Changed or not, its own verdict says; another's equal code does the same
        // when it refers to nothing.
        const auto place = places->find(symbol.section);
        if (place != places->end() && place->second == begin) continue;
        if (place != places->end() && !target->relocations.empty()) {
          verdict.reason = "calls or points to " + symbol.name + " of another module or place";
          continue;
        }
      }
      if (!lies_at(*target, begin, copies))
        verdict.reason = "calls or points to " + symbol.name + " where that function's code is not";
    } else if (!mapped(address)) {
      verdict.reason = "refers to " + symbol.name + " at an address that is not mapped";
    }
  }
  if (!agree && verdict.reason.empty()) verdict.reason = "uses of one symbol contradict each other";
  expected = expected_text(function, addresses);
  verdict.loader_changes = accept_loader_changes(expected, resident);
  for (const Relocation& relocation : function.relocations) {
    const bool known = addresses.contains(relocation.symbol) && is_checked(relocation);
    const bool of_function = relocation.symbol < code.symbols.size() &&
                             function_in(code, code.symbols[relocation.symbol].section) != nullptr;
    if (known && (given.contains(relocation.symbol) || of_function)) continue;
    // Nothing but the code itself tells the value: take what is there, and say so.
    ++verdict.unchecked;
    if (known) continue;
    Function one;
    one.text.resize(16);
    one.relocations = {relocation};
    one.relocations[0].offset = 0;
    std::size_t unknown = 0;
    const std::vector<std::uint8_t> mask = mask_of(one, unknown);
    for (std::size_t i = 0; i < mask.size() && relocation.offset + i < expected.size(); ++i) {
      const std::size_t at = relocation.offset + i;
      expected[at] = static_cast<std::uint8_t>((expected[at] & mask[i]) | (resident[at] & ~mask[i]));
    }
  }
}

}  // namespace gpuwatch::probe
