// SPDX-License-Identifier: Apache-2.0
// Actor: who made a call, as far as definition records told. Passive views
// into the attributor's cache: valid until it learns again. Empty or 0 means
// not known; nothing in here is guessed.
#pragma once

#include <cstdint>
#include <string_view>

namespace gpuwatch::model {

struct Actor {
  std::uint32_t tgid = 0;     // process id in the initial pid namespace
  std::uint32_t ns_tgid = 0;  // in its own pid namespace
  std::uint64_t start_ns = 0;
  std::uint64_t cgroup_id = 0;
  std::string_view exe;           // path as the process saw it: untrusted bytes
  std::string_view cgroup_path;   // untrusted bytes
  std::string_view runtime;       // "docker", "containerd", "cri-o", "podman"; empty: none recognised
  std::string_view container_id;  // 64 hex digits
  std::string_view pod_uid;       // with dashes, lower case

  // The 12 digits people know a container by; empty where there is none.
  std::string_view container_short_id() const { return container_id.substr(0, 12); }
};

}  // namespace gpuwatch::model
