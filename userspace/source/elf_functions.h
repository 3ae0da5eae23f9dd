// SPDX-License-Identifier: Apache-2.0
// Where functions lie in an ELF file, by name: .dynsym, then .symtab. The file
// is hostile: every offset is checked, every size bounded, and it is read, not
// mapped, since it may shrink meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuwatch::source {

struct FunctionPlace {
  std::string name;
  std::uint64_t offset = 0;  // in the file
};

struct FunctionSearch {
  std::vector<FunctionPlace> functions;  // each place once, by rising offset
  bool marked = false;                   // `mark` is defined there
  std::size_t ifuncs = 0;                // names that are resolved at run time: refused
  std::size_t misplaced = 0;             // names whose code is not in an executable segment
};

// Those functions of the 64-bit x86 ELF file `fd` whose name `wanted` accepts.
// `mark`: name of a function that tells the kind of library. Symbols of all
// versions are taken: an older one has callers too.
base::Result<FunctionSearch> find_functions(int fd, const std::function<bool(std::string_view)>& wanted,
                                            std::string_view mark);

}  // namespace gpuwatch::source
