// SPDX-License-Identifier: Apache-2.0
// Notify: what the service manager is told, and what it keeps for the next
// process: descriptors of the ring and of the progress. The same words are
// understood by our own supervisor (supervise.h). Without either nothing is said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"

namespace gpuwatch::daemon {

inline constexpr const char* kRingName = "gpuwatch-ring";
inline constexpr const char* kProgressName = "gpuwatch-progress";

class Notify {
 public:
  void ready(const std::string& status);
  void reloading();
  void stopping();
  void status(const std::string& text);
  void alive();  // for the watchdog

  // How often alive() is wanted; 0: never.
  std::uint64_t watchdog_ns() const;
  // There is somebody who keeps descriptors.
  bool keeps() const;
  bool keep(const char* name, int fd);
  void forget(const char* name);
};

struct KeptFd {
  std::string name;
  base::Fd fd;
};
// Descriptors of the process before this one; others are closed.
std::vector<KeptFd> take_kept();

}  // namespace gpuwatch::daemon
