// SPDX-License-Identifier: Apache-2.0
// Allocation against use: is a GPU that a container opened one that it was
// given? Pure functions of facts that others gathered (allocation_facts.h).
// Where the facts do not decide, the answer is nothing: unknown is no finding.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/gpu.h"
#include "model/raw_record.h"

namespace gpuwatch::attribute {

inline constexpr std::int32_t kGpuMinorsMax = 64;

// One node, as stat(2) tells it; `dev` as records have it.
struct NodeFacts {
  std::int32_t minor = -1;
  std::uint64_t ino = 0;
  std::uint64_t ctime_ns = 0;
  std::uint32_t dev = 0;
  bool is(const gpuwatch_open_node& node) const { return ino == node.ino && dev == node.dev; }
};

// What was found out about one container.
struct ContainerFacts {
  bool own_mounts = false;                      // it has a mount namespace of its own; else nothing is decided
  std::optional<std::string> visible_devices;   // NVIDIA_VISIBLE_DEVICES of its first process
  std::optional<std::vector<NodeFacts>> nodes;  // nvidiaN in its /dev
  // When the runtime had made the last of what it puts into /dev; 0 not known.
  std::uint64_t dev_ready_ns = 0;
  std::vector<std::string> device_rules;         // of a v1 device cgroup, as it lists them
  std::optional<std::uint32_t> device_programs;  // BPF programs that filter devices
  // GPU minors, below kGpuMinorsMax, that the device cgroup or all of those
  // programs let be opened for reading and writing; nothing: no filter, or
  // not readable, for the reason in `filter_unread`.
  std::optional<std::vector<std::int32_t>> filter_allows;
  std::string filter_unread;
  std::vector<std::string> cdi_devices;  // "nvidia.com/gpu=0", of annotations of its bundle
};

struct GpuUse {
  std::int32_t minor = -1;
  std::optional<gpuwatch_open_node> node;  // which node was opened
  std::optional<NodeFacts> host_node;      // /dev/nvidiaN of the host
};

struct AllocationFinding {
  std::string reason;    // "outside_allocation" or "own_node"
  std::string evidence;  // which source says what
};

std::optional<AllocationFinding> judge(const ContainerFacts& container, const GpuUse& use, const model::GpuList& gpus);

// Minors that a value of NVIDIA_VISIBLE_DEVICES names; nothing where it names
// none by itself ("all", "void", "none") or something that is not known here.
// Its indices count in the order of PCI addresses, not in minors.
std::optional<std::vector<std::int32_t>> visible_minors(std::string_view value, const model::GpuList& gpus);

// The same for CDI devices. Those of others than NVIDIA name no GPU.
std::optional<std::vector<std::int32_t>> cdi_minors(const std::vector<std::string>& devices,
                                                    const model::GpuList& gpus);

}  // namespace gpuwatch::attribute
