// SPDX-License-Identifier: Apache-2.0
// Reads one process from /proc, by its id and start time; never the list of
// all. The facts are of the process that was asked for or there are none: all
// files are opened below one descriptor of its directory, which dies with the
// process, and the start time is compared before and after.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "model/process.h"

namespace gpuwatch::attribute {

// `proc` is the place of a proc file system of the initial pid namespace.
std::optional<model::Process> read_process(std::uint32_t tgid, std::uint64_t start_ns,
                                           const std::string& proc = "/proc");

// The process's directory, or nothing when that process is not there. Files
// below it are that process's or cannot be opened.
base::Fd open_process(std::uint32_t tgid, std::uint64_t start_ns, const std::string& proc = "/proc");
bool still_there(const base::Fd& process, std::uint64_t start_ns);

}  // namespace gpuwatch::attribute
