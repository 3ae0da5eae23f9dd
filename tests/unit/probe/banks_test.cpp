// SPDX-License-Identifier: Apache-2.0
// Constant banks of a cubin, and the search for them in what the loader makes of it.
#include "probe/banks.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace gpuwatch::probe {
namespace {

constexpr std::uint64_t kBlock = 0x7f00'0000'0000;

std::vector<std::uint8_t> tables() {
  std::ifstream file(BANK_CUBIN, std::ios::binary);
  return std::vector<std::uint8_t>((std::istreambuf_iterator<char>(file)), {});
}

std::vector<Bank> banks() {
  std::vector<Bank> out;
  EXPECT_EQ(read_banks(tables(), out), "");
  return out;
}

// Addresses for all symbols, so that every relocation is known.
Addresses addresses_for(const std::vector<Bank>& banks, std::uint64_t from) {
  Addresses out;
  for (const Bank& bank : banks)
    for (const Relocation& relocation : bank.relocations) out[relocation.symbol] = from + 0x100 * relocation.symbol;
  return out;
}

std::vector<BankImage> images_of(const std::vector<Bank>& banks, const Addresses& addresses) {
  std::vector<BankImage> out;
  for (const Bank& bank : banks) {
    BankImage image;
    image.bytes = expected_bank(bank, addresses, image.mask);
    out.push_back(image);
  }
  return out;
}

// One after the other at 256-byte steps, as seen.
Copy heap(const std::vector<BankImage>& images, std::size_t at) {
  Copy copy{kBlock, std::vector<std::uint8_t>(1 << 16)};
  for (const BankImage& image : images) {
    std::copy(image.bytes.begin(), image.bytes.end(), copy.bytes.begin() + static_cast<std::ptrdiff_t>(at));
    at += 256;
  }
  return copy;
}

TEST(Banks, OfACubin) {
  const std::vector<Bank> found = banks();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, ".nv.constant4");
  EXPECT_EQ(found[0].number, 4u);
  EXPECT_EQ(found[0].function, 0u);
  EXPECT_EQ(found[0].relocations.size(), 2u);
  EXPECT_EQ(found[1].name, ".nv.constant2.jump");
  EXPECT_EQ(found[1].number, 2u);
  EXPECT_NE(found[1].function, 0u);
  EXPECT_EQ(found[1].bytes.size(), 32u);
  EXPECT_TRUE(found[1].relocations.empty());
}

TEST(Banks, CutFilesAreErrorsOrLess) {
  const std::vector<std::uint8_t> whole = tables();
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    std::vector<Bank> out;
    (void)read_banks(identify::Bytes(whole).first(size), out);
    EXPECT_LE(out.size(), 2u);
  }
}

TEST(Banks, AddressesAreRelocated) {
  const std::vector<Bank> found = banks();
  const Addresses known = addresses_for(found, 0x7f12'0000'0000);
  std::vector<std::uint8_t> mask;
  const std::vector<std::uint8_t> bytes = expected_bank(found[0], known, mask);
  for (const Relocation& relocation : found[0].relocations)
    EXPECT_EQ(identify::load<std::uint64_t>(bytes, relocation.offset), known.at(relocation.symbol));
  EXPECT_EQ(std::count(mask.begin(), mask.end(), 0xff), 16);
  (void)expected_bank(found[0], {}, mask);
  EXPECT_EQ(std::count(mask.begin(), mask.end(), 0), 16);
  EXPECT_TRUE(tells_nothing({found[0].bytes, mask}));
}

TEST(Banks, AreFoundAndTwinsGetOneEach) {
  const std::vector<Bank> found = banks();
  const std::vector<BankImage> images = images_of(found, addresses_for(found, 0x7f12'0000'0000));
  Copy copy = heap(images, 0x400);
  const std::vector<Place> places = locate_banks(images, {copy}, {});
  EXPECT_EQ(places[0].address, kBlock + 0x400);
  EXPECT_EQ(places[1].address, kBlock + 0x500);
  EXPECT_TRUE(places[1].exact);
  std::copy(images[1].bytes.begin(), images[1].bytes.end(), copy.bytes.begin() + 0x600);
  const std::vector<Place> twins = locate_banks({images[1], images[1]}, {copy}, {});
  EXPECT_EQ(twins[0].address, kBlock + 0x500);
  EXPECT_EQ(twins[1].address, kBlock + 0x600);
}

TEST(Banks, AChangedEntryIsTold) {
  const std::vector<Bank> found = banks();
  const std::vector<BankImage> images = images_of(found, addresses_for(found, 0x7f12'0000'0000));
  const Copy before{kBlock, std::vector<std::uint8_t>(1 << 16)};
  for (std::size_t word = 0; word < 8; ++word) {
    Copy copy = heap(images, 0x400);
    copy.bytes[0x500 + 4 * word + 1] ^= 0x01;
    const std::vector<Place> places = locate_banks(images, {copy}, {before});
    EXPECT_EQ(places[1].address, kBlock + 0x500);
    EXPECT_FALSE(places[1].exact);
    EXPECT_EQ(places[1].differences, 1u);
    EXPECT_EQ(places[1].first, 4 * word + 1);
  }
  // Both addresses of the small one: nothing of it is left, but it lies beside the other.
  Copy copy = heap(images, 0x400);
  for (std::size_t i = 0; i < 16; ++i) copy.bytes[0x400 + i] ^= 0x10;
  const std::vector<Place> places = locate_banks(images, {copy}, {before});
  EXPECT_EQ(places[0].address, kBlock + 0x400);
  EXPECT_FALSE(places[0].exact);
}

TEST(Banks, LeftoversComeLastAndOnlyWhole) {
  const std::vector<Bank> found = banks();
  const std::vector<BankImage> images = images_of(found, addresses_for(found, 0x7f12'0000'0000));
  const Copy before = heap(images, 0x400);  // of a module that was unloaded
  Copy copy = before;
  std::copy(images[1].bytes.begin(), images[1].bytes.end(), copy.bytes.begin() + 0x900);
  EXPECT_EQ(locate_banks({images[1]}, {copy}, {before})[0].address, kBlock + 0x900);
  copy.bytes[0x904] ^= 4;  // the new one is changed: the clean leftover does not stand in for it
  EXPECT_EQ(locate_banks({images[1]}, {copy}, {before})[0].address, kBlock + 0x900);
  EXPECT_EQ(locate_banks({images[1]}, {before}, {before})[0].address, kBlock + 0x500);
  Copy changed = before;
  changed.bytes[0x504] ^= 4;
  EXPECT_EQ(locate_banks({images[1]}, {changed}, {changed})[0].address, 0u);
}

}  // namespace
}  // namespace gpuwatch::probe
