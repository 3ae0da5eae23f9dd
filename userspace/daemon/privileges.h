// SPDX-License-Identifier: Apache-2.0
// Privileges: after what needs root was opened, the daemon keeps a short list of
// capabilities, becomes the user gpuwatch where there is one, and can gain
// nothing more. To be called before any thread is made.
#pragma once

#include <string>

#include "base/result.h"

namespace gpuwatch::daemon {

inline constexpr const char* kUser = "gpuwatch";

// `notes`: what it is now, for the log.
base::Status drop_privileges(const std::string& user, std::string& notes);

}  // namespace gpuwatch::daemon
