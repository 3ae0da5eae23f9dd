// SPDX-License-Identifier: Apache-2.0
#include "cli/selection.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>

#include "base/io.h"
#include "cli/kinds.h"

namespace gpuwatch::cli {

using base::Code;
using base::Error;
using base::Result;

namespace {

std::string mount_point() {
  if (auto mounts = base::read_text_file("/proc/self/mounts"); mounts.ok())
    if (auto point = cgroup2_mount(*mounts)) return *point;
  return "/sys/fs/cgroup";
}

}  // namespace

std::optional<std::string> cgroup2_mount(std::string_view mounts) {
  while (!mounts.empty()) {
    const std::string_view line = mounts.substr(0, mounts.find('\n'));
    mounts.remove_prefix(std::min(line.size() + 1, mounts.size()));
    const std::size_t first = line.find(' ');
    if (first == std::string_view::npos) continue;
    const std::size_t second = line.find(' ', first + 1);
    if (second == std::string_view::npos) continue;
    if (line.substr(second + 1).starts_with("cgroup2 ")) return std::string(line.substr(first + 1, second - first - 1));
  }
  return std::nullopt;
}

Result<Selection> Selection::from_flags(const Flags& flags) {
  Selection selection;
  for (const std::string& name : flags.list("node")) {
    const auto kind = node_kind_from(name);
    if (!kind) return Error(Code::kBadInput, "--node: unknown kind '" + name + "'; kinds are: " + node_kind_list());
    selection.node_mask_ |= 1u << *kind;
  }
  for (const std::string& name : flags.list("class")) {
    const auto type = class_from(name);
    if (!type) return Error(Code::kBadInput, "--class: unknown class '" + name + "'; classes are: " + class_list());
    selection.class_mask_ |= GPUWATCH_CLASS(*type);
  }
  for (const std::string& text : flags.list("pid")) {
    std::uint32_t pid = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
    if (error != std::errc{} || end != text.data() + text.size() || pid == 0)
      return Error(Code::kBadInput, "--pid: '" + text + "' is not a process id");
    selection.pids_.push_back(pid);
  }
  if (selection.pids_.size() > GPUWATCH_FILTER_PIDS)
    return Error(Code::kLimit,
                 "--pid: at most " + std::to_string(GPUWATCH_FILTER_PIDS) + " processes; use --cgroup for more");
  std::string path = flags.text("cgroup");
  if (flags.has("cgroup")) {
    const std::string mount = mount_point();
    if (path.starts_with(mount) && (path.size() == mount.size() || path[mount.size()] == '/'))
      path.erase(0, mount.size());
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    if (!path.starts_with('/')) path.insert(0, "/");
    selection.cgroup_ = path;
  }
  return selection;
}

Result<gpuwatch_filter> Selection::kernel_filter() {
  gpuwatch_filter filter{};
  filter.node_mask = node_mask_;
  // Definitions come along in any case: without them nobody knows who called.
  // What was not asked for is not shown, see shows().
  filter.class_mask =
      class_mask_ == 0 ? 0 : class_mask_ | GPUWATCH_CLASS(GPUWATCH_REC_TASK) | GPUWATCH_CLASS(GPUWATCH_REC_CGROUP);
  filter.cgroup_fd = -1;
  filter.nr_pids = static_cast<__u32>(pids_.size());
  std::copy(pids_.begin(), pids_.end(), filter.pids);
  if (!cgroup_.empty()) {
    const std::string directory = mount_point() + cgroup_;
    cgroup_fd_ = base::Fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!cgroup_fd_.valid()) return Error::from_errno("--cgroup: " + directory);
    filter.cgroup_fd = cgroup_fd_.get();
  }
  return filter;
}

bool Selection::shows(const gpuwatch_rec& head) const {
  return class_mask_ == 0 || (head.type < 32 && (class_mask_ & GPUWATCH_CLASS(head.type)) != 0);
}

bool Selection::matches(const gpuwatch_rec& head, const model::Actor& actor) const {
  if (class_mask_ != 0 && (head.type >= 32 || (class_mask_ & GPUWATCH_CLASS(head.type)) == 0)) return false;
  if (head.type == GPUWATCH_REC_STATE) return true;
  const bool definition = head.type == GPUWATCH_REC_TASK || head.type == GPUWATCH_REC_CGROUP;
  if (node_mask_ != 0 && !definition && (head.node_kind >= 32 || (node_mask_ & (1u << head.node_kind)) == 0))
    return false;
  if (!pids_.empty() && std::find(pids_.begin(), pids_.end(), head.tgid) == pids_.end()) return false;
  if (cgroup_.size() > 1) {  // "/" is everything
    const std::string_view path = actor.cgroup_path;
    if (!path.starts_with(cgroup_) || (path.size() > cgroup_.size() && path[cgroup_.size()] != '/')) return false;
  }
  return true;
}

}  // namespace gpuwatch::cli
