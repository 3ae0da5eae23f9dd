// SPDX-License-Identifier: Apache-2.0
#include "probe/code.h"

#include <algorithm>

#include "identify/cubin.h"
#include "identify/elf.h"

namespace gpuwatch::probe {

namespace {

using identify::load;

constexpr std::uint32_t kUnit = 16;
constexpr std::uint32_t kTypeRela = 4;
constexpr std::string_view kText = ".text.";
constexpr std::uint16_t kRelocatableType = 1;
constexpr std::uint64_t kTextMax = 256ull << 20;

void clear_bits(std::span<std::uint8_t> mask, std::uint64_t at, unsigned first, unsigned last) {
  for (unsigned bit = first; bit <= last; ++bit)
    mask[at + bit / 8] = static_cast<std::uint8_t>(mask[at + bit / 8] & ~(1u << bit % 8));
}

void set_bits(std::span<std::uint8_t> text, std::uint64_t at, unsigned first, unsigned last, std::uint64_t value) {
  for (unsigned bit = first; bit <= last; ++bit, value >>= 1) {
    std::uint8_t& byte = text[at + bit / 8];
    byte = static_cast<std::uint8_t>((byte & ~(1u << bit % 8)) | (value & 1) << bit % 8);
  }
}

std::uint64_t get_bits(identify::Bytes text, std::uint64_t at, unsigned first, unsigned last) {
  std::uint64_t value = 0;
  for (unsigned bit = last + 1; bit-- > first;) value = value << 1 | (text[at + bit / 8] >> bit % 8 & 1);
  return value;
}

std::uint64_t width_of(std::uint32_t type) {
  return type == kReloc64 ? 8 : kUnit;
}

}  // namespace

std::string read_code(identify::Bytes image, Code& out) {
  identify::Elf elf;
  identify::Limits limits;
  if (std::string error = elf.parse(image, limits); !error.empty()) return error;
  if (elf.machine() != identify::kMachineCuda) return "not a cubin";
  out.sm = identify::cubin_sm(image);
  out.relocatable = elf.type() == kRelocatableType;
  for (const identify::Symbol& symbol : elf.symbols())
    out.symbols.push_back({std::string(symbol.name), symbol.section, symbol.value});
  std::map<std::uint32_t, std::size_t> by_section;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < elf.sections().size(); ++i) {
    const identify::Section& section = elf.sections()[i];
    if (!section.name.starts_with(kText)) continue;
    const identify::Bytes bytes = elf.bytes(section);
    if (bytes.empty()) continue;
    total += bytes.size();
    if (total > kTextMax) return "more than 256 MiB of code";
    Function function;
    function.name = section.name.substr(kText.size());
    function.section = static_cast<std::uint32_t>(i);
    function.text.assign(bytes.begin(), bytes.end());
    by_section[function.section] = out.functions.size();
    out.functions.push_back(std::move(function));
  }
  for (const identify::Section& section : elf.sections()) {
    const auto target = by_section.find(section.info);
    if (target == by_section.end() || !section.name.starts_with(".rel")) continue;
    const std::size_t size = section.type == kTypeRela ? 24 : 16;
    const identify::Bytes bytes = elf.bytes(section);
    Function& function = out.functions[target->second];
    for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
      Relocation relocation;
      relocation.offset = load<std::uint64_t>(bytes, at);
      relocation.type = load<std::uint32_t>(bytes, at + 8);
      relocation.symbol = load<std::uint32_t>(bytes, at + 12);
      relocation.addend = size == 24 ? load<std::int64_t>(bytes, at + 16) : 0;
      if (!identify::fits(relocation.offset, width_of(relocation.type), function.text.size()))
        return "relocation outside of its section";
      function.relocations.push_back(relocation);
    }
  }
  return {};
}

std::vector<std::uint8_t> mask_of(const Function& function, std::size_t& unknown) {
  std::vector<std::uint8_t> mask(function.text.size(), 0xff);
  for (const Relocation& relocation : function.relocations) {
    switch (relocation.type) {
      case kReloc64:
        clear_bits(mask, relocation.offset, 0, 63);
        break;
      case kRelocLow32:
      case kRelocHigh32:
      case kRelocDescLow32:
      case kRelocDescHigh32:
        clear_bits(mask, relocation.offset, 32, 63);
        break;
      case kRelocCall55:
        clear_bits(mask, relocation.offset, 16, 23);
        clear_bits(mask, relocation.offset, 34, 80);
        break;
      default:
        ++unknown;
        clear_bits(mask, relocation.offset, 0, 127);
    }
  }
  return mask;
}

