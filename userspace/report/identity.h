// SPDX-License-Identifier: Apache-2.0
// Takes what an actor tells over into an Identity that outlives it. What the
// actor does not know is left as it was.
#pragma once

#include "model/actor.h"
#include "report/summary.h"

namespace gpuwatch::report {

inline void fill_identity(Identity& who, const model::Actor& actor) {
  const auto take = [](std::string& to, std::string_view from) {
    if (!from.empty()) to.assign(from);
  };
  if (actor.ns_tgid != 0) who.ns_pid = actor.ns_tgid;
  take(who.exe, actor.exe);
  take(who.cgroup_path, actor.cgroup_path);
  take(who.runtime, actor.runtime);
  take(who.container_id, actor.container_id);
  take(who.container_name, actor.container_name);
  take(who.image, actor.image);
  take(who.pod_uid, actor.pod_uid);
  take(who.pod_name, actor.pod_name);
  take(who.pod_namespace, actor.pod_namespace);
  take(who.unit, actor.unit);
  if (actor.slurm_job) who.slurm_job = *actor.slurm_job;
}

struct ProcessHash {
  std::size_t operator()(const model::ProcessKey& key) const {
    return static_cast<std::size_t>((key.start_ns ^ (std::uint64_t{key.tgid} << 32)) * 0x9E3779B97F4A7C15ULL >> 13);
  }
};

}  // namespace gpuwatch::report
