// SPDX-License-Identifier: Apache-2.0
// What is said at the start about the time since the process before this one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/items.h"
#include "daemon/state.h"
#include "daemon/unsent.h"

namespace gpuwatch::daemon {

// A loss where records of that time were not seen and nobody knows how many;
// nothing where there was none. What is no loss is said in the log.
std::optional<Loss> loss_since(const LastRun& last, std::uint64_t started_unix_ns, bool resumed);

// Of each sink for which items waited when that process was killed.
std::vector<Loss> unsent_since(const std::vector<Unsent::Left>& left, bool same_boot);

}  // namespace gpuwatch::daemon
