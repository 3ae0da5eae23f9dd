// SPDX-License-Identifier: Apache-2.0
// The child without rights: what it cannot reach any more, what it can ask, and
// what becomes of one that asks for what it never does or ends early. Each case
// is a process of its own, because the parent is to have one thread.
#include "probe/agent/rights.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "probe/agent/confine.h"

namespace gpuwatch::probe::agent {
namespace {

using Request = std::span<const std::uint8_t>;

int ends_with(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int without_rights(const Serve& serve, const std::function<int(Parent&)>& work) {
  return ends_with([&] { return run_without_rights(serve, work); });
}

bool none(Request, Told&) {
  return false;
}

TEST(Rights, NothingIsReachedByNameOrNumber) {
  if (kUnderSanitizer) GTEST_SKIP() << "no filter of calls under a sanitizer";
  const pid_t watched = ::getpid();
  const int code = without_rights(none, [&](Parent&) {
    char* const words[] = {const_cast<char*>("/bin/true"), nullptr};
    const std::vector<std::function<long()>> tries{
        [] { return long{::open("/etc/passwd", O_RDONLY | O_CLOEXEC)}; },
        [] { return long{::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)}; },
        [] { return long{::socket(AF_UNIX, SOCK_STREAM, 0)}; },
        [&] { return long{::execv(words[0], words)}; },
        [] { return ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr); },
        [&] { return ::ptrace(PTRACE_SEIZE, watched, nullptr, nullptr); },
        [&] { return long{::kill(watched, 0)}; },
        [] { return ::syscall(SYS_pidfd_getfd, 0, 0, 0); },
        [&] { return ::syscall(SYS_process_vm_readv, watched, nullptr, 0, nullptr, 0, 0); },
        [] { return ::syscall(SYS_openat2, 0, nullptr, nullptr, 0); },
        [] { return ::syscall(SYS_io_uring_setup, 1, nullptr); },
        [] { return long{::setuid(0) == 0 && ::geteuid() == 0 ? 0 : -1}; },
    };
    for (std::size_t i = 0; i < tries.size(); ++i) {
      errno = 0;
      if (tries[i]() >= 0) return static_cast<int>(40 + i);
      if (errno != EPERM && errno != ENOSYS) return static_cast<int>(60 + i);
    }
    return 33;
  });
  EXPECT_EQ(code, 33) << "40 and more: such a try came through; 60 and more: it failed for another reason";
}

// Sources are gone through by as many threads as there are processors.
TEST(Rights, ThreadsAndMemoryAreThere) {
  const unsigned processors = std::thread::hardware_concurrency();
  const int code = without_rights(none, [&](Parent&) {
    if (std::thread::hardware_concurrency() != processors) return 20;
    std::vector<int> seen(8);
    {
      std::vector<std::jthread> threads;
      for (int& one : seen)
        threads.emplace_back([&one] { one = static_cast<int>(std::vector<int>(1 << 20, 1).back()); });
    }
    for (const int one : seen)
      if (one != 1) return 21;
    return 34;
  });
  EXPECT_EQ(code, 34);
}

TEST(Rights, WhatTheParentTells) {
  const Serve serve = [](Request request, Told& told) {
    if (request.size() == 2) told.failure = {Outcome::kDenied, "no"};
    told.bytes.assign(kToldMax, request[0]);
    if (request.size() == 3) told.fd = base::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return true;
  };
  const int code = without_rights(serve, [](Parent& parent) {
    Told told;
    const std::uint8_t request[3] = {7, 8, 9};
    if (parent.ask({request, 1}, told) || told.bytes != std::vector<std::uint8_t>(kToldMax, 7)) return 20;
    if (told.fd.valid()) return 21;
    const Failure failure = parent.ask({request, 2}, told);
    if (failure.outcome != Outcome::kDenied || failure.text != "no" || !told.bytes.empty()) return 22;
    if (parent.ask(request, told) || !told.fd.valid()) return 23;
    char byte = 0;
    if (::read(told.fd.get(), &byte, 1) != 0) return 24;
    return 35;
  });
  EXPECT_EQ(code, 35);
}

TEST(Rights, ARequestThatIsNoneEndsIt) {
  const std::uint8_t bytes[kAskMax + 1] = {};
  const Serve any = [](Request, Told&) { return true; };
  for (const auto& one : std::vector<std::pair<Serve, std::size_t>>{{none, 1}, {any, kAskMax + 1}}) {
    const int code = without_rights(one.first, [&](Parent& parent) {
      Told told;
      (void)parent.ask({bytes, one.second}, told);
      return 0;
    });
    EXPECT_EQ(code, static_cast<int>(Outcome::kTrouble));
  }
}

TEST(Rights, HowItEndsIsTold) {
  const auto code = [](const std::function<int(Parent&)>& work) { return without_rights(none, work); };
  EXPECT_EQ(code([](Parent&) { return 1; }), 1);
  EXPECT_EQ(code([](Parent&) -> int { ::abort(); }), static_cast<int>(Outcome::kTrouble));
  EXPECT_EQ(code([](Parent&) -> int { throw std::bad_alloc(); }), static_cast<int>(Outcome::kTrouble));
}

TEST(Rights, AnAgentThatIsFullIsTriedAgain) {
  int asked = 0;
  const Connect connect = [&](base::Fd& fd, bool& full) -> Failure {
    full = ++asked == 1;
    if (full) return {Outcome::kNoAnswer, "many ask"};
    fd = base::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return asked == 2 ? Failure{} : Failure{Outcome::kNoAgent, "gone"};
  };
  const int code = ends_with([&] {
    return run_without_rights(connect, [](const Connect& ask) {
      base::Fd fd;
      bool full = false;
      Failure failure = ask(fd, full);
      if (!full || failure.text != "many ask" || fd.valid()) return 20;
      full = false;
      if (ask(fd, full) || full || !fd.valid()) return 21;
      fd.reset();
      failure = ask(fd, full);
      if (failure.outcome != Outcome::kNoAgent || failure.text != "gone" || full || fd.valid()) return 22;
      return 36;
    });
  });
  EXPECT_EQ(code, 36);
}

}  // namespace
}  // namespace gpuwatch::probe::agent
