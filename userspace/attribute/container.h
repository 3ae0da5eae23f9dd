// SPDX-License-Identifier: Apache-2.0
// Reads from a cgroup path what it says plainly: containers, pod, systemd unit,
// user, Slurm job. A form counts only whole: known place, right alphabet, right
// length; anything else stays empty. Pure function of bytes without allocation;
// it asks nothing of the running system and never guesses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuwatch::attribute {

// All texts are views: ids point into the path, runtimes into static text.
struct Container {
  std::string_view runtime;  // "docker", "containerd", "cri-o", "podman", "kubernetes", "lxc", ...
  // As the path spells it; machines of systemd may hold escapes, see unescaped().
  std::string_view id;
  // Of the pod around it: 36 characters whose groups are joined by '-' or, in
  // systemd slices, by '_'; 32 hex digits for a static pod.
  std::string_view pod_uid;
  std::string_view qos;     // "guaranteed", "burstable", "besteffort"
  std::string_view pod_id;  // of a podman pod, 64 hex digits
};

inline constexpr std::size_t kMaxChain = 8;

struct CgroupFacts {
  // Outermost first. With more than kMaxChain the last place holds the
  // innermost and `chain_cut` is set.
  std::array<Container, kMaxChain> chain;
  std::size_t depth = 0;
  bool chain_cut = false;

  // A pod may be known where no container is.
  std::string_view pod_uid;
  std::string_view qos;
  std::string_view unit;              // innermost systemd unit, as the path spells it
  std::optional<std::uint32_t> user;  // of the host: never from inside a container
  std::optional<std::uint32_t> slurm_job;
  std::string_view slurm_step;   // "0", "batch", "extern", "interactive"
  std::string_view slurm_sluid;  // of Slurm 26.05 and later, in place of the job's number
  std::string_view nomad_task;
  std::string_view ecs_task;
  bool deleted = false;  // the path ended in " (deleted)"

  // Nothing at all was recognised.
  bool unknown() const {
    return depth == 0 && pod_uid.empty() && unit.empty() && !user && !slurm_job && slurm_sluid.empty() &&
           ecs_task.empty();
  }
  const Container* innermost() const { return depth == 0 ? nullptr : &chain[depth - 1]; }
};

CgroupFacts parse_cgroup(std::string_view path);

// systemd's \xNN in the name of a unit or machine made plain.
std::string unescaped(std::string_view name);

// The pod's uid as the API spells it: groups joined by '-'.
std::string pod_uid_text(std::string_view pod_uid);

}  // namespace gpuwatch::attribute
