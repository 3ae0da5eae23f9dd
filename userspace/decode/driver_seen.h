// SPDX-License-Identifier: Apache-2.0
// driver_seen: the driver's version as a call of the stream tells it, for
// recordings whose header does not. NV_ESC_CHECK_VERSION_STR is made by every
// program that opens a GPU.
#pragma once

#include <optional>

#include "model/call.h"
#include "model/driver_version.h"

namespace gpuwatch::decode {

// Only what the driver itself confirmed: the text of a caller alone is nothing
// to go by.
std::optional<model::DriverVersion> driver_seen(const model::Call& call);

}  // namespace gpuwatch::decode
