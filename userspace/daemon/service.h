// SPDX-License-Identifier: Apache-2.0
// Service: gpuwatchd as a whole. Opens all, gives up privileges, starts the
// threads, then answers signals and requests until it is told to end.
//
//   source -> Reader -> Intake -> Engine -> Outputs -> sinks
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/settings.h"

namespace gpuwatch::daemon {

struct ServiceOptions {
  std::string config = kConfigPath;
  std::vector<std::string> overrides;
  std::string replay;  // a recording instead of the kernel module
  std::string user;    // to become; empty: the one it is
};

// Exit status: 0 ended in order, 1 records were lost, 2 trouble.
base::Result<int> run_service(const ServiceOptions& options);

}  // namespace gpuwatch::daemon