void apply(std::span<std::uint8_t> text, const Relocation& relocation, std::uint64_t target) {
  const std::uint64_t at = relocation.offset;
  switch (relocation.type) {
    case kReloc64:
      set_bits(text, at, 0, 63, target);
      break;
    case kRelocLow32:
    case kRelocDescLow32:
      set_bits(text, at, 32, 63, target & 0xffffffff);
      break;
    case kRelocHigh32:
    case kRelocDescHigh32:
      set_bits(text, at, 32, 63, target >> 32);
      break;
    case kRelocCall55:
      set_bits(text, at, 16, 23, target >> 2 & 0xff);
      set_bits(text, at, 34, 80, target >> 10);
      break;
    default:
      break;
  }
}

bool solve(const Function& function, identify::Bytes resident, Addresses& addresses) {
  struct Halves {
    std::optional<std::uint64_t> low, high;
  };
  std::map<std::pair<std::uint32_t, std::int64_t>, Halves> halves;
  const auto learn = [&](std::uint32_t symbol, std::uint64_t address) {
    const auto [it, fresh] = addresses.emplace(symbol, address);
    return fresh || it->second == address;
  };
  for (const Relocation& relocation : function.relocations) {
    const std::uint64_t at = relocation.offset;
    Halves& half = halves[{relocation.symbol, relocation.addend}];
    const auto same = [](std::optional<std::uint64_t>& known, std::uint64_t value) {
      if (known && *known != value) return false;
      known = value;
      return true;
    };
    if (relocation.type == kRelocCall55) {
      const std::uint64_t target = get_bits(resident, at, 34, 80) << 10 | get_bits(resident, at, 16, 23) << 2;
      if (!learn(relocation.symbol, target - static_cast<std::uint64_t>(relocation.addend))) return false;
    } else if (relocation.type == kRelocLow32) {
      if (!same(half.low, get_bits(resident, at, 32, 63))) return false;
    } else if (relocation.type == kRelocHigh32) {
      if (!same(half.high, get_bits(resident, at, 32, 63))) return false;
    }
  }
  for (const auto& [key, half] : halves) {
    if (!half.low || !half.high) continue;
    if (!learn(key.first, (*half.high << 32 | *half.low) - static_cast<std::uint64_t>(key.second))) return false;
  }
  return true;
}

std::vector<std::uint8_t> expected_text(const Function& function, const Addresses& addresses) {
  std::vector<std::uint8_t> text = function.text;
  for (const Relocation& relocation : function.relocations)
    if (const auto it = addresses.find(relocation.symbol); it != addresses.end())
      apply(text, relocation, it->second + static_cast<std::uint64_t>(relocation.addend));
  return text;
}

std::optional<std::uint64_t> first_difference(identify::Bytes expected, identify::Bytes resident,
                                              identify::Bytes mask) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (i >= resident.size() || ((expected[i] ^ resident[i]) & (i < mask.size() ? mask[i] : 0xff)) != 0) return i;
  return std::nullopt;
}

std::size_t accept_loader_changes(std::span<std::uint8_t> expected, identify::Bytes resident) {
  constexpr std::size_t kInstruction = 16;
  constexpr std::size_t kVariant = 9;
  constexpr std::size_t kControl = 14;
  constexpr std::uint8_t kReadBarrier = 0x08;  // lowest bit of its number, 7: none
  constexpr std::uint8_t kWait = 0x80;         // for barrier 3
  const auto is_barrier = [&](std::size_t at) { return expected[at] == 0x92 && (expected[at + 1] & 0x0f) == 0x09; };
  std::size_t changed = 0;
  const std::size_t both = std::min(expected.size(), resident.size());
  for (std::size_t at = 0; at + 2 * kInstruction <= both; at += kInstruction) {
    const std::size_t next = at + kInstruction;
    if (!is_barrier(at) || !is_barrier(next) || expected[at + kVariant] != 0x80 || expected[next + kVariant] != 0xa0)
      continue;
    std::uint8_t& first = expected[at + kControl];
    std::uint8_t& second = expected[next + kControl];
    if ((first & kReadBarrier) == 0 || (second & kWait) != 0) continue;
    // Both or none: half of it is somebody else's change.
    if (resident[at + kControl] != (first & ~kReadBarrier) || resident[next + kControl] != (second | kWait)) continue;
    first = resident[at + kControl];
    second = resident[next + kControl];
    changed += 2;
  }
  return changed;
}

}  // namespace gpuwatch::probe
