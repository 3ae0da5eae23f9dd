// SPDX-License-Identifier: Apache-2.0
// Reads runtime, container id and pod from a cgroup path, where the path says
// so plainly: known prefixes, 64 lower-case hex digits, nothing else. What it
// does not recognise it leaves empty; it never guesses. Pure function of bytes.
#pragma once

#include <string_view>

namespace gpuwatch::attribute {

// Views: ids point into the path, the runtime into static text.
struct Container {
  std::string_view runtime;  // "docker", "containerd", "cri-o", "podman", "kubernetes"
  std::string_view id;       // 64 hex digits
  // As the path spells it: 36 characters, groups joined by '-' or, in systemd
  // slices, by '_'.
  std::string_view pod_uid;
};

// The innermost container of the path wins (nested runtimes).
Container parse_container(std::string_view cgroup_path);

}  // namespace gpuwatch::attribute
