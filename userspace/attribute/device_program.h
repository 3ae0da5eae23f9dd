// SPDX-License-Identifier: Apache-2.0
// Which devices a BPF program of a cgroup lets through: the program is run
// here, in an evaluator that knows what runc, crun and systemd generate: loads
// of the context, arithmetic on registers, forward and backward jumps within a
// bound of steps. All else (calls, maps, stores) is not readable, never guessed.
#pragma once

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace gpuwatch::attribute {

inline constexpr std::size_t kDeviceProgramMax = 4096;     // instructions of one
inline constexpr std::size_t kDeviceProgramsMax = 64;      // of a cgroup and those above it
inline constexpr std::size_t kDeviceProgramSteps = 65536;  // executed of one

struct DeviceAccess {
  std::uint32_t type = BPF_DEVCG_DEV_CHAR;
  std::uint32_t access = BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE;
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
};

// True where the program lets it through. Nothing where it does what is not
// known here.
std::optional<bool> run_device_program(std::span<const bpf_insn> program, const DeviceAccess& device);

using DeviceProgram = std::vector<bpf_insn>;

// The programs that decide for members of this cgroup2 directory, its own and
// those of the groups above. Needs the rights to read programs.
base::Result<std::vector<DeviceProgram>> read_device_programs(const std::string& cgroup_directory);

}  // namespace gpuwatch::attribute
