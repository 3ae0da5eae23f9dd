// SPDX-License-Identifier: Apache-2.0
// Selection: --node, --pid, --cgroup and --class. Live it becomes the kernel's
// filter; on a recording the same choice is made here.
#pragma once

#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "cli/flags.h"
#include "model/actor.h"
#include "model/raw_record.h"

namespace gpuwatch::cli {

class Selection {
 public:
  static base::Result<Selection> from_flags(const Flags& flags);

  // For the kernel. Opens the cgroup's directory, which must stay open as long
  // as the filter is to be set: keep the Selection.
  base::Result<gpuwatch_filter> kernel_filter();

  // False: of a class that was not asked for, and here only to be learned from.
  bool shows(const gpuwatch_rec& head) const;

  // For a recording. Definitions pass with the processes that are selected;
  // a cgroup is known by the path its definition gave.
  bool matches(const gpuwatch_rec& head, const model::Actor& actor) const;

  // The part that no kernel filter knows, --container, --pod and --user: live
  // it is applied here too.
  bool matches_names(const gpuwatch_rec& head, const model::Actor& actor) const;
  bool by_names() const { return !containers_.empty() || !pods_.empty() || !users_.empty(); }

  // What containers and pods are called decides, or may.
  bool by_container() const { return !containers_.empty() || !pods_.empty(); }

  // --gpu: of calls those on the card's own node, of events those of the card.
  bool matches_gpu(std::int32_t minor) const;

  // Records of that class can pass.
  bool wants(gpuwatch_rec_type type) const { return class_mask_ == 0 || (class_mask_ & GPUWATCH_CLASS(type)) != 0; }

  bool everything() const {
    return node_mask_ == 0 && class_mask_ == 0 && pids_.empty() && cgroup_.empty() && !by_names();
  }

 private:
  base::Status read_names(const Flags& flags);

  std::uint32_t node_mask_ = 0;
  std::uint32_t class_mask_ = 0;
  std::vector<std::uint32_t> pids_;
  std::vector<std::string> containers_;
  std::vector<std::string> pods_;
  std::vector<std::uint32_t> users_;
  std::vector<std::int32_t> gpus_;
  std::string cgroup_;  // path from the hierarchy's root, "/" first, none at the end
  base::Fd cgroup_fd_;
};

// Where cgroup2 is mounted, from the text of /proc/self/mounts.
std::optional<std::string> cgroup2_mount(std::string_view mounts);

}  // namespace gpuwatch::cli
