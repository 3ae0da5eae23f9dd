// SPDX-License-Identifier: Apache-2.0
// `gpuwatch decode --device ...`: one call from texts, decoded and printed.
#pragma once

#include <optional>

#include "base/result.h"
#include "cli/flags.h"
#include "model/driver_version.h"

namespace gpuwatch::cli {

// Any of the flags that belong to one call was given.
bool is_lone_call(const Flags& flags);

// `driver`: as --driver says it; else the call itself or the loaded driver tells.
base::Result<int> decode_lone_call(const Flags& flags, std::optional<model::DriverVersion> driver);

base::Result<model::DriverVersion> driver_from_flag(const std::string& text);

}  // namespace gpuwatch::cli
