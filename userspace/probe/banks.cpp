// SPDX-License-Identifier: Apache-2.0
#include "probe/banks.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "identify/cubin.h"
#include "identify/elf.h"

namespace gpuwatch::probe {

namespace {

using identify::load;

constexpr std::uint32_t kTypeRela = 4;
constexpr std::uint64_t kStep = 256;
constexpr std::size_t kWord = 4;
constexpr std::size_t kBankMax = 64 * 1024;  // what an instruction can address
constexpr std::string_view kPrefix = ".nv.constant";

// Words that differ under the mask; the offset of the first byte that does.
std::uint64_t differences(const BankImage& bank, identify::Bytes there, std::uint64_t limit, std::uint64_t& first) {
  std::uint64_t count = 0;
  for (std::size_t at = 0; at < bank.bytes.size() && count <= limit; at += kWord) {
    for (std::size_t i = at; i < std::min(at + kWord, bank.bytes.size()); ++i) {
      if (((bank.bytes[i] ^ there[i]) & bank.mask[i]) == 0) continue;
      if (count++ == 0) first = i;
      break;
    }
  }
  return count;
}

std::uint64_t words_of(const BankImage& bank) {
  return (bank.bytes.size() + kWord - 1) / kWord;
}

struct Candidate {
  std::uint64_t address;
  std::uint64_t differences;
  std::uint64_t first;
  bool leftover;
};

}  // namespace

std::string read_banks(identify::Bytes image, std::vector<Bank>& out) {
  identify::Elf elf;
  identify::Limits limits;
  if (std::string error = elf.parse(image, limits); !error.empty()) return error;
  if (elf.machine() != identify::kMachineCuda) return "not a cubin";
  std::map<std::uint32_t, std::size_t> by_section;
  for (std::size_t i = 0; i < elf.sections().size(); ++i) {
    const identify::Section& section = elf.sections()[i];
    if (!section.name.starts_with(kPrefix) || section.name.size() <= kPrefix.size()) continue;
    const char number = section.name[kPrefix.size()];
    if (number != '2' && number != '4') continue;
    // ".nv.constant2" or ".nv.constant2.function".
    if (section.name.size() > kPrefix.size() + 1 && section.name[kPrefix.size() + 1] != '.') continue;
    const identify::Bytes bytes = elf.bytes(section);
    if (bytes.empty()) continue;
    if (bytes.size() > kBankMax) return "constant bank of more than 64 KiB";
    Bank bank;
    bank.name = section.name;
    bank.number = static_cast<unsigned>(number - '0');
    bank.function = section.name.size() > kPrefix.size() + 1 ? section.info : 0;
    bank.bytes.assign(bytes.begin(), bytes.end());
    by_section[static_cast<std::uint32_t>(i)] = out.size();
    out.push_back(std::move(bank));
  }
  for (const identify::Section& section : elf.sections()) {
    const auto target = by_section.find(section.info);
    if (target == by_section.end() || !section.name.starts_with(".rel")) continue;
    const std::size_t size = section.type == kTypeRela ? 24 : 16;
    const identify::Bytes bytes = elf.bytes(section);
    Bank& bank = out[target->second];
    for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
      Relocation relocation;
      relocation.offset = load<std::uint64_t>(bytes, at);
      relocation.type = load<std::uint32_t>(bytes, at + 8);
      relocation.symbol = load<std::uint32_t>(bytes, at + 12);
      if (!identify::fits(relocation.offset, 8, bank.bytes.size())) return "relocation outside of its section";
      relocation.addend =
          size == 24 ? load<std::int64_t>(bytes, at + 16) : load<std::int64_t>(bank.bytes, relocation.offset);
      bank.relocations.push_back(relocation);
    }
  }
  return {};
}

std::vector<std::uint8_t> expected_bank(const Bank& bank, const Addresses& addresses, std::vector<std::uint8_t>& mask) {
  std::vector<std::uint8_t> bytes = bank.bytes;
  mask.assign(bytes.size(), 0xff);
  for (const Relocation& relocation : bank.relocations) {
    const auto known = addresses.find(relocation.symbol);
    if (relocation.type == kReloc64 && known != addresses.end())
      apply(bytes, relocation, known->second + static_cast<std::uint64_t>(relocation.addend));
    else
      std::fill_n(mask.begin() + static_cast<std::ptrdiff_t>(relocation.offset), 8, 0);
  }
  return bytes;
}

