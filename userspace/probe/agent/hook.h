// SPDX-License-Identifier: Apache-2.0
// Sees the process's ioctl() calls: as the symbol that libcuda finds first
// (LD_PRELOAD), or else by putting itself into libcuda's table of imports. Every
// call goes on to where it would have gone, unchanged.
#pragma once

#include "probe/agent/memory.h"

namespace gpuwatch::probe::agent {

// Of this process; the hook feeds it.
MappedMemory& mapped_memory();

// Finds where calls go on to. To be called once, before any other thread.
void resolve_next();

// Looks whether libcuda's calls come to us, and sees to it if they do not.
Sight see_calls();

// Called after the first call that maps GPU memory.
void on_first_mapping(void (*function)());

}  // namespace gpuwatch::probe::agent
