// SPDX-License-Identifier: Apache-2.0
// Relocation arithmetic and the search for code, without a GPU.
#include <gtest/gtest.h>

#include <random>

#include "probe/locate.h"

namespace gpuwatch::probe {
namespace {

Function random_function(unsigned seed, std::size_t bytes) {
  std::mt19937_64 random(seed);
  Function function;
  function.text.resize(bytes);
  for (auto& byte : function.text) byte = static_cast<std::uint8_t>(random());
  return function;
}

TEST(Code, FieldsOfEachRelocation) {
  const std::uint64_t target = 0x7f12'3456'789cull;
  std::vector<std::uint8_t> text(32, 0);
  apply(text, {0, kRelocLow32, 0, 0}, target);
  apply(text, {16, kRelocHigh32, 0, 0}, target);
  EXPECT_EQ(identify::load<std::uint64_t>(text, 0), 0x3456'789c'0000'0000ull);
  EXPECT_EQ(identify::load<std::uint64_t>(text, 16), 0x0000'7f12'0000'0000ull);
  std::fill(text.begin(), text.end(), 0xff);
  apply(text, {16, kRelocCall55, 0, 0}, target);
  EXPECT_EQ(text[18], (target >> 2) & 0xff);
  EXPECT_EQ(text[16], 0xff);
  EXPECT_EQ(text[17], 0xff);
  EXPECT_EQ(text[19], 0xff);
  EXPECT_EQ(text[20] & 3, 3);
  EXPECT_EQ(identify::load<std::uint64_t>(text, 20) >> 2 & 0x3fff'ffff'ffffull, target >> 10 & 0x3fff'ffff'ffffull);
  EXPECT_EQ(text[26] & 0xfe, 0xfe);
  apply(text, {8, kReloc64, 0, 0}, target);
  EXPECT_EQ(identify::load<std::uint64_t>(text, 8), target);
}

TEST(Code, SolvesWhatItApplied) {
  Function function = random_function(1, 256);
  function.relocations = {
      {16, kRelocLow32, 4, 8}, {32, kRelocHigh32, 4, 8}, {64, kRelocCall55, 7, 0}, {96, kRelocCall55, 7, 0}};
  const Addresses truth{{4, 0x7f00'1234'5600ull}, {7, 0x7f00'0020'0100ull}};
  const std::vector<std::uint8_t> resident = expected_text(function, truth);
  EXPECT_NE(resident, function.text);
  Addresses solved;
  ASSERT_TRUE(solve(function, resident, solved));
  EXPECT_EQ(solved, truth);
  EXPECT_EQ(expected_text(function, solved), resident);
  std::size_t unknown = 0;
  EXPECT_FALSE(first_difference(function.text, resident, mask_of(function, unknown)));
  EXPECT_EQ(unknown, 0u);
}

TEST(Code, ContradictionIsSeen) {
  Function function = random_function(2, 128);
  function.relocations = {{0, kRelocCall55, 7, 0}, {32, kRelocCall55, 7, 0}};
  std::vector<std::uint8_t> resident = expected_text(function, {{7, 0x1000}});
  apply(resident, function.relocations[1], 0x2000);
  Addresses solved;
  EXPECT_FALSE(solve(function, resident, solved));
}

TEST(Code, UnknownTypeHidesItsInstructionAndIsCounted) {
  Function function = random_function(3, 64);
  function.relocations = {{16, 200, 1, 0}};
  std::size_t unknown = 0;
  const std::vector<std::uint8_t> mask = mask_of(function, unknown);
  EXPECT_EQ(unknown, 1u);
  EXPECT_EQ(mask[15], 0xff);
  EXPECT_EQ(mask[16], 0);
  EXPECT_EQ(mask[31], 0);
  EXPECT_EQ(mask[32], 0xff);
}

TEST(Code, LocatesTwinsOnceEachAndPatchedCode) {
  const Function a = random_function(4, 1024);
  const Function b = a;
  const Function c = random_function(5, 4096);
  const Function absent = random_function(6, 512);
  Copy copy{0x7f0000000000, std::vector<std::uint8_t>(64 * 1024, 0)};
  const auto place = [&](const Function& function, std::size_t at) {
    std::copy(function.text.begin(), function.text.end(), copy.bytes.begin() + static_cast<long>(at));
  };
  place(a, 0x400);
  place(a, 0x2000);
  place(c, 0x4000);
  place(c, 0x8010);         // at no place where code may start
  copy.bytes[0x4000] ^= 1;  // the first piece
  copy.bytes[0x4000 + 777] ^= 4;
  const auto places = locate({&a, &b, &c, &absent}, {copy});
  EXPECT_EQ(places[0].address, 0x7f0000000400u);
  EXPECT_EQ(places[1].address, 0x7f0000002000u);
  EXPECT_TRUE(places[1].exact);
  EXPECT_EQ(places[2].address, 0x7f0000004000u);
  EXPECT_FALSE(places[2].exact);
  EXPECT_EQ(places[2].first, 0u);
  EXPECT_EQ(places[2].differences, 2u);
  EXPECT_EQ(places[3].address, 0u);
}

// A clean copy that lay there before the load must not stand in for code that
// was changed; where there is nothing else it is taken.
TEST(Code, LeftoversComeLast) {
  const Function a = random_function(4, 1024);
  Copy before{0x7f0000000000, std::vector<std::uint8_t>(64 * 1024, 0)};
  std::copy(a.text.begin(), a.text.end(), before.bytes.begin() + 0x400);
  Copy now = before;
  EXPECT_EQ(locate({&a}, {now}, {before})[0].address, 0x7f0000000400u);
  std::copy(a.text.begin(), a.text.end(), now.bytes.begin() + 0x2000);
  EXPECT_EQ(locate({&a}, {now})[0].address, 0x7f0000000400u);
  EXPECT_EQ(locate({&a}, {now}, {before})[0].address, 0x7f0000002000u);
  now.bytes[0x2000 + 512] ^= 1;
  const Place patched = locate({&a}, {now}, {before})[0];
  EXPECT_EQ(patched.address, 0x7f0000002000u);
  EXPECT_FALSE(patched.exact);
  EXPECT_EQ(patched.first, 512u);
}

// As nvcc makes them: a short function is mostly the filling at its end, and so
// is whatever else came into the heap. Seen on an H200 when a module was loaded
// where its last copy had been.
TEST(Code, FillingIsNoLikeness) {
  const auto filled = [](unsigned seed) {
    Function function = random_function(seed, 256);
    for (std::size_t at = 128; at < 256; at += 16) {
      std::fill_n(function.text.begin() + static_cast<long>(at), 16, 0);
      function.text[at] = 0x18;
      function.text[at + 1] = 0x79;
    }
    return function;
  };
  const Function a = filled(7);
  const Function other = filled(8);
  Copy before{0x7f0000000000, std::vector<std::uint8_t>(64 * 1024, 0)};
  std::copy(a.text.begin(), a.text.end(), before.bytes.begin() + 0x400);
  Copy now = before;
  std::copy(other.text.begin(), other.text.end(), now.bytes.begin() + 0x2000);
  const Place place = locate({&a}, {now}, {before})[0];
  EXPECT_EQ(place.address, 0x7f0000000400u);
  EXPECT_TRUE(place.exact);
  // It counts when it is what was changed.
  now.bytes[0x2000 + 200] ^= 1;
  std::copy(a.text.begin(), a.text.begin() + 192, now.bytes.begin() + 0x2000);
  EXPECT_EQ(locate({&a}, {now}, {before})[0].address, 0x7f0000002000u);
  EXPECT_EQ(locate({&a}, {now}, {before})[0].first, 200u);
}

std::vector<std::uint8_t> barriers(std::uint8_t first_control, std::uint8_t second_control) {
  std::vector<std::uint8_t> code = {0x92, 0x79, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0xec, first_control,  0,
                                    0x92, 0x89, 0, 0, 0, 0, 0, 0, 0, 0xa0, 0, 0, 0, 0xec, second_control, 0};
  return code;
}

// Bytes as an H200 with driver 580.159.04 had them in place of libcublas's.
TEST(Code, AcceptsWhatTheLoaderChanges) {
  std::vector<std::uint8_t> expected = barriers(0x0f, 0x0f);
  EXPECT_EQ(accept_loader_changes(expected, barriers(0x0f, 0x0f)), 0u);
  EXPECT_EQ(accept_loader_changes(expected, barriers(0x07, 0x0f)), 0u) << "half of it";
  EXPECT_EQ(accept_loader_changes(expected, barriers(0x05, 0x8f)), 0u) << "and something else";
  EXPECT_EQ(expected, barriers(0x0f, 0x0f));
  EXPECT_EQ(accept_loader_changes(expected, barriers(0x07, 0x8f)), 2u);
  EXPECT_EQ(expected, barriers(0x07, 0x8f));
  std::vector<std::uint8_t> other = barriers(0x0f, 0x0f);
  other[25] = 0x20;
  std::vector<std::uint8_t> resident = barriers(0x07, 0x8f);
  resident[25] = 0x20;
  EXPECT_EQ(accept_loader_changes(other, resident), 0u) << "not that pair";
  std::vector<std::uint8_t> cut(expected.begin(), expected.begin() + 31);
  EXPECT_EQ(accept_loader_changes(cut, barriers(0x07, 0x8f)), 0u);
}

TEST(Code, HostileImages) {
  Code code;
  EXPECT_FALSE(read_code({}, code).empty());
  std::vector<std::uint8_t> bytes(200, 0x7f);
  EXPECT_FALSE(read_code(bytes, code).empty());
}

}  // namespace
}  // namespace gpuwatch::probe
