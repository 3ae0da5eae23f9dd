// SPDX-License-Identifier: Apache-2.0
// Process: what is known of one process besides its name, (tgid, start time).
// Passive; owned by the attributor's cache. 0 and empty mean not known.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwatch::model {

struct Ancestor {
  std::uint32_t tgid = 0;      // in the initial pid namespace
  std::uint32_t ns_tgid = 0;   // in the process's own pid namespace; 0: outside of it
  std::uint64_t start_ns = 0;  // CLOCK_BOOTTIME; from /proc in steps of a clock tick
  std::string comm;            // untrusted bytes; empty: not known
};

enum class ExeState : std::uint8_t {
  kPlain,    // nothing special, or not known
  kDeleted,  // no name leads to the file any more
  kMemfd,    // it never had one
  kChanged,  // renamed, linked or written after the process started
};

constexpr std::string_view exe_state_name(ExeState state) {
  constexpr std::string_view kNames[] = {"", "deleted", "memfd", "changed"};
  return kNames[static_cast<std::size_t>(state)];
}

enum class ProcessSource : std::uint8_t {
  kNone,
  kRecord,  // a definition record, made inside of the call
  kProc,    // /proc, later, with the start time compared before and after
};

struct Process {
  ProcessSource source = ProcessSource::kNone;
  ExeState exe_state = ExeState::kPlain;
  std::string exe;  // path as the process saw it: untrusted bytes
  std::uint64_t exe_ino = 0;
  std::uint32_t exe_dev = 0;  // (major << 20) | minor
  std::uint32_t exec_id = 0;  // another value is another program image
  std::uint32_t ns_tgid = 0;  // in its own pid namespace
  std::uint32_t ns_level = 0;
  std::uint32_t pid_ns = 0;            // inode number of that namespace
  std::vector<std::uint32_t> ns_pids;  // from the initial namespace to its own; empty: not known
  std::vector<Ancestor> ancestors;     // parent first, up to the first process of its pid namespace
  // Capability nodes it opened: minors of /dev/nvidia-caps, a GPU instance's
  // and a compute instance's; -1 none.
  std::array<std::int32_t, 2> cap_minors{-1, -1};
};

}  // namespace gpuwatch::model
