// SPDX-License-Identifier: Apache-2.0
// Actor: who made a call, as far as definition records told. Passive views
// into the attributor's cache: valid until it learns again. Empty or 0 means
// not known; nothing in here is guessed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "model/process.h"

namespace gpuwatch::model {

// One container of the chain that nested runtimes make.
struct ContainerRef {
  std::string_view runtime;
  std::string_view id;
  std::string_view pod_uid;
};

struct Label {
  std::string_view key;
  std::string_view value;
};

struct Actor {
  std::uint32_t tgid = 0;     // process id in the initial pid namespace
  std::uint32_t ns_tgid = 0;  // in its own pid namespace
  std::uint64_t start_ns = 0;
  std::uint64_t cgroup_id = 0;
  const Process* process = nullptr;   // namespaces, ancestors, executable's file
  std::string_view user_name;         // of the call's uid on this machine; live only
  std::string_view exe;               // path as the process saw it: untrusted bytes
  std::string_view cgroup_path;       // untrusted bytes
  std::string_view runtime;           // "docker", "containerd", "lxc", ...; empty: none recognised
  std::string_view container_id;      // in the runtime's own form: 64 hex digits, or a name
  std::string_view pod_uid;           // with dashes, lower case; 32 hex digits for a static pod
  std::string_view qos;               // "guaranteed", "burstable", "besteffort"
  std::string_view unit;              // innermost systemd unit
  std::string_view slurm_step;        // "0", "batch", "extern", ...
  std::optional<std::uint32_t> user;  // of the session or Slurm job that the path names
  std::optional<std::uint32_t> slurm_job;
  std::span<const ContainerRef> chain;  // outermost first; the last one is the container above

  // What a lookup by name gave; all untrusted bytes, empty until it answered.
  std::string_view container_name;
  std::string_view image;
  std::string_view pod_name;
  std::string_view pod_namespace;
  std::span<const Label> labels;

  // The 12 digits people know a container by; empty where there is none.
  std::string_view container_short_id() const { return container_id.substr(0, 12); }
};

}  // namespace gpuwatch::model
