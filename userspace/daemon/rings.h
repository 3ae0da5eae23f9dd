// SPDX-License-Identifier: Apache-2.0
// Rings: the kernel module's rings of this daemon, new ones or those that an
// earlier process left, and who keeps them for the next one.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "daemon/notify.h"
#include "daemon/progress.h"
#include "daemon/settings.h"
#include "source/kmod_source.h"

namespace gpuwatch::daemon {

struct Rings {
  std::unique_ptr<source::KmodSource> source;
  std::optional<Progress> progress;
  std::optional<source::KmodDevice> image_device;  // for a watch of loaded code
  bool resumed = false;                            // they are those of an earlier process
};

// Needs privileges. What is done without is said in the log.
base::Result<Rings> open_rings(const Settings& settings, std::vector<KeptFd> kept, Notify& notify);

}  // namespace gpuwatch::daemon
