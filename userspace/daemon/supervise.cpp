// SPDX-License-Identifier: Apache-2.0
#include "daemon/supervise.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/fd.h"
#include "daemon/log.h"

namespace gpuwatch::daemon {

using base::Error;
using base::Result;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::size_t kKeptMax = 8;
constexpr int kFirstFd = 3;  // as sd_listen_fds(3) has it

class Supervisor {
 public:
  explicit Supervisor(const SuperviseOptions& options) : options_(options) {}

  Result<int> run() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1}) sigaddset(&set, number);
    ::sigprocmask(SIG_BLOCK, &set, &mask_);
    signals_ = base::Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_.valid()) return Error::from_errno("signalfd");
    if (base::Status status = open_socket(); !status.ok()) return std::move(status.error());
    auto pause = std::chrono::milliseconds(0);
    for (unsigned tries = 0; tries <= options_.restarts; ++tries) {
      const auto began = Clock::now();
      if (base::Status status = start(); !status.ok()) return std::move(status.error());
      const int status = follow();
      if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || stopping_ || !was_ready_)) return WEXITSTATUS(status);
      if (stopping_) return 1;
      say(Level::kError, std::string("the daemon ended ") +
                             (WIFSIGNALED(status) ? "by signal " + std::to_string(WTERMSIG(status))
                                                  : "with status " + std::to_string(WEXITSTATUS(status))) +
                             "; starting it again");
      // One that dies at once again and again is not started in a circle.
      pause = Clock::now() - began > std::chrono::seconds(10)
                  ? std::chrono::milliseconds(0)
                  : std::min(pause * 2 + std::chrono::milliseconds(50), std::chrono::milliseconds(10'000));
      if (wait_or_stop(pause)) return 1;
    }
    return Error(base::Code::kIo, "the daemon died too often");
  }

 private:
  base::Status open_socket() {
    socket_ = base::Fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    // Abstract, so that nothing is left behind; who sends is checked.
    name_ = "@gpuwatchd-supervisor-" + std::to_string(::getpid());
    std::memcpy(address.sun_path + 1, name_.data() + 1, name_.size() - 1);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    const int on = 1;
    if (!socket_.valid() || ::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
      return Error::from_errno("socket of the supervisor");
    return {};
  }

  base::Status start() {
    was_ready_ = false;
    child_ = ::fork();
    if (child_ < 0) return Error::from_errno("fork");
    if (child_ == 0) exec_child();
    return {};
  }

  [[noreturn]] void exec_child() {
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    // Away from the places that they must get, then into them.
    std::vector<int> high;
    std::string names;
    for (const auto& [name, fd] : kept_) {
      high.push_back(::fcntl(fd.get(), F_DUPFD, 100));
      names += (names.empty() ? "" : ":") + name;
    }
    for (std::size_t i = 0; i < high.size(); ++i) {
      ::dup2(high[i], kFirstFd + static_cast<int>(i));
      ::close(high[i]);
    }
    ::setenv("NOTIFY_SOCKET", name_.c_str(), 1);
    if (!kept_.empty()) {
      ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
      ::setenv("LISTEN_FDS", std::to_string(kept_.size()).c_str(), 1);
      ::setenv("LISTEN_FDNAMES", names.c_str(), 1);
    }
    std::vector<char*> words;
    std::string name = "gpuwatchd";
    words.push_back(name.data());
    for (const std::string& word : options_.arguments) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    ::execv(options_.program.c_str(), words.data());
    ::_exit(127);
  }

  // The child's status.
  int follow() {
    for (;;) {
      pollfd entries[2] = {{signals_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}};
      (void)::poll(entries, 2, -1);
      while (receive()) {
      }
      signalfd_siginfo info{};
      while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) stopping_ = true;
        if (info.ssi_signo != SIGCHLD) ::kill(child_, static_cast<int>(info.ssi_signo));
      }
      int status = 0;
      if (::waitpid(child_, &status, WNOHANG) == child_) {
        while (receive()) {
        }
        return status;
      }
    }
  }

  bool wait_or_stop(std::chrono::milliseconds pause) {
    const auto end = Clock::now() + pause;
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
      if (left <= 0) return false;
      pollfd entry{signals_.get(), POLLIN, 0};
      (void)::poll(&entry, 1, static_cast<int>(left));
      signalfd_siginfo info{};
      while (::read(signals_.get(), &info, sizeof info) == sizeof info)
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) return true;
    }
  }

  bool receive() {
    char text[4096];
    iovec piece{text, sizeof text - 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(kKeptMax * sizeof(int))];
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0) return false;
    std::vector<base::Fd> fds;
    pid_t sender = -1;
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
      if (part->cmsg_level != SOL_SOCKET) continue;
      if (part->cmsg_type == SCM_CREDENTIALS) {
        ucred credentials{};
        std::memcpy(&credentials, CMSG_DATA(part), sizeof credentials);
        sender = credentials.pid;
      } else if (part->cmsg_type == SCM_RIGHTS) {
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
          int fd = -1;
          std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
          fds.emplace_back(fd);
        }
      }
    }
    if (sender != child_) return true;
    take(std::string_view(text, static_cast<std::size_t>(got)), std::move(fds));
    return true;
  }

  void take(std::string_view text, std::vector<base::Fd> fds) {
    bool store = false, remove = false;
    std::string name;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view line = text.substr(at, end - at);
      if (line == "READY=1") was_ready_ = true;
      if (line == "FDSTORE=1") store = true;
      if (line == "FDSTOREREMOVE=1") remove = true;
      if (line.starts_with("FDNAME=")) name = line.substr(7);
      at = end + 1;
    }
    if (name.empty() || name.size() > 64 || name.find(':') != std::string::npos) return;
    if (remove) kept_.erase(name);
    if (store && fds.size() == 1 && (kept_.size() < kKeptMax || kept_.contains(name)))
      kept_[name] = std::move(fds.front());
  }

  const SuperviseOptions& options_;
  sigset_t mask_{};
  base::Fd signals_, socket_;
  std::string name_;
  std::map<std::string, base::Fd> kept_;
  pid_t child_ = -1;
  bool was_ready_ = false, stopping_ = false;
};

}  // namespace

Result<int> supervise(const SuperviseOptions& options) {
  return Supervisor(options).run();
}

}  // namespace gpuwatch::daemon
