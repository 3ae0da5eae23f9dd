// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/scope_exit.h"
#include "identify/worker.h"
#include "identify/worker_name.h"

namespace gpuwatch::identify {

base::Result<WorkerProcess> WorkerProcess::start() {
  // The worker is this program again: one that does not ask would start over, and
  // start its own worker, without end.
  if (!is_worker_asked())
    return base::Error(base::Code::kUnsupported, "hash worker: main() of this program does not ask is_worker()");
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return base::Error::from_errno("hash worker: socketpair");
  WorkerProcess worker;
  worker.socket_ = base::Fd(pair[0]);
  const base::Fd theirs(pair[1]);

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  const base::ScopeExit free_them([&] {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  });
  // dup2 onto itself clears close-on-exec, too.
  ::posix_spawn_file_actions_adddup2(&actions, theirs.get(), kWorkerFd);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  // A signal for the parent's process group is the parent's business.
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  char name[] = "gpuwatch-hash-worker";
  static_assert(sizeof name == sizeof kWorkerName);
  char* const argv[] = {name, nullptr};
  char path[] = "PATH=/usr/bin";
  char* const environment[] = {path, nullptr};
  const int error = ::posix_spawn(&worker.pid_, "/proc/self/exe", &actions, &attributes, argv, environment);
  if (error != 0) {
    worker.pid_ = -1;
    return base::Error::from_errno("hash worker: /proc/self/exe cannot be started", error);
  }
  return worker;
}

bool WorkerProcess::send(const std::string& body, const int* fds, std::size_t fd_count) {
  char head[4];
  const auto size = static_cast<std::uint32_t>(body.size());
  std::memcpy(head, &size, sizeof head);
  iovec parts[2] = {{head, sizeof head}, {const_cast<char*>(body.data()), body.size()}};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  if (fd_count > 0 && fd_count <= 4) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
    std::memcpy(CMSG_DATA(rights), fds, fd_count * sizeof(int));
  }
  while (message.msg_iovlen > 0) {
    const ssize_t sent = ::sendmsg(fd(), &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    message.msg_control = nullptr;
    message.msg_controllen = 0;
    auto left = static_cast<std::size_t>(sent);
    while (message.msg_iovlen > 0 && left >= message.msg_iov->iov_len) {
      left -= message.msg_iov->iov_len;
      ++message.msg_iov;
      --message.msg_iovlen;
    }
    if (message.msg_iovlen > 0) {
      message.msg_iov->iov_base = static_cast<char*>(message.msg_iov->iov_base) + left;
      message.msg_iov->iov_len -= left;
    }
  }
  return true;
}

WorkerProcess::Got WorkerProcess::receive(std::string& body) {
  char piece[64 << 10];
  for (;;) {
    std::uint32_t size = 0;
    if (pending_.size() >= sizeof size) {
      std::memcpy(&size, pending_.data(), sizeof size);
      if (size > kReplyMax) return Got::kGone;  // no worker of ours: it is not to be believed further
      if (pending_.size() - sizeof size >= size) {
        body = pending_.substr(sizeof size, size);
        pending_.erase(0, sizeof size + size);
        return Got::kReply;
      }
    }
    const ssize_t got = ::recv(fd(), piece, sizeof piece, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return Got::kNothing;
    if (got <= 0) return Got::kGone;
    if (pending_.empty() && static_cast<std::size_t>(got) >= sizeof size) {
      std::memcpy(&size, piece, sizeof size);
      if (size <= kReplyMax) pending_.reserve(size + sizeof size);
    }
    pending_.append(piece, static_cast<std::size_t>(got));
  }
}

WorkerProcess::Got WorkerProcess::wait(std::string& body, int timeout_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    if (const Got got = receive(body); got != Got::kNothing) return got;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0) return Got::kNothing;
    pollfd one{fd(), POLLIN, 0};
    if (::poll(&one, 1, static_cast<int>(left)) < 0 && errno != EINTR) return Got::kGone;
  }
}

std::string WorkerProcess::end(bool timed_out) {
  if (pid_ <= 0) return "worker was not running";
  // It may have died, and then has a reason of its own.
  int status = 0;
  socket_.reset();
  pid_t done = 0;
  if (!timed_out) {
    // The socket is closed: a worker that lives sees that, and ends.
    for (int i = 0; i < 200 && done == 0; ++i) {
      done = ::waitpid(pid_, &status, WNOHANG);
      if (done == 0) ::usleep(1000);
    }
  }
  if (done == 0) {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  pid_ = -1;
  pending_.clear();
  if (timed_out) return "worker took too long and was ended";
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    if (signal == SIGSYS) return "worker made a forbidden system call and was ended";
    if (signal == SIGXCPU) return "worker used up its processor time";
    return "worker crashed: signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kWorkerNoMemory) return "worker ran out of memory";
  if (WIFEXITED(status) && WEXITSTATUS(status) == kWorkerNoSandbox) return "worker could not enter its sandbox";
  return "worker ended: status " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : status);
}

void WorkerProcess::stop() {
  if (pid_ <= 0) return;
  socket_.reset();
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

}  // namespace gpuwatch::identify
