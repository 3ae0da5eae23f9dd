// SPDX-License-Identifier: Apache-2.0
#include "scan/magics.h"

#include <gtest/gtest.h>

#include "build_code.h"

namespace gpuwatch::scan {
namespace {

std::vector<Find> find_in(const Memory& memory, std::uint64_t max = 1 << 20) {
  const std::uint64_t base = 0x10000;
  const ReadMemory read = [&](std::uint64_t address, std::span<std::byte> out) -> std::size_t {
    if (address < base || address - base > memory.size()) return 0;
    const std::size_t n = std::min<std::size_t>(out.size(), memory.size() - (address - base));
    std::copy_n(memory.begin() + static_cast<std::ptrdiff_t>(address - base), n, out.begin());
    return n;
  };
  return find_code(memory, base, base + memory.size(), read, max);
}

TEST(Magics, FindsEachForm) {
  Memory memory(64);
  append(memory, container(200));
  append(memory, cubin(3));
  memory.resize(memory.size() + 5);
  append_text(memory, ".version 8.0\n.target sm_90\n// body\n");
  memory.push_back(std::byte{0});
  const auto finds = find_in(memory);
  ASSERT_EQ(finds.size(), 3u);
  EXPECT_EQ(finds[0].kind, FindKind::kContainer);
  EXPECT_EQ(finds[0].address, 0x10000u + 64);
  EXPECT_EQ(finds[0].bytes, 16u + 200);
  EXPECT_EQ(finds[1].kind, FindKind::kCubin);
  EXPECT_EQ(finds[1].bytes, 64u + 3 * 64);
  EXPECT_EQ(finds[2].kind, FindKind::kPtx);
  EXPECT_EQ(finds[2].bytes, 35u);
}

TEST(Magics, WhatLiesInAContainerBelongsToIt) {
  Memory whole = container(1000);
  Memory inner = cubin(2);
  std::copy(inner.begin(), inner.end(), whole.begin() + 96);
  Memory text;
  append_text(text, ".version 8.0\n.target sm_90\n");
  std::copy(text.begin(), text.end(), whole.begin() + 500);
  EXPECT_EQ(find_in(whole).size(), 1u);
}

TEST(Magics, HeadersThatMakeNoSenseAreNoCode) {
  const auto changed = [](Memory memory, std::size_t at, std::uint8_t value) {
    memory[at] = static_cast<std::byte>(value);
    return memory;
  };
  EXPECT_EQ(find_in(container(200)).size(), 1u);
  EXPECT_TRUE(find_in(changed(container(200), 14, 0xff)).empty()) << "body beyond the mapping";
  EXPECT_TRUE(find_in(changed(container(200), 18, 7)).empty()) << "version of the entry";
  EXPECT_TRUE(find_in(changed(container(200), 20, 8)).empty()) << "header of the entry";
  EXPECT_TRUE(find_in(changed(container(200), 4, 2)).empty()) << "version of the container";
  EXPECT_EQ(find_in(cubin(2)).size(), 1u);
  EXPECT_TRUE(find_in(changed(cubin(2), 18, 62)).empty()) << "a program of the host";
  EXPECT_TRUE(find_in(changed(cubin(2), 4, 1)).empty()) << "32 bits";
  EXPECT_TRUE(find_in(changed(cubin(2), 7, 0)).empty()) << "another ABI";
  EXPECT_TRUE(find_in(changed(cubin(2), 60, 200)).empty()) << "sections beyond the mapping";
  EXPECT_TRUE(find_in(changed(cubin(2), 47, 0xff)).empty()) << "sections out of the world";
  Memory text;
  append_text(text, ".version x.0\n.target sm_90\n.version 8.0 without the other");
  EXPECT_TRUE(find_in(text).empty());
  EXPECT_TRUE(find_in(container(200), 100).empty()) << "over the bound";
  for (std::size_t n = 0; n < 300; ++n) (void)find_in(Memory(n, std::byte{0x50}));
  Memory cut = container(200);
  for (std::size_t n = 0; n < cut.size(); ++n)
    EXPECT_TRUE(find_in(Memory(cut.begin(), cut.begin() + static_cast<std::ptrdiff_t>(n))).empty());
}

}  // namespace
}  // namespace gpuwatch::scan
