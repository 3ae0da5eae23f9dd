// SPDX-License-Identifier: Apache-2.0
// The text of /proc/PID/cgroup: which of its lines says who the process is.
// Under v1 and in hybrid set-ups hierarchies differ, and runtimes do not use
// them all. Pure functions of bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "attribute/container.h"

namespace gpuwatch::attribute {

struct CgroupLine {
  std::uint32_t hierarchy = 0;
  std::string_view controllers;  // "memory", "name=systemd"; empty for cgroup v2
  std::string_view path;
};

// "4:memory:/docker/..."; nothing for a line of another form.
std::optional<CgroupLine> parse_cgroup_line(std::string_view line);

struct ProcCgroup {
  CgroupLine line;
  CgroupFacts facts;
};

// The line that knows a container, else a job or pod, else a unit or user;
// among equals memory before pids before v2 before systemd's own. Nothing where
// no line has the form.
std::optional<ProcCgroup> parse_proc_cgroup(std::string_view text);

}  // namespace gpuwatch::attribute
