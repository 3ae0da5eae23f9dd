// SPDX-License-Identifier: Apache-2.0
#include "attribute/cgroup_entry.h"

#include <span>

namespace gpuwatch::attribute {

void CgroupEntry::set_path(std::string_view path) {
  if (path_ == path && !path_.empty()) return;
  path_ = path;
  facts_ = parse_cgroup(path_);
  for (std::size_t i = 0; i < facts_.depth; ++i) {
    ids_[i] = unescaped(facts_.chain[i].id);
    pods_[i] = pod_uid_text(facts_.chain[i].pod_uid);
    chain_[i] = {facts_.chain[i].runtime, ids_[i], pods_[i]};
  }
  pod_uid_ = pod_uid_text(facts_.pod_uid);
}

void CgroupEntry::tell(model::Actor& actor) const {
  actor.cgroup_path = path_;
  actor.chain = std::span(chain_.data(), facts_.depth);
  if (facts_.depth != 0) {
    actor.runtime = actor.chain.back().runtime;
    actor.container_id = actor.chain.back().id;
  }
  actor.pod_uid = pod_uid_;
  actor.qos = facts_.qos;
  actor.unit = facts_.unit;
  actor.user = facts_.user;
  actor.slurm_job = facts_.slurm_job;
  actor.slurm_step = facts_.slurm_step;
}

}  // namespace gpuwatch::attribute
