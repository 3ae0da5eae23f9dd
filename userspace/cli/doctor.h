// SPDX-License-Identifier: Apache-2.0
// Doctor: checks of this machine, layer by layer. Each says what was checked,
// what was found, and the remedy. It changes nothing.
#pragma once

#include <string>
#include <vector>

namespace gpuwatch::cli {

enum class Verdict { kOk, kNote, kProblem };

struct Check {
  std::string layer;    // "hardware", "driver", ...
  std::string checked;  // where we looked
  std::string found;
  Verdict verdict = Verdict::kOk;
  std::string remedy;  // empty where there is nothing to do
};

// `root` stands in front of every path, for tests.
std::vector<Check> examine(const std::string& root = "");

}  // namespace gpuwatch::cli
