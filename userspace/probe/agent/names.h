// SPDX-License-Identifier: Apache-2.0
// Where the agent's socket lies: a file, so that it can be reached through
// /proc/PID/root whatever namespaces the process is in. An abstract name would
// belong to its network namespace, and anybody there could take it.
#pragma once

namespace gpuwatch::probe::agent {

// DIRECTORY/gpuwatch-agent.PID.RANDOM.sock, the pid as the process sees it.
// Requesters do not guess: they look which sockets the process holds.
inline constexpr char kSocketPrefix[] = "gpuwatch-agent.";
inline constexpr const char* kDirectories[] = {"/run/gpuwatch/agent", "/tmp"};
inline constexpr char kDirectoryVariable[] = "GPUWATCH_AGENT_DIR";

}  // namespace gpuwatch::probe::agent
