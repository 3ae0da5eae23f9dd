// SPDX-License-Identifier: Apache-2.0
// What a cubin may cost: sections, symbols, names, and bytes hashed when
// sections share them.
#include "identify/elf.h"

#include <gtest/gtest.h>

#include "unit/identify/support.h"

namespace gpuwatch::identify {
namespace {

std::string parse_error(const std::string& bytes, const Limits& limits) {
  Elf elf;
  return elf.parse(as_bytes(bytes), limits);
}

TEST(ElfLimits, SectionsAndSymbols) {
  const std::string cubin = test::sample("chg_base_80.cubin");
  Elf elf;
  ASSERT_EQ(elf.parse(as_bytes(cubin), {}), "");
  Limits limits;
  limits.sections = elf.sections().size();
  limits.symbols = elf.symbols().size();
  EXPECT_EQ(parse_error(cubin, limits), "");
  --limits.sections;
  EXPECT_EQ(parse_error(cubin, limits), "more than " + std::to_string(limits.sections) + " sections");
  ++limits.sections;
  --limits.symbols;
  EXPECT_EQ(parse_error(cubin, limits), "more than " + std::to_string(limits.symbols) + " symbols");
}

TEST(ElfLimits, ACountInSectionZeroIsBoundedToo) {
  std::string cubin = test::sample("chg_base_80.cubin");
  test::put<std::uint16_t>(cubin, 60, 0);
  const auto table = load<std::uint64_t>(as_bytes(cubin), 40);
  test::put<std::uint64_t>(cubin, table + 32, 1'000'001);
  EXPECT_EQ(parse_error(cubin, {}), "more than 1000000 sections");
  test::put<std::uint64_t>(cubin, table + 32, ~std::uint64_t{0});
  EXPECT_EQ(parse_error(cubin, {}), "more than 1000000 sections");
}

TEST(ElfLimits, ALongNameIsNone) {
  const std::string cubin = test::sample("chg_base_80.cubin");
  Limits limits;
  limits.name_bytes = 16;
  Elf elf;
  ASSERT_EQ(elf.parse(as_bytes(cubin), limits), "");
  for (const Section& section : elf.sections()) EXPECT_LT(section.name.size(), 16u);
  EXPECT_NE(elf.find(".text._Z2k1Pi"), Elf::npos);
  EXPECT_EQ(elf.find(".nv.constant0._Z2k1Pi"), Elf::npos);
}

TEST(ElfLimits, SectionsThatShareBytesCannotMultiplyTheWork) {
  std::string cubin = test::sample("chg_base_80.cubin");
  const auto table = load<std::uint64_t>(as_bytes(cubin), 40);
  const auto count = load<std::uint16_t>(as_bytes(cubin), 60);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = table + 64 * i;
    const auto flags = load<std::uint64_t>(as_bytes(cubin), at + 8);
    if (load<std::uint32_t>(as_bytes(cubin), at + 4) != 1 || (flags & 4) == 0) continue;
    test::put<std::uint64_t>(cubin, at + 24, 0);
    test::put<std::uint64_t>(cubin, at + 32, cubin.size());
  }
  const test::Found found = test::identify_here(cubin);
  ASSERT_EQ(found.modules.size(), 1u);
  EXPECT_EQ(found.modules[0].errors, std::vector<std::string>{"sections overlap: more than 4 times the image to hash"});
  EXPECT_FALSE(found.modules[0].kernels.empty());
}

TEST(ElfLimits, AsStated) {
  const Limits limits;
  EXPECT_EQ(limits.image_bytes, 512u << 20);
  EXPECT_EQ(limits.ratio, 1000u);
  EXPECT_EQ(limits.sections, 1'000'000u);
  EXPECT_EQ(limits.symbols, 4'000'000u);
  EXPECT_EQ(limits.name_bytes, 64u << 10);
  EXPECT_EQ(limits.hashed_ratio, 4u);
}

}  // namespace
}  // namespace gpuwatch::identify
