// SPDX-License-Identifier: Apache-2.0
#include "attribute/allocation_facts.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "attribute/device_program.h"
#include "attribute/names_files.h"
#include "attribute/process_lookup.h"
#include "base/fd.h"
#include "base/io.h"

namespace gpuwatch::attribute {

namespace {

constexpr std::int32_t kMinorsMax = kGpuMinorsMax;
constexpr unsigned kControlMinor = 195;  // major of nvidiaN and nvidiactl
constexpr std::size_t kEnvironMax = 256 << 10;
constexpr std::size_t kRulesMax = 32;

// Below `root`, as the container itself would resolve the path.
base::Fd open_in_root(int root, const char* path, std::uint64_t flags) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return base::Fd(static_cast<int>(::syscall(SYS_openat2, root, path, &how, sizeof how)));
}

std::optional<std::string> read_below(const base::Fd& directory, const char* name, std::size_t limit) {
  const base::Fd file(::openat(directory.get(), name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid()) return std::nullopt;
  std::string text(limit, '\0');
  auto got = base::read_full(file.get(), std::as_writable_bytes(std::span(text)));
  if (!got.ok()) return std::nullopt;
  text.resize(*got);
  return text;
}

NodeFacts facts_of(std::int32_t minor_number, const struct stat& node) {
  return {minor_number, node.st_ino,
          static_cast<std::uint64_t>(node.st_ctim.tv_sec) * 1'000'000'000u +
              static_cast<std::uint64_t>(node.st_ctim.tv_nsec),
          (major(node.st_dev) << 20) | (minor(node.st_dev) & 0xfffff)};
}

bool is_gpu_node(const struct stat& node, std::int32_t minor_number) {
  return S_ISCHR(node.st_mode) && major(node.st_rdev) == kControlMinor &&
         minor(node.st_rdev) == static_cast<unsigned>(minor_number);
}

void read_dev(const base::Fd& process, ContainerFacts& facts) {
  const base::Fd root(::openat(process.get(), "root", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return;
  const base::Fd dev = open_in_root(root.get(), "dev", O_PATH | O_DIRECTORY);
  if (!dev.valid()) return;
  std::vector<NodeFacts> nodes;
  struct stat node {};
  for (std::int32_t i = 0; i < kMinorsMax; ++i) {
    const std::string name = "nvidia" + std::to_string(i);
    if (::fstatat(dev.get(), name.c_str(), &node, AT_SYMLINK_NOFOLLOW) == 0 && is_gpu_node(node, i))
      nodes.push_back(facts_of(i, node));
  }
  facts.nodes = std::move(nodes);
  // Runtimes make these links when all nodes are there.
  for (const char* name : {"fd", "stdin", "stdout", "stderr"})
    if (::fstatat(dev.get(), name, &node, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(node.st_mode))
      facts.dev_ready_ns = std::max(facts.dev_ready_ns, facts_of(-1, node).ctime_ns);
}

void read_environment(const base::Fd& process, ContainerFacts& facts) {
  static constexpr std::string_view kName = "NVIDIA_VISIBLE_DEVICES=";
  const auto environment = read_below(process, "environ", kEnvironMax);
  if (!environment) return;
  for (std::string_view rest = *environment; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    if (!word.starts_with(kName)) continue;
    facts.visible_devices = std::string(word.substr(kName.size()));
    return;
  }
}

// Path of the hierarchy with that controller ("" is cgroup2) in /proc/PID/cgroup.
std::optional<std::string> cgroup_path(std::string_view text, std::string_view controller) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    if (line.substr(first + 1, second - first - 1) == controller) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

// Of the minors that can be, those that one rule of a v1 device cgroup covers
// for reading and writing: "c 195:0 rw", "c 195:* rwm", "a *:* rwm".
void allow_by_rule(std::string_view rule, std::vector<std::int32_t>& allowed) {
  const std::string number = std::to_string(kControlMinor);
  const std::size_t colon = rule.find(':');
  const std::size_t space = colon == std::string_view::npos ? colon : rule.find(' ', colon);
  if (space == std::string_view::npos || colon < 2) return;
  const std::string_view access = rule.substr(space);
  if (access.find('r') == std::string_view::npos || access.find('w') == std::string_view::npos) return;
  const std::string_view major_number = rule.substr(2, colon - 2);
  if (major_number != "*" && major_number != number) return;
  const std::string_view minor_number = rule.substr(colon + 1, space - colon - 1);
  for (std::int32_t i = 0; i < kMinorsMax; ++i)
    if (minor_number == "*" || minor_number == std::to_string(i)) allowed.push_back(i);
}

void run_programs(const std::string& cgroup, ContainerFacts& facts) {
  auto programs = read_device_programs(cgroup);
  if (!programs) {
    facts.filter_unread = programs.error().message();
    return;
  }
  facts.device_programs = static_cast<std::uint32_t>(programs->size());
  if (programs->empty()) return;
  std::vector<std::int32_t> allowed;
  for (std::int32_t i = 0; i < kMinorsMax; ++i) {
    bool all = true;
    for (const DeviceProgram& program : *programs) {
      DeviceAccess device;
      device.major = kControlMinor;
      device.minor = static_cast<std::uint32_t>(i);
      const auto lets = run_device_program(program, device);
      if (!lets) {
        facts.filter_unread = "its program does what is not known here";
        return;
      }
      all = all && *lets;
    }
    if (all) allowed.push_back(i);
  }
  facts.filter_allows = std::move(allowed);
}

void read_device_cgroup(const base::Fd& process, ContainerFacts& facts) {
  const auto text = read_below(process, "cgroup", 16384);
  if (!text) return;
  if (const auto v1 = cgroup_path(*text, "devices")) {
    auto list = base::read_text_file("/sys/fs/cgroup/devices" + *v1 + "/devices.list", 16384);
    if (list.ok()) facts.filter_allows.emplace();
    for (std::string_view rest = list.ok() ? std::string_view(*list) : ""; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      // Rules that can be about a GPU.
      if ((line.starts_with("a ") || line.starts_with("c 195:") || line.starts_with("c *:")) &&
          facts.device_rules.size() < kRulesMax)
        facts.device_rules.emplace_back(line);
      allow_by_rule(line, *facts.filter_allows);
    }
  } else if (const auto v2 = cgroup_path(*text, "")) {
    run_programs("/sys/fs/cgroup" + *v2, facts);
  }
}

bool has_own_mounts(const base::Fd& process) {
  struct stat theirs {
  }, ours{};
  return ::fstatat(process.get(), "ns/mnt", &theirs, 0) == 0 && ::stat("/proc/self/ns/mnt", &ours) == 0 &&
         (theirs.st_ino != ours.st_ino || theirs.st_dev != ours.st_dev);
}

}  // namespace

ContainerFacts read_container_facts(const std::vector<ProcessName>& candidates, const std::string& container_id) {
  for (const ProcessName& name : candidates) {
    const base::Fd process = open_process(name.tgid, name.start_ns);
    if (!process.valid()) continue;
    ContainerFacts facts;
    facts.own_mounts = has_own_mounts(process);
    if (!facts.own_mounts) return facts;
    read_dev(process, facts);
    read_environment(process, facts);
    read_device_cgroup(process, facts);
    facts.cdi_devices = read_cdi_devices({}, container_id);
    if (still_there(process, name.start_ns)) return facts;
  }
  return {};
}

std::optional<NodeFacts> read_host_node(std::int32_t minor_number) {
  struct stat node {};
  const std::string path = "/dev/nvidia" + std::to_string(minor_number);
  if (::lstat(path.c_str(), &node) != 0 || !is_gpu_node(node, minor_number)) return std::nullopt;
  return facts_of(minor_number, node);
}

}  // namespace gpuwatch::attribute
