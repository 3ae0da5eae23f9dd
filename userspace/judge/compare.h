// SPDX-License-Identifier: Apache-2.0
// Two baselines side by side, and one poured into another.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "judge/baseline.h"

namespace gpuwatch::judge {

enum class DiffKind {
  kRemoved,  // module only in the first
  kAdded,    // module only in the second
  kChanged,  // kernel of an added module whose name and SM the first has, with another K
};

struct DiffLine {
  DiffKind kind = DiffKind::kAdded;
  const Entry* entry = nullptr;                // the module; of kChanged the added one
  const model::KernelPrint* kernel = nullptr;  // of kChanged
  const model::KernelPrint* before = nullptr;
};

struct DiffCounts {
  std::uint64_t removed = 0;
  std::uint64_t added = 0;
  std::uint64_t changed = 0;
  std::uint64_t common = 0;
  bool any() const { return removed + added + changed != 0; }
};

// Modules are the same when their R is.
base::Result<DiffCounts> diff(Baseline& first, Baseline& second,
                              const std::function<base::Status(const DiffLine&)>& visit);

// Adds what `from` has to `into`; gives the number of new modules. A known
// list and a deny list do not mix.
base::Result<std::uint64_t> merge(Baseline& into, Baseline& from);

}  // namespace gpuwatch::judge
