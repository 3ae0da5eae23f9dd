// SPDX-License-Identifier: Apache-2.0
// A limit of time for each call of the driver: a GPU that hangs must end in a
// result. It can't end the call; whoever starts it ends the process. For a
// process that calls the driver from one thread.
#pragma once

#include <chrono>
#include <functional>

#include "probe/driver_api.h"

namespace gpuwatch::probe {

// Compiling may take this many times longer.
inline constexpr int kCompilingFactor = 10;

// The same functions; each notes that it is being called. Once per process.
DriverApi watched(const DriverApi& api);

// Called on a thread of its own with the name of a function that has not come
// back for `limit`, once; it is not to return.
using GiveUp = std::function<void(const char* function, std::chrono::seconds waited)>;
void watch_calls(std::chrono::seconds limit, GiveUp give_up);

}  // namespace gpuwatch::probe
