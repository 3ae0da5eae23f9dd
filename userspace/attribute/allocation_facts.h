// SPDX-License-Identifier: Apache-2.0
// Gathers what one container was given: its /dev, its first process's
// environment, its device cgroup. Every step is bounded, follows no link out of
// the container and reads only the process that was asked for. It may hang with
// a file system of the container's: call it from a Background.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attribute/allocation.h"

namespace gpuwatch::attribute {

struct ProcessName {
  std::uint32_t tgid = 0;
  std::uint64_t start_ns = 0;
};

// `candidates` are tried in order: the container's first process tells best.
// Facts that cannot be had stay unknown.
ContainerFacts read_container_facts(const std::vector<ProcessName>& candidates);

// The host's /dev/nvidiaN.
std::optional<NodeFacts> read_host_node(std::int32_t minor);

}  // namespace gpuwatch::attribute
