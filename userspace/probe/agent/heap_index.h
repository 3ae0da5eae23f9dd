// SPDX-License-Identifier: Apache-2.0
// Which pieces of 32 bytes occur in copies of memory, so that of a process's
// many thousand functions those that are not there are passed over unsearched.
// It may take something for there that is not; the search itself decides.
#pragma once

#include <cstdint>
#include <vector>

#include "probe/locate.h"

namespace gpuwatch::probe::agent {

class HeapIndex {
 public:
  // Pieces at each 16th byte; all-zero ones are left out.
  explicit HeapIndex(const std::vector<Copy>& copies);

  // Whether half of some pieces spread over the function, which no relocation
  // touches, occur. A function too short to have one may be anywhere.
  bool may_hold(const Function& function) const;
  bool may_hold(const Code& code) const;

 private:
  std::vector<std::uint64_t> pieces_;  // hashes, sorted
};

}  // namespace gpuwatch::probe::agent
