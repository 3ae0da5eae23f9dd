// SPDX-License-Identifier: Apache-2.0
// `gpuwatch baseline build --resident`: what lies in GPU memory of modules that
// were found in files, as gpuwatch-probe sees it when it loads them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "judge/baseline.h"

namespace gpuwatch::cli {

struct AskedResidents {
  int exit_code = 0;  // other than 0: of gpuwatch-probe, which has said why
  std::string driver;
  std::uint64_t functions = 0;
  std::uint64_t left_out = 0;  // files without code for this GPU, images that were not probed
};

// Fills in the residents of `entries`, file by file. Any function that is not
// what its file calls for ends it with kExitFinding.
base::Result<AskedResidents> ask_residents(std::vector<judge::Entry>& entries);

}  // namespace gpuwatch::cli
