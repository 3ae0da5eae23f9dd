// SPDX-License-Identifier: Apache-2.0
// Makes the calls of a recording again: the same tree of processes, the same
// threads, each thread's calls in order, with live buffers behind the pointers.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "recording.h"
#include "shared.h"

namespace gpuwatch::replay {

struct RunOptions {
  std::uint32_t delay_us = 0;  // of the driver, per ioctl
  double pace = 0;             // 1: as fast as recorded, 2: twice; 0: no waiting
  std::uint64_t spoil = 0;     // flip a bit of this ioctl's argument, counted from 1; 0: none
};

// Forks the recording's processes and waits for all of them. Counts go to
// `shared`, what went wrong to standard error.
base::Status run(const Recording& recording, Shared& shared, const RunOptions& options);

}  // namespace gpuwatch::replay
