// SPDX-License-Identifier: Apache-2.0
// `gpuwatch decode FILE --tree`: the objects that are alive at one moment of a
// recording. Reads the file, twice where it must.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "model/driver_version.h"

namespace gpuwatch::cli {

struct TreeRequest {
  std::string file;
  std::string at = "peak";  // or "end"
  bool json = false;
  std::optional<model::DriverVersion> driver;  // rather than the recording's
};

// The exit code.
base::Result<int> print_tree(const TreeRequest& request);

}  // namespace gpuwatch::cli
