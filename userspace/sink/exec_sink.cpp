// SPDX-License-Identifier: Apache-2.0
// See exec_sink.h.
#include "sink/exec_sink.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "base/escape.h"
#include "base/scope_exit.h"

namespace gpuwatch::sink {

namespace {

using base::Error;
using base::Fd;
using base::Status;
using Clock = std::chrono::steady_clock;

Status check_program(const std::string& path) {
  if (!path.starts_with('/')) return Error(base::Code::kBadInput, "exec: " + path + ": give the whole path");
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return Error::from_errno("exec: " + path);
  if (!S_ISREG(info.st_mode) || ::access(path.c_str(), X_OK) != 0)
    return Error(base::Code::kBadInput, "exec: " + path + ": is no executable file");
  if ((info.st_mode & S_IWOTH) != 0 || (info.st_uid != 0 && info.st_uid != ::geteuid()))
    return Error(base::Code::kPermission,
                 "exec: " + path + ": others may change it; let root own it and take their right to write");
  return {};
}

// Both ends closed in programs that others start.
Status make_pipe(Fd& read_end, Fd& write_end) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::from_errno("exec: pipe");
  read_end = Fd(ends[0]);
  write_end = Fd(ends[1]);
  return {};
}

struct Child {
  pid_t pid = -1;
  Fd handle;  // pidfd
  Fd in;      // its standard input, ours to write
  Fd out;     // what it prints, ours to read
};

base::Result<Child> start(const std::vector<std::string>& command, const Item& item) {
  Child child;
  Fd child_in;
  Fd child_out;
  if (Status status = make_pipe(child_in, child.in); !status) return std::move(status.error());
  if (Status status = make_pipe(child.out, child_out); !status) return std::move(status.error());
  ::fcntl(child.in.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(child.out.get(), F_SETFL, O_NONBLOCK);

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  const base::ScopeExit destroy([&] {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  });
  ::posix_spawn_file_actions_adddup2(&files, child_in.get(), 0);
  ::posix_spawn_file_actions_adddup2(&files, child_out.get(), 1);
  ::posix_spawn_file_actions_adddup2(&files, child_out.get(), 2);
  ::posix_spawn_file_actions_addclosefrom_np(&files, 3);
  ::posix_spawn_file_actions_addchdir_np(&files, "/");
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  // Only what cannot be chosen by a watched program: ids of rules and alerts.
  std::array<std::string, 5> words = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
                                      "GPUWATCH_RULE=" + base::escaped(item.rule),
                                      "GPUWATCH_ALERT_ID=" + base::escaped(item.alert_id),
                                      "GPUWATCH_SEVERITY=" + std::string(severity_name(item.severity))};
  std::array<char*, words.size() + 1> environment{};
  for (std::size_t i = 0; i < words.size(); ++i) environment[i] = words[i].data();

  const int failed = ::posix_spawn(&child.pid, arguments[0], &files, &attributes, arguments.data(), environment.data());
  if (failed != 0) return Error::from_errno("exec: " + command[0], failed);
  child.handle = Fd(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
  return child;
}

// Feeds, drains and waits. True: the program ended by itself in time.
bool attend(Child& child, std::string_view input, std::size_t keep, std::string& output, int wake,
            Clock::time_point until) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return false;
    pollfd wait[4] = {
        {child.handle.get(), POLLIN, 0}, {child.out.get(), POLLIN, 0}, {child.in.get(), POLLOUT, 0}, {wake, POLLIN, 0}};
    const int ready = ::poll(wait, 4, static_cast<int>(std::min<long long>(left.count() + 1, 1'000'000)));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    if (wait[3].revents != 0) return false;
    if (wait[1].revents != 0) {
      char bytes[4096];
      const ssize_t n = ::read(child.out.get(), bytes, sizeof bytes);
      if (n > 0)
        output.append(bytes, std::min(static_cast<std::size_t>(n), keep - std::min(keep, output.size())));
      else if (n == 0 || errno != EAGAIN)
        child.out.reset();
    }
    if (wait[2].revents != 0) {
      const ssize_t n = ::write(child.in.get(), input.data(), input.size());
      if (n > 0) input.remove_prefix(static_cast<std::size_t>(n));
      if (input.empty() || (n < 0 && errno != EAGAIN && errno != EINTR)) child.in.reset();
    }
    // Ended: what it printed is in the pipe already, and was read as far as it is wanted.
    if (wait[0].revents != 0 && wait[1].revents == 0) return true;
  }
}

std::string ended(int status) {
  if (WIFSIGNALED(status)) return "ended by signal " + std::to_string(WTERMSIG(status));
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

ExecSink::ExecSink(ExecOptions options)
    : options_(std::move(options)), bucket_(options_.rate), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

base::Result<std::unique_ptr<Sink>> ExecSink::open(ExecOptions options) {
  if (options.command.empty()) return Error(base::Code::kBadInput, "exec: no program");
  if (Status status = check_program(options.command[0]); !status) return std::move(status.error());
  std::unique_ptr<ExecSink> sink(new ExecSink(std::move(options)));
  if (!sink->wake_.valid()) return Error::from_errno("exec: eventfd");
  return std::unique_ptr<Sink>(std::move(sink));
}

Status ExecSink::run(const Item& item) {
  if (Status status = check_program(options_.command[0]); !status) return status;
  auto started = start(options_.command, item);
  if (!started) return std::move(started.error());
  Child& child = *started;
  std::string output;
  const bool in_time = child.handle.valid() && attend(child, item.json + "\n", options_.output_bytes, output,
                                                      wake_.get(), Clock::now() + options_.limit);
  // What the program left behind in its group goes with it. It is not reaped
  // yet, so its id is still its own.
  ::kill(-child.pid, SIGKILL);
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (options_.log && !output.empty()) options_.log(options_.command[0] + ": " + base::escaped(output));
  if (!child.handle.valid()) return Error(base::Code::kUnsupported, "exec: the kernel has no pidfd_open (before 5.3)");
  if (!in_time) {
    return Error(base::Code::kLimit, "exec: " + options_.command[0] + ": killed, not ready after " +
                                         std::to_string(options_.limit.count()) + " ms or at the daemon's end");
  }
  if (status != 0) return Error(base::Code::kIo, "exec: " + options_.command[0] + ": " + ended(status));
  return {};
}

Outcome ExecSink::write(std::span<const ItemPtr> items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (const auto wait = bucket_.take(Clock::now()); wait.count() > 0) return Outcome::wait(wait, i);
    if (Status status = run(*items[i]); !status) {
      if (options_.log) options_.log(status.error().message());
      // This alert is not tried again: the program may have done half its work.
      Outcome outcome = Outcome::again(std::move(status.error()), i);
      outcome.refused = 1;
      return outcome;
    }
  }
  return Outcome::all();
}

void ExecSink::cancel() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
}

}  // namespace gpuwatch::sink
