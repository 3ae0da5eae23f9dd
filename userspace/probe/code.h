// SPDX-License-Identifier: Apache-2.0
// The code of a cubin as the loader will place it: functions, relocations, and
// the arithmetic that turns bytes of the file into bytes in GPU memory. Pure
// functions over untrusted bytes; no driver, no GPU.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "identify/bytes.h"

namespace gpuwatch::probe {

// Relocations of executable cubins, by their numbers in ELF.
inline constexpr std::uint32_t kReloc64 = 2;          // 8 bytes
inline constexpr std::uint32_t kRelocLow32 = 56;      // bits 32..63 of an instruction: low half of the address
inline constexpr std::uint32_t kRelocHigh32 = 57;     // high half
inline constexpr std::uint32_t kRelocDescLow32 = 62;  // the same for the address of a kernel
inline constexpr std::uint32_t kRelocDescHigh32 = 63;
inline constexpr std::uint32_t kRelocCall55 = 75;  // bits 16..23: (T >> 2) & 255; bits 34..80: T >> 10

struct Relocation {
  std::uint64_t offset = 0;
  std::uint32_t type = 0;
  std::uint32_t symbol = 0;  // index in the image's symbol table
  std::int64_t addend = 0;
};

struct Function {
  std::string name;  // of the section, without ".text."
  std::uint32_t section = 0;
  std::vector<std::uint8_t> text;
  std::vector<Relocation> relocations;
};

struct CodeSymbol {
  std::string name;
  std::uint32_t section = 0;
  std::uint64_t value = 0;
};

struct Code {
  std::uint32_t sm = 0;
  bool relocatable = false;
  std::vector<Function> functions;
  std::vector<CodeSymbol> symbols;
};

// Empty: good, else what is wrong.
std::string read_code(identify::Bytes image, Code& out);

// Bits of the text that a relocation decides, as a mask of the same size (1: of
// the file). Unknown types hide all 16 bytes and are counted.
std::vector<std::uint8_t> mask_of(const Function& function, std::size_t& unknown);

// Writes address `target` as relocation type `type` would.
void apply(std::span<std::uint8_t> text, const Relocation& relocation, std::uint64_t target);

// Address of each symbol, by its index, where known.
using Addresses = std::map<std::uint32_t, std::uint64_t>;

// Reads back from resident text where symbols lie that are not yet known, as
// far as the bits tell. False when two uses of one symbol contradict each other.
bool solve(const Function& function, identify::Bytes resident, Addresses& addresses);

// The text with all relocations whose symbols are known.
std::vector<std::uint8_t> expected_text(const Function& function, const Addresses& addresses);

// Where `resident`, which starts at the function's place, first differs from
// the file's bytes under the mask.
std::optional<std::uint64_t> first_difference(identify::Bytes expected, identify::Bytes resident, identify::Bytes mask);

// Besides relocations the loader of driver 580.159.04 changes one thing on
// sm_90: of an instruction 0x992 with 0x80 in byte 9 and one with 0xa0 behind it,
// the second is made to wait for the first (read barrier 3, in byte 14 of both).
// Seen on 40 of 40 such pairs of libcublas 13.0, in 10 of its 4,137 functions,
// and on nothing else. Writes into `expected` what `resident` has of that, and
// returns how many instructions.
std::size_t accept_loader_changes(std::span<std::uint8_t> expected, identify::Bytes resident);

}  // namespace gpuwatch::probe
