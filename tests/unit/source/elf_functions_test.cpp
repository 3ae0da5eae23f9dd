// SPDX-License-Identifier: Apache-2.0
// Functions found in ELF files: those of this test's own program, of files made
// here, and of files that lie.
#include "source/elf_functions.h"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <random>

#include "base/fd.h"
#include "source/loaders.h"

namespace gpuwatch::source {
namespace {

bool wanted(std::string_view name) {
  return loader_of(name).has_value();
}

// A small libcuda: one executable segment at 0x1000, file offset 0x200.
struct Made {
  std::vector<Elf64_Sym> symbols{Elf64_Sym{}};
  std::string strings{'\0'};
  bool sections = true;
  std::uint32_t table = SHT_DYNSYM;

  void add(const std::string& name, std::uint64_t address, unsigned type = STT_FUNC, std::uint16_t section = 1) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<Elf64_Word>(strings.size());
    symbol.st_info = static_cast<unsigned char>(ELF64_ST_INFO(STB_GLOBAL, type));
    symbol.st_value = address;
    symbol.st_shndx = section;
    symbols.push_back(symbol);
    strings += name;
    strings += '\0';
  }

  // header | segments | symbols | strings | sections | dynamic
  std::vector<char> bytes() const {
    const std::size_t segments_at = sizeof(Elf64_Ehdr);
    const std::size_t symbols_at = segments_at + 3 * sizeof(Elf64_Phdr);
    const std::size_t strings_at = symbols_at + symbols.size() * sizeof(Elf64_Sym);
    const std::size_t sections_at = strings_at + strings.size();
    const std::size_t dynamic_at = sections_at + 2 * sizeof(Elf64_Shdr);
    std::vector<char> out(dynamic_at + 4 * sizeof(Elf64_Dyn));
    Elf64_Ehdr head{};
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_machine = EM_X86_64;
    head.e_phoff = segments_at;
    head.e_phentsize = sizeof(Elf64_Phdr);
    head.e_phnum = 3;
    head.e_shoff = sections ? sections_at : 0;
    head.e_shentsize = sizeof(Elf64_Shdr);
    head.e_shnum = sections ? 2 : 0;
    Elf64_Phdr code{};
    code.p_type = PT_LOAD;
    code.p_flags = PF_R | PF_X;
    code.p_vaddr = 0x1000;
    code.p_offset = 0x200;
    code.p_filesz = 0x1000;
    Elf64_Phdr data{};  // the tables, seen by the dynamic linker at 0x100000
    data.p_type = PT_LOAD;
    data.p_flags = PF_R;
    data.p_vaddr = 0x100000;
    data.p_filesz = out.size();
    Elf64_Phdr dynamic{};
    dynamic.p_type = PT_DYNAMIC;
    dynamic.p_offset = dynamic_at;
    dynamic.p_filesz = 4 * sizeof(Elf64_Dyn);
    Elf64_Shdr symbol_section{};
    symbol_section.sh_type = table;
    symbol_section.sh_link = 1;
    symbol_section.sh_offset = symbols_at;
    symbol_section.sh_size = symbols.size() * sizeof(Elf64_Sym);
    Elf64_Shdr string_section{};
    string_section.sh_type = SHT_STRTAB;
    string_section.sh_offset = strings_at;
    string_section.sh_size = strings.size();
    const Elf64_Dyn entries[4] = {{DT_SYMTAB, {0x100000 + symbols_at}},
                                  {DT_STRTAB, {0x100000 + strings_at}},
                                  {DT_STRSZ, {strings.size()}},
                                  {DT_NULL, {0}}};
    std::memcpy(out.data(), &head, sizeof head);
    std::memcpy(out.data() + segments_at, &code, sizeof code);
    std::memcpy(out.data() + segments_at + sizeof code, &data, sizeof data);
    std::memcpy(out.data() + segments_at + 2 * sizeof code, &dynamic, sizeof dynamic);
    std::memcpy(out.data() + symbols_at, symbols.data(), symbols.size() * sizeof(Elf64_Sym));
    std::memcpy(out.data() + strings_at, strings.data(), strings.size());
    std::memcpy(out.data() + sections_at, &symbol_section, sizeof symbol_section);
    std::memcpy(out.data() + sections_at + sizeof symbol_section, &string_section, sizeof string_section);
    std::memcpy(out.data() + dynamic_at, entries, sizeof entries);
    return out;
  }
};

base::Result<FunctionSearch> search(const std::vector<char>& bytes) {
  const base::Fd fd(::memfd_create("elf", MFD_CLOEXEC));
  EXPECT_EQ(::write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  return find_functions(fd.get(), wanted, kLibcudaMark);
}

Made libcuda() {
  Made made;
  made.add("cuInit", 0x1010);
  made.add("cuModuleLoadData", 0x1100);
  made.add("cuLinkAddData_v2", 0x1200);
  made.add("cuLinkAddData", 0x1200);
  made.add("cuCtxCreate", 0x1300);
  return made;
}

TEST(ElfFunctions, FindsPlacesOnceByRisingOffset) {
  auto found = search(libcuda().bytes());
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->marked);
  ASSERT_EQ(found->functions.size(), 2u);
  EXPECT_EQ(found->functions[0].name, "cuModuleLoadData");
  EXPECT_EQ(found->functions[0].offset, 0x300u);
  EXPECT_EQ(found->functions[1].name, "cuLinkAddData");
  EXPECT_EQ(found->functions[1].offset, 0x400u);
}

TEST(ElfFunctions, SymtabWhereDynsymHasNone) {
  Made made = libcuda();
  made.table = SHT_SYMTAB;
  made.symbols[2].st_value = 0x1180;
  auto found = search(made.bytes());
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->functions.size(), 2u);
}

