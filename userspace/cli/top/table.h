// SPDX-License-Identifier: Apache-2.0
// The holdings as a table of plain lines, for pipes and files. Every column,
// nothing cut but names of more than 100 columns.
#pragma once

#include <string>

#include "cli/top/rows.h"
#include "report/holdings.h"

namespace gpuwatch::cli::top {

void append_table(std::string& out, const report::HoldingsSnapshot& snapshot, const ListOptions& options,
                  std::int32_t utc_offset_s, bool colour);

}  // namespace gpuwatch::cli::top
