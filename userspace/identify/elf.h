// SPDX-License-Identifier: Apache-2.0
// Bounds-checked reading of 64-bit little-endian ELF: sections, symbols, and
// nothing else. Not libelf: cubins break rules it enforces (sections that share
// file bytes, processor types without bytes, e_version 118), it maps and may
// write to what it reads, and what matters here is what happens to each wrong
// offset. Spans point into the image, which must outlive the object.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "identify/bytes.h"
#include "identify/limits.h"

namespace gpuwatch::identify {

inline constexpr std::size_t kElfHeader = 64;
inline constexpr std::uint16_t kMachineCuda = 190;

struct Section {
  std::string_view name;
  std::uint32_t type = 0;
  std::uint32_t link = 0;
  std::uint32_t info = 0;
  std::uint64_t flags = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t align = 0;
  bool in_file = false;  // has bytes, and all of them lie in the image
};

struct Symbol {
  std::string_view name;
  std::uint8_t type = 0;
  std::uint8_t other = 0;
  std::uint32_t section = 0;
  std::uint64_t value = 0;
  std::uint64_t size = 0;
};

class Elf {
 public:
  // Empty: good. Else what is wrong: "not ELF", "not ELF64LE", "shoff",
  // "symtab", or a limit.
  std::string parse(Bytes image, const Limits& limits);

  Bytes image() const { return image_; }
  std::uint16_t type() const { return type_; }
  std::uint16_t machine() const { return machine_; }
  std::uint32_t flags() const { return flags_; }
  std::uint8_t abi() const { return image_[8]; }
  std::uint8_t os_abi() const { return image_[7]; }
  const std::vector<Section>& sections() const { return sections_; }
  const std::vector<Symbol>& symbols() const { return symbols_; }

  // Index of the first section of that name, or npos. It looks at all of them:
  // for the few that a cubin has once.
  static constexpr std::size_t npos = ~std::size_t{0};
  std::size_t find(std::string_view name) const;
  Bytes bytes(const Section& section) const {
    return section.in_file ? image_.subspan(section.offset, section.size) : Bytes();
  }

  // Symbols of a table in section `index` with the strings it links to.
  std::string read_symbols(std::size_t index, const Limits& limits, std::vector<Symbol>& out) const;

 private:
  std::string_view string_at(Bytes table, std::uint64_t offset, const Limits& limits) const;

  Bytes image_;
  std::uint16_t type_ = 0;
  std::uint16_t machine_ = 0;
  std::uint32_t flags_ = 0;
  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
};

// Sections that take no bytes of the file, whatever their type says.
bool is_nobits(const Section& section);

}  // namespace gpuwatch::identify