TEST(ElfFunctions, StrippedSectionTable) {
  Made made = libcuda();
  made.sections = false;
  auto found = search(made.bytes());
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->marked);
  EXPECT_EQ(found->functions.size(), 2u);
}

TEST(ElfFunctions, RefusesWhatIsNoCode) {
  Made made;
  made.add("cuModuleLoad", 0x1100, STT_GNU_IFUNC);
  made.add("cuModuleLoadData", 0x1100, STT_FUNC, SHN_UNDEF);
  made.add("cuModuleLoadDataEx", 0x5000);
  made.add("cuLibraryLoadData", 0xfff);
  made.add("cuLinkAddFile", 0x1100, STT_OBJECT);
  made.add("cuModuleLoadFatBinary", 0x100010);  // in data
  auto found = search(made.bytes());
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->functions.empty());
  EXPECT_EQ(found->ifuncs, 1u);
  EXPECT_EQ(found->misplaced, 3u);
  EXPECT_FALSE(found->marked);
}

TEST(ElfFunctions, OtherFiles) {
  EXPECT_FALSE(search({}).ok());
  EXPECT_FALSE(search({'#', '!', '/'}).ok());
  auto bytes = libcuda().bytes();
  bytes[EI_CLASS] = ELFCLASS32;
  EXPECT_FALSE(search(bytes).ok());
  bytes = libcuda().bytes();
  bytes.resize(70);
  EXPECT_FALSE(search(bytes).ok());
  const base::Fd self(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  auto own = find_functions(
      self.get(), [](std::string_view name) { return name == "main"; }, "main");
  ASSERT_TRUE(own.ok());
  ASSERT_EQ(own->functions.size(), 1u);
  EXPECT_TRUE(own->marked);
}

// Whatever a byte becomes: no crash, and no place outside of the code.
TEST(ElfFunctions, Damaged) {
  const auto good = libcuda().bytes();
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    auto bytes = good;
    for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (round % 5 == 0) bytes.resize(random() % bytes.size());
    auto found = search(bytes);
    if (!found.ok()) continue;
    EXPECT_LE(found->functions.size(), good.size() / sizeof(Elf64_Sym));
  }
}

}  // namespace
}  // namespace gpuwatch::source
