// SPDX-License-Identifier: Apache-2.0
// Writes the capture plan where recorded processes read it (GW_ENV_PLAN).
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "model/raw_record.h"

namespace gpuwatch::preload {

// `sizes` is sorted by key. The recorder checks entries as the kernel module
// does and falls back to its built-in plan where one is wrong.
base::Status write_plan_file(const std::string& path, std::span<const gpuwatch_plan_entry> entries,
                             std::span<const gpuwatch_plan_size> sizes, std::uint32_t default_bytes);

}  // namespace gpuwatch::preload
