// SPDX-License-Identifier: Apache-2.0
// Gathers what one container was given: its /dev, its first process's
// environment, its device cgroup, its bundle. Every step is bounded, follows no link out of
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
// Facts that cannot be had stay unknown. By the id, where there is one, the
// runtime's bundle is found, with the CDI devices that were asked for.
ContainerFacts read_container_facts(const std::vector<ProcessName>& candidates, const std::string& container_id = {});

// The host's /dev/nvidiaN.
std::optional<NodeFacts> read_host_node(std::int32_t minor);

}  // namespace gpuwatch::attribute
