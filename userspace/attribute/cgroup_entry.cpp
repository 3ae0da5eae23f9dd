// SPDX-License-Identifier: Apache-2.0
#include "attribute/cgroup_entry.h"

#include <span>

namespace gpuwatch::attribute {

namespace {

// Runtimes whose ids are what people call the container.
bool goes_by_name(std::string_view runtime) {
  return runtime == "lxc" || runtime == "systemd-nspawn" || runtime == "machine" || runtime.starts_with("libvirt-");
}

}  // namespace

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
  names_.reset();
  asked_at_ = 0;
}

void CgroupEntry::ask(Names& names) {
  if (names_ || (facts_.depth == 0 && pod_uid_.empty())) return;
  const std::uint64_t now = names.generation() + 1;
  if (asked_at_ == now) return;
  asked_at_ = now;
  NameQuery query;
  query.pod_uid = pod_uid_;
  if (facts_.depth != 0) {
    query.runtime = facts_.innermost()->runtime;
    query.container_id = ids_[facts_.depth - 1];
  }
  names_ = names.find(query);
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
  if (names_) {
    actor.container_name = names_->answer.container_name;
    actor.image = names_->answer.image;
    actor.pod_name = names_->answer.pod_name;
    actor.pod_namespace = names_->answer.pod_namespace;
    actor.labels = names_->labels;
  } else if (goes_by_name(actor.runtime)) {
    actor.container_name = actor.container_id;
  }
}

}  // namespace gpuwatch::attribute