bool tells_nothing(const BankImage& bank) {
  for (std::size_t i = 0; i < bank.bytes.size(); ++i)
    if ((bank.bytes[i] & bank.mask[i]) != 0) return false;
  return true;
}

std::vector<Place> locate_banks(const std::vector<BankImage>& banks, const std::vector<Copy>& copies,
                                const std::vector<Copy>& before) {
  std::vector<Place> places(banks.size());
  std::vector<std::vector<Candidate>> candidates(banks.size());
  const auto look = [&](std::size_t number, const Copy& copy, std::uint64_t at, std::uint64_t limit) {
    const BankImage& bank = banks[number];
    const identify::Bytes bytes = copy.bytes;
    if (!identify::fits(at, bank.bytes.size(), bytes.size())) return;
    const identify::Bytes there = bytes.subspan(at, bank.bytes.size());
    std::uint64_t first = 0;
    const std::uint64_t different = differences(bank, there, limit, first);
    if (different > limit) return;
    const identify::Bytes earlier = resident_at(before, copy.address + at, there.size());
    candidates[number].push_back(
        {copy.address + at, different, first, !earlier.empty() && std::ranges::equal(earlier, there)});
  };
  std::set<std::uint64_t> taken;
  const auto give = [&](std::size_t number, bool leftover, bool whole) {
    for (const Candidate& candidate : candidates[number]) {
      if (candidate.leftover != leftover || (candidate.differences == 0) != whole) continue;
      if (!taken.insert(candidate.address).second) continue;
      places[number] = {candidate.address, whole, candidate.differences, candidate.first};
      return;
    }
  };
  const auto sort = [](std::vector<Candidate>& list) {
    std::sort(list.begin(), list.end(), [](const Candidate& a, const Candidate& b) {
      return std::tuple(a.leftover, a.differences, a.address) < std::tuple(b.leftover, b.differences, b.address);
    });
  };
  const auto look_everywhere = [&](std::size_t number, std::uint64_t limit) {
    candidates[number].clear();
    for (const Copy& copy : copies)
      for (std::uint64_t at = (kStep - copy.address % kStep) % kStep; at < copy.bytes.size(); at += kStep)
        look(number, copy, at, limit);
    sort(candidates[number]);
  };
  // Whole ones are soon told from the rest, and mostly all are whole.
  for (std::size_t number = 0; number < banks.size(); ++number) {
    if (tells_nothing(banks[number])) continue;
    look_everywhere(number, 0);
    give(number, false, true);
  }
  for (std::size_t number = 0; number < banks.size(); ++number) {
    if (places[number].address != 0 || tells_nothing(banks[number])) continue;
    look_everywhere(number, words_of(banks[number]) / 2);
    give(number, false, false);
  }
  // What little is like it lies beside its siblings, if it is new there.
  for (std::size_t number = 0; number < banks.size(); ++number) {
    if (places[number].address != 0 || tells_nothing(banks[number])) continue;
    const auto siblings = static_cast<std::uint64_t>(std::count_if(
        banks.begin(), banks.end(), [&](const BankImage& bank) { return bank.module == banks[number].module; }));
    for (std::size_t other = 0; other < banks.size(); ++other) {
      const Place& sibling = places[other];
      if (sibling.address == 0 || banks[other].module != banks[number].module) continue;
      for (const Copy& copy : copies) {
        if (sibling.address < copy.address || sibling.address - copy.address >= copy.bytes.size()) continue;
        const std::uint64_t at = sibling.address - copy.address;
        const std::uint64_t reach = kStep * siblings;
        for (std::uint64_t near = at > reach ? at - reach : 0; near <= at + reach; near += kStep)
          look(number, copy, near, words_of(banks[number]));
      }
    }
    sort(candidates[number]);
    give(number, false, false);
  }
  // A leftover is this bank's only when it is whole.
  for (std::size_t number = 0; number < banks.size(); ++number)
    if (places[number].address == 0) give(number, true, true);
  return places;
}

}  // namespace gpuwatch::probe
