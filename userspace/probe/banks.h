// SPDX-License-Identifier: Apache-2.0
// Constant banks that decide what runs: 2 holds a function's jump tables, 4 the
// addresses that code of the module refers to. A changed entry redirects code
// whose text is unchanged. They lie beside the code in memory of the driver's, at
// 256-byte steps (seen on an H200, driver 580.159.04: the copy there is the one
// that runs; another in system memory is not). Banks 0 (parameters) and 3 (the
// program's own constants) are data. Pure functions over untrusted bytes.
#pragma once

#include "probe/locate.h"

namespace gpuwatch::probe {

struct Bank {
  std::string name;  // of the section
  unsigned number = 0;
  std::uint32_t function = 0;  // section of the function that it belongs to, 0: of the module
  std::vector<std::uint8_t> bytes;
  std::vector<Relocation> relocations;
};

// Banks 2 and 4 that are not empty. Empty text: good, else what is wrong.
std::string read_banks(identify::Bytes image, std::vector<Bank>& out);

// The bank with the relocations whose symbols are known; `mask` has 0 where none is.
std::vector<std::uint8_t> expected_bank(const Bank& bank, const Addresses& addresses, std::vector<std::uint8_t>& mask);

struct BankImage {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint8_t> mask;
  std::size_t module = 0;  // the same for banks that were loaded together
};

// Too little in it to be found: all zero, or decided by relocations.
bool tells_nothing(const BankImage& bank);

// A place for each, address 0 where there is none; the differences are counted in
// words of 4 bytes. Whole ones come first and each place is given away once, as
// with functions; what is not there whole is placed where at least half of its
// words are, or next to banks of the same module when what lies there is new since
// `before`.
std::vector<Place> locate_banks(const std::vector<BankImage>& banks, const std::vector<Copy>& copies,
                                const std::vector<Copy>& before);

}  // namespace gpuwatch::probe
