// SPDX-License-Identifier: Apache-2.0
// Code is found wherever it lies in a file, whatever surrounds it.
#include "identify/scan.h"

#include <gtest/gtest.h>

#include <random>

#include "unit/identify/support.h"

namespace gpuwatch::identify {
namespace {

std::string noise(std::size_t size) {
  std::mt19937_64 random(size);
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>(random() | 0x80);
  return out;
}

std::string to8(std::string bytes) {
  while (bytes.size() % 8 != 0) bytes += '\0';
  return bytes;
}

TEST(Scan, InTheMiddleAndAcrossWindows) {
  const std::string cubin = test::sample("chg_base_80.cubin");
  const std::string fatbin = test::sample("d_90a.fatbin");
  const std::string ptx = std::string(1, '\0') + "//\n// comment\n" + test::make_ptx() + std::string(1, '\0');
  for (const std::size_t before : {std::size_t{8}, std::size_t{4096}, (std::size_t{1} << 20) - 8,
                                   (std::size_t{1} << 20) + 64, std::size_t{3} << 20}) {
    const std::string bytes = to8(noise(before) + fatbin) + to8(noise(24) + cubin) + to8(noise(16) + ptx) + noise(800);
    const test::Found found = test::identify_here(bytes);
    ASSERT_EQ(found.scan.images.size(), 4u) << before;
    EXPECT_EQ(found.scan.containers.size(), 1u);
    EXPECT_EQ(found.scan.containers[0].offset, before);
    EXPECT_EQ(found.modules[2].r, sha256(as_bytes(cubin))) << before;
    EXPECT_EQ(found.modules[3].r, sha256(as_bytes(ptx.substr(1, ptx.size() - 2)))) << before;
    EXPECT_EQ(found.scan.images[3].sm, 80u);
  }
}

TEST(Scan, NothingInNoise) {
  EXPECT_TRUE(test::identify_here(noise(5 << 20)).scan.images.empty());
  EXPECT_TRUE(test::identify_here("").scan.images.empty());
}

TEST(Scan, AMagicInsideOfAPayloadIsNoContainer) {
  const std::string inner = test::make_container({{1, test::make_ptx()}});
  const test::Found found = test::identify_here(test::make_container({{2, inner}}));
  EXPECT_EQ(found.scan.containers.size(), 1u);
  ASSERT_EQ(found.modules.size(), 1u);
  EXPECT_EQ(found.modules[0].errors, std::vector<std::string>{"not ELF"});
}

TEST(Scan, ABrokenContainerHidesNothingBehindIt) {
  std::string broken = test::make_container({{1, test::make_ptx()}});
  test::put<std::uint32_t>(broken, 16 + 4, 0);
  const test::Found found = test::identify_here(to8(broken) + test::make_container({{1, test::make_ptx("other")}}));
  EXPECT_EQ(found.scan.containers.size(), 2u);
  EXPECT_EQ(found.scan.containers[0].errors.size(), 1u);
  EXPECT_EQ(found.scan.containers[1].errors.size(), 0u);
}

TEST(Scan, TheSumOfAllImagesIsBounded) {
  std::vector<test::EntrySpec> entries(10, {2, std::string(4096, 'x'), "", 0x8011, 4096, 3'000'000});
  Limits limits;
  limits.file_inflated_bytes = 10'000'000;
  const MemorySource empty({});
  const std::string bytes = test::make_container(entries);
  const Scan found = scan(MemorySource(as_bytes(bytes)), limits);
  std::size_t refused = 0;
  for (const Image& image : found.images) refused += image.error.empty() ? 0 : 1;
  EXPECT_EQ(refused, 7u);
}

TEST(Scan, EntriesAreBounded) {
  Limits limits;
  limits.entries = 3;
  const std::string bytes = test::make_container(std::vector<test::EntrySpec>(5, {1, test::make_ptx()}));
  const Scan found = scan(MemorySource(as_bytes(bytes)), limits);
  EXPECT_EQ(found.images.size(), 3u);
  EXPECT_EQ(found.containers[0].errors.size(), 1u);
}

}  // namespace
}  // namespace gpuwatch::identify
