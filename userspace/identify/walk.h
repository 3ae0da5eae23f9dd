// SPDX-License-Identifier: Apache-2.0
// Regular files at or below a path, each opened once, in the order of their
// names. Links below the path are not followed, other kinds of files are not
// opened, and a file with several names comes once.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "identify/limits.h"

namespace gpuwatch::identify {

// `visit` gets the path and an open descriptor that stays the walker's, or why
// it could not be opened; false ends the walk. An error about `path` itself is
// returned.
base::Status walk(const std::string& path, const Limits& limits,
                  const std::function<bool(const std::string& name, int fd, const base::Status& opened)>& visit);

}  // namespace gpuwatch::identify
