// SPDX-License-Identifier: Apache-2.0
#include "source/elf_functions.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace gpuwatch::source {

using base::Code;
using base::Error;
using base::Result;

namespace {

// The largest libraries known have a tenth of it.
constexpr std::uint64_t kTableMax = 256ull << 20;
constexpr std::size_t kNameMax = 256;

class File {
 public:
  explicit File(int fd) : fd_(fd) {
    struct stat info {};
    if (::fstat(fd, &info) == 0 && info.st_size > 0) size_ = static_cast<std::uint64_t>(info.st_size);
  }

  std::uint64_t size() const { return size_; }

  // `count` structs at `offset`; nothing where they are not all there.
  template <typename T>
  std::vector<T> read(std::uint64_t offset, std::uint64_t count) const {
    if (count > kTableMax / sizeof(T) || offset > size_ || count * sizeof(T) > size_ - offset) return {};
    std::vector<T> out(count);
    std::size_t done = 0;
    const std::size_t bytes = count * sizeof(T);
    while (done < bytes) {
      const ssize_t n =
          ::pread(fd_, reinterpret_cast<char*>(out.data()) + done, bytes - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return {};
      done += static_cast<std::size_t>(n);
    }
    return out;
  }

 private:
  int fd_;
  std::uint64_t size_ = 0;
};

struct Tables {
  std::vector<Elf64_Sym> symbols;
  std::vector<char> strings;

  std::string_view name(const Elf64_Sym& symbol) const {
    if (symbol.st_name >= strings.size()) return {};
    const char* at = strings.data() + symbol.st_name;
    const std::size_t room = std::min(strings.size() - symbol.st_name, kNameMax);
    const std::size_t length = ::strnlen(at, room);
    return length == room ? std::string_view() : std::string_view(at, length);
  }
};

// File offset of code at `address`, when it lies in an executable segment.
std::optional<std::uint64_t> offset_of(const std::vector<Elf64_Phdr>& segments, std::uint64_t address) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    if (address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz) continue;
    const std::uint64_t delta = address - segment.p_vaddr;
    if (segment.p_offset > ~std::uint64_t{0} - delta) return std::nullopt;
    return segment.p_offset + delta;
  }
  return std::nullopt;
}

Tables section_tables(const File& file, const std::vector<Elf64_Shdr>& sections, std::uint32_t type) {
  Tables tables;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != type || section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& strings = sections[section.sh_link];
    tables.symbols = file.read<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym));
    tables.strings = file.read<char>(strings.sh_offset, strings.sh_size);
    break;
  }
  return tables;
}

// For a file whose section table was stripped: what the dynamic linker uses.
Tables dynamic_tables(const File& file, const std::vector<Elf64_Phdr>& segments) {
  const auto place = [&](std::uint64_t address) -> std::optional<std::uint64_t> {
    for (const Elf64_Phdr& segment : segments)
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz)
        return segment.p_offset + (address - segment.p_vaddr);
    return std::nullopt;
  };
  std::uint64_t symbols = 0;
  std::uint64_t strings = 0;
  std::uint64_t strings_size = 0;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    for (const Elf64_Dyn& entry : file.read<Elf64_Dyn>(segment.p_offset, segment.p_filesz / sizeof(Elf64_Dyn))) {
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_SYMTAB) symbols = entry.d_un.d_ptr;
      if (entry.d_tag == DT_STRTAB) strings = entry.d_un.d_ptr;
      if (entry.d_tag == DT_STRSZ) strings_size = entry.d_un.d_val;
    }
  }
  const auto symbols_at = place(symbols);
  const auto strings_at = place(strings);
  // Nothing tells how many symbols there are, but linkers put the names behind them.
  if (!symbols_at || !strings_at || *strings_at <= *symbols_at) return {};
  Tables tables;
  tables.symbols = file.read<Elf64_Sym>(*symbols_at, (*strings_at - *symbols_at) / sizeof(Elf64_Sym));
  tables.strings = file.read<char>(*strings_at, strings_size);
  return tables;
}

void take_from(const Tables& tables, const std::vector<Elf64_Phdr>& segments,
               const std::function<bool(std::string_view)>& wanted, std::string_view mark, FunctionSearch& search) {
  for (const Elf64_Sym& symbol : tables.symbols) {
    if (symbol.st_shndx == SHN_UNDEF) continue;
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    if (type != STT_FUNC && type != STT_GNU_IFUNC) continue;
    const std::string_view name = tables.name(symbol);
    if (name == mark) search.marked = true;
    if (name.empty() || !wanted(name)) continue;
    if (type == STT_GNU_IFUNC) {
      ++search.ifuncs;
      continue;
    }
    const auto offset = offset_of(segments, symbol.st_value);
    if (offset)
      search.functions.push_back({std::string(name), *offset});
    else
      ++search.misplaced;
  }
}

}  // namespace

Result<FunctionSearch> find_functions(int fd, const std::function<bool(std::string_view)>& wanted,
                                      std::string_view mark) {
  const File file(fd);
  const auto heads = file.read<Elf64_Ehdr>(0, 1);
  if (heads.empty() || std::memcmp(heads[0].e_ident, ELFMAG, SELFMAG) != 0)
    return Error(Code::kBadInput, "no ELF file");
  const Elf64_Ehdr& head = heads[0];
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_machine != EM_X86_64)
    return Error(Code::kUnsupported, "not an ELF file for x86-64");
  if (head.e_phentsize != sizeof(Elf64_Phdr)) return Error(Code::kBadInput, "odd size of program headers");
  const auto segments = file.read<Elf64_Phdr>(head.e_phoff, head.e_phnum);
  if (segments.empty()) return Error(Code::kBadInput, "no program headers where the ELF header says");
  std::vector<Elf64_Shdr> sections;
  if (head.e_shentsize == sizeof(Elf64_Shdr)) sections = file.read<Elf64_Shdr>(head.e_shoff, head.e_shnum);

  FunctionSearch search;
  Tables dynamic = section_tables(file, sections, SHT_DYNSYM);
  if (dynamic.symbols.empty()) dynamic = dynamic_tables(file, segments);
  take_from(dynamic, segments, wanted, mark, search);
  if (search.functions.empty()) take_from(section_tables(file, sections, SHT_SYMTAB), segments, wanted, mark, search);

  // Two names of one function are one place; the shorter name wins.
  std::sort(search.functions.begin(), search.functions.end(), [](const FunctionPlace& a, const FunctionPlace& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.name.size() < b.name.size();
  });
  const auto last = std::unique(search.functions.begin(), search.functions.end(),
                                [](const FunctionPlace& a, const FunctionPlace& b) { return a.offset == b.offset; });
  search.functions.erase(last, search.functions.end());
  return search;
}

}  // namespace gpuwatch::source
