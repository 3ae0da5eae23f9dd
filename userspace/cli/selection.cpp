// SPDX-License-Identifier: Apache-2.0
#include "cli/selection.h"

#include <fcntl.h>
#include <pwd.h>

#include <algorithm>
#include <charconv>

#include "base/io.h"
#include "cli/kinds.h"

namespace gpuwatch::cli {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

std::string mount_point() {
  if (auto mounts = base::read_text_file("/proc/self/mounts"); mounts.ok())
    if (auto point = cgroup2_mount(*mounts)) return *point;
  return "/sys/fs/cgroup";
}

std::optional<std::uint32_t> whole_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::uint32_t> user_id(const std::string& text) {
  if (const auto number = whole_number(text)) return number;
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> room(16384);
  if (::getpwnam_r(text.c_str(), &entry, room.data(), room.size(), &found) != 0 || found == nullptr)
    return std::nullopt;
  return entry.pw_uid;
}

// The id's beginning, from four characters on, or the whole name. Of nested
// containers any.
bool is_container(const model::Actor& actor, std::string_view text) {
  if (!actor.container_name.empty() && actor.container_name == text) return true;
  return std::any_of(actor.chain.begin(), actor.chain.end(), [&](const model::ContainerRef& container) {
    return container.id == text || (text.size() >= 4 && container.id.size() >= 32 && container.id.starts_with(text));
  });
}

// The uid, the name, or namespace/name.
bool is_pod(const model::Actor& actor, std::string_view text) {
  const auto uid = [&](const model::ContainerRef& container) { return container.pod_uid == text; };
  if (actor.pod_uid == text || std::any_of(actor.chain.begin(), actor.chain.end(), uid)) return true;
  if (actor.pod_name.empty()) return false;
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return actor.pod_name == text;
  return actor.pod_namespace == text.substr(0, slash) && actor.pod_name == text.substr(slash + 1);
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
  if (Status status = selection.read_names(flags); !status.ok()) return std::move(status.error());
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

Status Selection::read_names(const Flags& flags) {
  if (flags.command() != "tail") return {};
  containers_ = flags.list("container");
  pods_ = flags.list("pod");
  for (const auto* texts : {&containers_, &pods_})
    if (std::find(texts->begin(), texts->end(), "") != texts->end())
      return Error(Code::kBadInput, "--container and --pod want an id or a name");
  for (const std::string& text : flags.list("user")) {
    const auto uid = user_id(text);
    if (!uid) return Error(Code::kBadInput, "--user: '" + text + "' is neither a number nor a user of this machine");
    users_.push_back(*uid);
  }
  for (const std::string& text : flags.list("gpu")) {
    std::string_view digits = text;
    for (const std::string_view prefix : {"/dev/nvidia", "nvidia", "gpu"})
      if (digits.starts_with(prefix)) digits.remove_prefix(prefix.size());
    const auto minor = whole_number(digits);
    if (!minor || *minor > 0xfffff)
      return Error(Code::kBadInput, "--gpu: '" + text + "' is no GPU; say 0, gpu0 or nvidia0");
    gpus_.push_back(static_cast<std::int32_t>(*minor));
  }
  return {};
}

bool Selection::matches_gpu(std::int32_t minor) const {
  return gpus_.empty() || std::find(gpus_.begin(), gpus_.end(), minor) != gpus_.end();
}

bool Selection::matches_names(const gpuwatch_rec& head, const model::Actor& actor) const {
  if (head.type == GPUWATCH_REC_STATE) return true;
  const auto any = [](const auto& wanted, auto holds) {
    return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), holds);
  };
  return any(users_, [&](std::uint32_t uid) { return head.uid == uid; }) &&
         any(containers_, [&](const std::string& text) { return is_container(actor, text); }) &&
         any(pods_, [&](const std::string& text) { return is_pod(actor, text); });
}

bool Selection::matches(const gpuwatch_rec& head, const model::Actor& actor) const {
  if (class_mask_ != 0 && (head.type >= 32 || (class_mask_ & GPUWATCH_CLASS(head.type)) == 0)) return false;
  if (head.type == GPUWATCH_REC_STATE) return true;
  const bool definition = head.type == GPUWATCH_REC_TASK || head.type == GPUWATCH_REC_CGROUP;
  // An image belongs to a process, not to a node.
  const bool has_node = !definition && head.type != GPUWATCH_REC_IMAGE;
  if (node_mask_ != 0 && has_node && (head.node_kind >= 32 || (node_mask_ & (1u << head.node_kind)) == 0)) return false;
  if (!pids_.empty() && std::find(pids_.begin(), pids_.end(), head.tgid) == pids_.end()) return false;
  if (!matches_names(head, actor)) return false;
  if (cgroup_.size() > 1) {  // "/" is everything
    const std::string_view path = actor.cgroup_path;
    if (!path.starts_with(cgroup_) || (path.size() > cgroup_.size() && path[cgroup_.size()] != '/')) return false;
  }
  return true;
}

}  // namespace gpuwatch::cli
