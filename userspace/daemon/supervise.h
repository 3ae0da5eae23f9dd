// SPDX-License-Identifier: Apache-2.0
// Supervise: for machines without systemd. Runs the daemon as a child, keeps the
// descriptors that it hands over, and starts it again with them when it dies.
// It reads no record and no configuration, so there is little that can kill it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace gpuwatch::daemon {

struct SuperviseOptions {
  std::string program = "/proc/self/exe";
  std::vector<std::string> arguments;  // of the child, without its name
  unsigned restarts = 1000;            // that end badly, all together
};

// Until the child ends in order or SIGTERM comes; its exit status.
base::Result<int> supervise(const SuperviseOptions& options);

}  // namespace gpuwatch::daemon
