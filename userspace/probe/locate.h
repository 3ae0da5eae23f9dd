// SPDX-License-Identifier: Apache-2.0
// Finds functions in copies of the code heap and gives each its place. Pure
// functions over untrusted bytes: finding reads no relocation (candidates.cpp),
// giving out places goes by what relocations say of each other (locate.cpp).
#pragma once

#include <vector>

#include "probe/code.h"

namespace gpuwatch::probe {

// Copies of memory to search, each from its address on.
struct Copy {
  std::uint64_t address = 0;
  std::vector<std::uint8_t> bytes;
};

// Bytes at an address, if one copy holds them all.
identify::Bytes resident_at(const std::vector<Copy>& copies, std::uint64_t address, std::uint64_t bytes);

struct Place {
  std::uint64_t address = 0;      // 0: not found
  bool exact = false;             // all bytes under the mask are equal
  std::uint64_t differences = 0;  // in 16-byte units, where not exact
  std::uint64_t first = 0;        // offset of the first differing byte
};

// A function, with what is known of the module that it was loaded with.
struct Sought {
  const Function* function = nullptr;
  const Code* code = nullptr;        // null: its relocations decide nothing
  std::size_t module = 0;            // the same for functions that were loaded together
  const Addresses* known = nullptr;  // of symbols of that module; may be null
};

enum class Search { kExact, kAll };

// Gives every function a place at a 128-byte step of the copies, each place to
// one function. Of functions with equal text a place belongs to the one whose
// relocations are there: symbols where `known` has them, functions where they
// have theirs. What matches nowhere in full is placed, with kAll, where most of
// it does. `before` is the same memory before the modules were loaded: of places
// that are equally good, what was there already is a leftover and comes last.
std::vector<Place> locate(const std::vector<Sought>& functions, const std::vector<Copy>& copies,
                          const std::vector<Copy>& before = {}, Search search = Search::kAll);
// The same for functions of no known modules.
std::vector<Place> locate(const std::vector<const Function*>& functions, const std::vector<Copy>& copies,
                          const std::vector<Copy>& before = {}, Search search = Search::kAll);

}  // namespace gpuwatch::probe
