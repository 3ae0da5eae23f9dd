// SPDX-License-Identifier: Apache-2.0
#include "probe/outside/process_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "base/io.h"
#include "base/scope_exit.h"
#include "decode/tables.h"

namespace gpuwatch::probe::outside {

namespace {

// Arguments as the driver has them since 535.
struct ControlArgument {
  Handle client = 0, object = 0;
  std::uint32_t command = 0, flags = 0;
  std::uint64_t parameters = 0;
  std::uint32_t parameter_bytes = 0, status = 0;
};
static_assert(sizeof(ControlArgument) == 32);
constexpr unsigned kControl = 0x2a;

constexpr std::uint32_t kGetAttachedIds = 0x201;
struct AttachedIds {
  std::uint32_t id[32] = {};
};

constexpr std::uint32_t kReadMemory = 0x83de0315;
struct ReadMemory {
  Handle memory = 0;
  std::uint32_t bytes = 0;
  std::uint64_t offset = 0, buffer = 0;
};
static_assert(sizeof(ReadMemory) == 24);

constexpr unsigned kControlMajor = 195;  // given to NVIDIA by the kernel's list of devices
constexpr unsigned kControlMinor = 255;
constexpr std::size_t kFilesMax = 1 << 16;

std::string of_process(int pid, const char* what) {
  return "/proc/" + std::to_string(pid) + what;
}

// Field 22 of /proc/PID/stat. The name before it may hold anything.
bool start_of(const std::string& text, std::uint64_t& ticks) {
  std::size_t at = text.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  if (at == std::string::npos) return false;
  const char* const begin = text.data() + at + 1;
  return std::from_chars(begin, text.data() + text.size(), ticks).ec == std::errc();
}

std::vector<std::uint32_t> numbers_of(const std::string& status, int pid) {
  std::vector<std::uint32_t> out;
  const std::string key = "\nNSpid:";
  const std::size_t line = status.find(key);
  for (std::size_t at = line == std::string::npos ? status.size() : line + key.size();
       at < status.size() && status[at] != '\n';) {
    std::uint32_t number = 0;
    const auto parsed = std::from_chars(status.data() + at, status.data() + status.size(), number);
    if (parsed.ec == std::errc()) out.push_back(number);
    at = parsed.ec == std::errc() ? static_cast<std::size_t>(parsed.ptr - status.data()) : at + 1;
  }
  if (out.empty()) out.push_back(static_cast<std::uint32_t>(pid));
  return out;
}

Failure not_allowed(int pid) {
  std::string text = "process " + std::to_string(pid) +
                     ": taking its file of /dev/nvidiactl is not permitted; it wants the right to trace it: "
                     "CAP_SYS_PTRACE, which root has";
  auto yama = base::read_text_file("/proc/sys/kernel/yama/ptrace_scope", 64);
  text += yama.ok() && *yama != "0" ? " (its own user is kept from it by kernel.yama.ptrace_scope = " + *yama + ")"
                                    : ", or being its own user";
  return {Outcome::kDenied, text};
}

}  // namespace

std::string Answer::text() const {
  if (error != 0) return std::strerror(error);
  using namespace decode::tables;
  const Entry* entry = statuses.find(status, branch_count() - 1);
  char number[16];
  std::snprintf(number, sizeof number, " (0x%x)", status);
  return (entry != nullptr ? std::string(entry->name) : std::string("status")) + number;
}

ProcessFiles::ProcessFiles(int pid) : ProcessFiles(pid, makedev(kControlMajor, kControlMinor)) {}

Failure ProcessFiles::gone() const {
  return {Outcome::kNoProcess, "there is no process " + std::to_string(pid_)};
}

bool ProcessFiles::ended() const {
  pollfd entry{process_.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

Failure ProcessFiles::open(Identity& identity) {
  process_ = base::Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (!process_.valid()) {
    if (errno == ESRCH) return gone();
    if (errno == ENOSYS) return {Outcome::kTrouble, "reading from outside wants Linux 5.6 or later: pidfd_open"};
    return {Outcome::kTrouble, "process " + std::to_string(pid_) + ": " + std::strerror(errno)};
  }
  auto stat = base::read_text_file(of_process(pid_, "/stat"), 4096);
  auto status = base::read_text_file(of_process(pid_, "/status"), 64 << 10);
  if (ended() || !stat.ok() || !status.ok() || !start_of(*stat, identity.start_ticks)) return gone();
  identity.numbers = numbers_of(*status, pid_);
  return {};
}

Failure ProcessFiles::control_files(std::vector<int>& out) {
  DIR* const folder = ::opendir(of_process(pid_, "/fd").c_str());
  if (folder == nullptr) return errno == ENOENT ? gone() : not_allowed(pid_);
  const base::ScopeExit close([&] { ::closedir(folder); });
  std::size_t looked_at = 0;
  while (const dirent* entry = ::readdir(folder)) {
    if (++looked_at > kFilesMax) break;
    const std::string_view name = entry->d_name;
    int number = -1;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
    if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) continue;
    struct stat info {};
    if (::fstatat(::dirfd(folder), entry->d_name, &info, 0) == 0 && S_ISCHR(info.st_mode) && info.st_rdev == node_)
      out.push_back(number);
  }
  return ended() ? gone() : Failure{};
}

Failure ProcessFiles::call(int file, Handle client, Handle object, std::uint32_t command, void* parameters,
                           std::uint32_t bytes, Answer& answer) {
  if (ended()) return {Outcome::kNoProcess, "process " + std::to_string(pid_) + " ended while it was looked at"};
  const base::Fd theirs(static_cast<int>(::syscall(SYS_pidfd_getfd, process_.get(), file, 0)));
  if (!theirs.valid()) {
    if (errno == EPERM) return not_allowed(pid_);
    if (errno == ENOSYS) return {Outcome::kTrouble, "reading from outside wants Linux 5.6 or later: pidfd_getfd"};
    if (errno == ESRCH)
      return {Outcome::kNoProcess, "process " + std::to_string(pid_) + " ended while it was looked at"};
    answer = {errno, 0};
    return {};
  }
  // The number may name another file by now.
  struct stat info {};
  if (::fstat(theirs.get(), &info) != 0 || !S_ISCHR(info.st_mode) || info.st_rdev != node_) {
    answer = {EBADF, 0};
    return {};
  }
  ControlArgument argument;
  argument.client = client;
  argument.object = object;
  argument.command = command;
  argument.parameters = reinterpret_cast<std::uint64_t>(parameters);
  argument.parameter_bytes = bytes;
  const unsigned long request = _IOC(_IOC_READ | _IOC_WRITE, 'F', kControl, sizeof argument);
  if (::ioctl(theirs.get(), request, &argument) != 0)
    answer = {errno, 0};
  else
    answer = {0, argument.status};
  return {};
}

Failure ProcessFiles::knows(int file, Handle client, Answer& answer) {
  AttachedIds ids;
  return call(file, client, client, kGetAttachedIds, &ids, sizeof ids, answer);
}

Failure ProcessFiles::read(int file, Handle client, Handle debugger, Handle memory, std::uint64_t offset,
                           std::span<std::uint8_t> out, Answer& answer) {
  ReadMemory parameters{memory, static_cast<std::uint32_t>(out.size()), offset,
                        reinterpret_cast<std::uint64_t>(out.data())};
  if (Failure failure = call(file, client, debugger, kReadMemory, &parameters, sizeof parameters, answer))
    return failure;
  // It has no count of what it read: a driver that changes the length did something else.
  if (answer.good() && parameters.bytes != out.size()) answer = {EIO, 0};
  return {};
}

}  // namespace gpuwatch::probe::outside
