// SPDX-License-Identifier: Apache-2.0
// The actions of `gpuwatch baseline` that look at GPU code.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "cli/flags.h"

namespace gpuwatch::cli {

base::Result<int> baseline_build(const Flags& flags, std::span<const std::string> paths);
// Of no recordings: live.
base::Result<int> baseline_learn(const Flags& flags, std::span<const std::string> recordings);
base::Result<int> baseline_check(const Flags& flags, std::span<const std::string> paths);

}  // namespace gpuwatch::cli
