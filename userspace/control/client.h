// SPDX-License-Identifier: Apache-2.0
// One question to the running daemon. Waits at most `timeout`, for everything
// together; a daemon that is not there is an error of its own, kNotFound.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "control/protocol.h"

namespace gpuwatch::control {

// The body of the answer, as JSON text.
base::Result<std::string> ask(const Request& request, const std::string& socket = kSocketPath,
                              std::chrono::milliseconds timeout = std::chrono::seconds(5));

}  // namespace gpuwatch::control
