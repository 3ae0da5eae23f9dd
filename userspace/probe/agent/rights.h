// SPDX-License-Identifier: Apache-2.0
// Parses without rights. What a process has mapped and what its agent answers is
// that process's to choose, so a child goes through it: without capabilities, none
// to be gained, and of root as nobody where root may become that. The parent
// keeps the rights, and does one thing for the child: it connects to the agent.
#pragma once

#include <functional>

#include "base/fd.h"
#include "probe/session.h"

namespace gpuwatch::probe::agent {

// Connects to one process's agent. `full`: too many wait there; try again.
using Connect = std::function<Failure(base::Fd& fd, bool& full)>;

// Runs `work` in the child, with a Connect that asks the parent's `connect`;
// returns its exit code. What it needs to read must be open. To be called by a
// process of one thread.
int run_without_rights(const Connect& connect, const std::function<int(const Connect&)>& work);

}  // namespace gpuwatch::probe::agent
