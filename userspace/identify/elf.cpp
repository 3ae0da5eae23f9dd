// SPDX-License-Identifier: Apache-2.0
#include "identify/elf.h"

#include <algorithm>
#include <cstring>

namespace gpuwatch::identify {

namespace {

constexpr std::size_t kSectionHeader = 64;
constexpr std::size_t kSymbol = 24;
constexpr std::uint32_t kTypeSymtab = 2;
constexpr std::uint32_t kTypeSymtabShndx = 18;
constexpr std::uint16_t kIndexExtended = 0xffff;

}  // namespace

bool is_nobits(const Section& section) {
  return section.type == 8 || section.type == 0x70000007 || section.type == 0x7000000a ||
         section.name == ".nv.global" || section.name.starts_with(".nv.shared.") ||
         section.name.starts_with(".nv.local.");
}

std::string_view Elf::string_at(Bytes table, std::uint64_t offset, const Limits& limits) const {
  if (offset >= table.size()) return {};
  const Bytes rest = table.subspan(offset, std::min<std::uint64_t>(table.size() - offset, limits.name_bytes));
  const void* end = std::memchr(rest.data(), 0, rest.size());
  if (end == nullptr) return {};
  return as_text(rest.first(static_cast<std::size_t>(static_cast<const std::uint8_t*>(end) - rest.data())));
}

std::string Elf::parse(Bytes image, const Limits& limits) {
  image_ = image;
  if (image.size() < 4 || std::memcmp(image.data(), "\177ELF", 4) != 0) return "not ELF";
  if (image.size() < kElfHeader || image[4] != 2 || image[5] != 1) return "not ELF64LE";
  type_ = load<std::uint16_t>(image, 16);
  machine_ = load<std::uint16_t>(image, 18);
  flags_ = load<std::uint32_t>(image, 48);
  const auto shoff = load<std::uint64_t>(image, 40);
  const auto entry_size = load<std::uint16_t>(image, 58);
  std::uint64_t count = load<std::uint16_t>(image, 60);
  std::uint64_t strings = load<std::uint16_t>(image, 62);
  if (shoff == 0) return {};
  if (entry_size != kSectionHeader && count != 0) return "shentsize";
  if (count == 0 || strings == kIndexExtended) {
    if (!fits(shoff, kSectionHeader, image.size())) return "shoff";
    if (count == 0) count = load<std::uint64_t>(image, shoff + 32);
    if (strings == kIndexExtended) strings = load<std::uint32_t>(image, shoff + 40);
  }
  if (count > limits.sections) return "more than " + std::to_string(limits.sections) + " sections";
  if (!fits(shoff, count * kSectionHeader, image.size())) return "shoff";

  sections_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t at = shoff + i * kSectionHeader;
    Section& section = sections_[i];
    section.type = load<std::uint32_t>(image, at + 4);
    section.flags = load<std::uint64_t>(image, at + 8);
    section.offset = load<std::uint64_t>(image, at + 24);
    section.size = load<std::uint64_t>(image, at + 32);
    section.link = load<std::uint32_t>(image, at + 40);
    section.info = load<std::uint32_t>(image, at + 44);
    section.align = load<std::uint64_t>(image, at + 48);
    section.in_file = section.type != 8 && fits(section.offset, section.size, image.size());
  }
  if (strings < count) {
    const Bytes table = bytes(sections_[strings]);
    for (std::size_t i = 0; i < count; ++i)
      sections_[i].name = string_at(table, load<std::uint32_t>(image, shoff + i * kSectionHeader), limits);
  }
  std::size_t symtab = npos;
  for (std::size_t i = 0; i < count; ++i) {
    Section& section = sections_[i];
    if (is_nobits(section)) section.in_file = false;
    if (section.type == kTypeSymtab && symtab == npos) symtab = i;
  }
  return symtab == npos ? std::string() : read_symbols(symtab, limits, symbols_);
}

std::string Elf::read_symbols(std::size_t index, const Limits& limits, std::vector<Symbol>& out) const {
  const Section& table = sections_[index];
  if (!table.in_file) return "symtab";
  const Bytes bytes_of_table = bytes(table);
  const std::size_t count = bytes_of_table.size() / kSymbol;
  if (count > limits.symbols) return "more than " + std::to_string(limits.symbols) + " symbols";
  const Bytes strings = table.link < sections_.size() ? bytes(sections_[table.link]) : Bytes();
  Bytes extended;
  for (const Section& section : sections_)
    if (section.type == kTypeSymtabShndx && section.link == index) extended = bytes(section);
  out.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = i * kSymbol;
    Symbol& symbol = out[i];
    symbol.name = string_at(strings, load<std::uint32_t>(bytes_of_table, at), limits);
    symbol.type = bytes_of_table[at + 4] & 15;
    symbol.other = bytes_of_table[at + 5];
    symbol.section = load<std::uint16_t>(bytes_of_table, at + 6);
    if (symbol.section == kIndexExtended)
      symbol.section = try_load<std::uint32_t>(extended, i * 4).value_or(kIndexExtended);
    symbol.value = load<std::uint64_t>(bytes_of_table, at + 8);
    symbol.size = load<std::uint64_t>(bytes_of_table, at + 16);
  }
  return {};
}

std::size_t Elf::find(std::string_view name) const {
  for (std::size_t i = 0; i < sections_.size(); ++i)
    if (sections_[i].name == name) return i;
  return npos;
}

}  // namespace gpuwatch::identify
