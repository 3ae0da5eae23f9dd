// SPDX-License-Identifier: Apache-2.0
// The daemon's own words, on standard error: one line each, with the level that
// systemd reads. What others said in it must be escaped by the caller.
#pragma once

#include <string>

namespace gpuwatch::daemon {

enum class Level { kError = 3, kWarning = 4, kNotice = 5, kInfo = 6 };

void say(Level level, const std::string& text);

}  // namespace gpuwatch::daemon
