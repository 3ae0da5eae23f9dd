// SPDX-License-Identifier: Apache-2.0
#include "attribute/process_lookup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <charconv>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/io.h"
#include "model/raw_record.h"

namespace gpuwatch::attribute {

namespace {

// Times in /proc are in ticks of 1/100 s, whatever the kernel's own ticks are.
constexpr std::uint64_t kTickNs = 10'000'000;

struct Stat {
  std::string comm;
  std::uint32_t parent = 0;
  std::uint64_t start_ticks = 0;
};

base::Fd open_any(const std::string& proc, std::uint32_t tgid) {
  const std::string path = proc + "/" + std::to_string(tgid);
  return base::Fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

std::optional<std::string> read_below(const base::Fd& directory, const char* name) {
  const base::Fd file(::openat(directory.get(), name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid()) return std::nullopt;
  std::string text(8192, '\0');
  auto got = base::read_full(file.get(), std::as_writable_bytes(std::span(text)));
  if (!got.ok() || *got == 0) return std::nullopt;
  text.resize(*got);
  return text;
}

template <typename Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end != text.data() ? std::optional(value) : std::nullopt;
}

// "PID (COMM) STATE PPID ... START": comm may hold anything, so the last ')' ends it.
std::optional<Stat> read_stat(const base::Fd& directory) {
  const auto text = read_below(directory, "stat");
  if (!text) return std::nullopt;
  const std::size_t open = text->find('(');
  const std::size_t close = text->rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  Stat stat;
  stat.comm = text->substr(open + 1, close - open - 1);
  std::string_view rest = std::string_view(*text).substr(close + 1);
  for (int field = 3; field <= 22; ++field) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const std::string_view word = rest.substr(0, rest.find(' '));
    if (field == 4) stat.parent = number<std::uint32_t>(word).value_or(0);
    if (field == 22) {
      const auto ticks = number<std::uint64_t>(word);
      if (!ticks) return std::nullopt;
      stat.start_ticks = *ticks;
    }
    rest.remove_prefix(word.size());
  }
  return stat;
}

// "NSpid:\t210\t4\t1": from the proc mount's namespace to its own.
std::vector<std::uint32_t> read_ns_pids(const base::Fd& directory) {
  std::vector<std::uint32_t> pids;
  const auto text = read_below(directory, "status");
  const std::size_t at = text ? text->find("\nNSpid:") : std::string::npos;
  if (at == std::string::npos) return pids;
  std::string_view line = std::string_view(*text).substr(at + 7);
  line = line.substr(0, line.find('\n'));
  while (!line.empty() && pids.size() < GPUWATCH_NS_MAX) {
    line.remove_prefix(std::min(line.find_first_not_of("\t "), line.size()));
    const auto pid = number<std::uint32_t>(line);
    if (!pid) break;
    pids.push_back(*pid);
    line.remove_prefix(std::min(line.find_first_of("\t "), line.size()));
  }
  return pids;
}

void read_exe(const base::Fd& directory, model::Process& process) {
  std::string path(GPUWATCH_PATH_MAX, '\0');
  const ssize_t length = ::readlinkat(directory.get(), "exe", path.data(), path.size());
  if (length <= 0) return;
  path.resize(static_cast<std::size_t>(length));
  process.exe = path;
  struct stat file {};
  if (::fstatat(directory.get(), "exe", &file, 0) == 0) {
    process.exe_ino = file.st_ino;
    process.exe_dev = (major(file.st_dev) << 20) | (minor(file.st_dev) & 0xfffff);
    // The link's text alone could be a file's real name.
    if (file.st_nlink == 0)
      process.exe_state = path.starts_with("/memfd:") ? model::ExeState::kMemfd : model::ExeState::kDeleted;
  }
  struct stat ns {};
  if (::fstatat(directory.get(), "ns/pid", &ns, 0) == 0) process.pid_ns = static_cast<std::uint32_t>(ns.st_ino);
}

// Its id as the process itself would see it: the entry of the namespace at
// `level` entries; 0 where it is not in there.
std::uint32_t id_at(const std::vector<std::uint32_t>& ids, std::size_t levels) {
  return levels != 0 && ids.size() >= levels ? ids[levels - 1] : 0;
}

void read_ancestors(const std::string& proc, std::uint32_t parent, std::uint64_t child_ticks, model::Process& process) {
  const std::size_t levels = process.ns_pids.size();
  if (process.ns_tgid == 1) return;
  for (int depth = 0; parent != 0 && depth < GPUWATCH_ANCESTORS_MAX; ++depth) {
    const base::Fd directory = open_any(proc, parent);
    if (!directory.valid()) return;
    const auto stat = read_stat(directory);
    // A parent younger than its child is another process with its pid.
    if (!stat || stat->start_ticks > child_ticks) return;
    const std::uint32_t ns_tgid = id_at(read_ns_pids(directory), levels);
    process.ancestors.push_back({parent, ns_tgid, stat->start_ticks * kTickNs, stat->comm});
    if (ns_tgid == 1) return;
    parent = stat->parent;
    child_ticks = stat->start_ticks;
  }
}

}  // namespace

bool still_there(const base::Fd& process, std::uint64_t start_ns) {
  const auto stat = read_stat(process);
  return stat && stat->start_ticks == start_ns / kTickNs;
}

base::Fd open_process(std::uint32_t tgid, std::uint64_t start_ns, const std::string& proc) {
  base::Fd directory = open_any(proc, tgid);
  if (directory.valid() && !still_there(directory, start_ns)) return {};
  return directory;
}

std::optional<model::Process> read_process(std::uint32_t tgid, std::uint64_t start_ns, const std::string& proc) {
  const base::Fd directory = open_process(tgid, start_ns, proc);
  if (!directory.valid()) return std::nullopt;
  const auto before = read_stat(directory);
  if (!before) return std::nullopt;
  model::Process process;
  process.source = model::ProcessSource::kProc;
  process.ns_pids = read_ns_pids(directory);
  process.ns_tgid = process.ns_pids.empty() ? 0 : process.ns_pids.back();
  process.ns_level = process.ns_pids.empty() ? 0 : static_cast<std::uint32_t>(process.ns_pids.size() - 1);
  read_exe(directory, process);
  read_ancestors(proc, before->parent, before->start_ticks, process);
  if (!still_there(directory, start_ns)) return std::nullopt;
  return process;
}

}  // namespace gpuwatch::attribute
