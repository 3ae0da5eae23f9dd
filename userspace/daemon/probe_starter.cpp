// SPDX-License-Identifier: Apache-2.0
#include "daemon/probe_starter.h"

#include <cap-ng.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "base/io.h"

namespace gpuwatch::daemon {

using base::Code;
using base::Error;
using base::Fd;
using base::Result;
using base::Status;

namespace {

constexpr int kNice = 10;
constexpr int kNotStarted = 127;

// The user and group that the process acts as. "Uid:\treal\teffective\t..."
bool ids_of(std::uint32_t pid, uid_t& uid, gid_t& gid) {
  auto text = base::read_text_file("/proc/" + std::to_string(pid) + "/status", 1 << 16);
  if (!text) return false;
  const auto second = [&](const char* key, unsigned& out) {
    const std::size_t at = text->find(key);
    unsigned real = 0;
    return at != std::string::npos && std::sscanf(text->c_str() + at + std::strlen(key), "%u %u", &real, &out) == 2;
  };
  return second("\nUid:", uid) && second("\nGid:", gid);
}

// Of those that there are.
void choose(std::initializer_list<unsigned> wanted, unsigned types) {
  capng_get_caps_process();
  bool has[CAP_LAST_CAP + 1] = {};
  for (const unsigned one : wanted) has[one] = capng_have_capability(CAPNG_PERMITTED, one) != 0;
  capng_clear(CAPNG_SELECT_CAPS);
  for (const unsigned one : wanted)
    if (has[one]) (void)capng_update(CAPNG_ADD, static_cast<capng_type_t>(types), one);
}

// The user of the process that is asked, and nothing more than reading it takes.
bool become_user_of(uid_t uid, gid_t gid) {
  choose({CAP_SYS_PTRACE}, CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_INHERITABLE | CAPNG_AMBIENT);
  const int failed = uid == 0 ? capng_apply(CAPNG_SELECT_CAPS)
                              : capng_change_id(static_cast<int>(uid), static_cast<int>(gid), CAPNG_DROP_SUPP_GRP);
  // Without it the memory of the process is not scanned; what is in files is.
  if (failed == 0) (void)capng_apply(CAPNG_SELECT_AMBIENT);
  return failed == 0;
}

// In the child, up to the program. Never returns.
[[noreturn]] void become_probe(const std::string& program, std::uint32_t pid, int output) {
  uid_t uid = 0;
  gid_t gid = 0;
  const std::string process = "--pid=" + std::to_string(pid);
  if (!ids_of(pid, uid, gid)) ::_exit(kNotStarted);
  (void)::setpgid(0, 0);
  (void)::setpriority(PRIO_PROCESS, 0, kNice);
  const rlimit none{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &none);
  // It may take much memory for a moment; where that runs out, it goes before the daemon.
  constexpr std::string_view kFirst = "800";
  const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  (void)!::write(score, kFirst.data(), kFirst.size());
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0 || ::dup2(null, 0) < 0 || ::dup2(output, 1) < 0 || ::dup2(null, 2) < 0 || ::chdir("/") != 0)
    ::_exit(kNotStarted);
  (void)::syscall(SYS_close_range, 3u, ~0u, 0u);
  if (::geteuid() == 0 && !become_user_of(uid, gid)) ::_exit(kNotStarted);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) ::_exit(kNotStarted);
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  char path[] = "PATH=/usr/bin:/bin", language[] = "LANG=C.UTF-8", json[] = "--json";
  char* const arguments[] = {const_cast<char*>(program.c_str()), json, const_cast<char*>(process.c_str()), nullptr};
  char* const environment[] = {path, language, nullptr};
  ::execve(program.c_str(), arguments, environment);
  ::_exit(kNotStarted);
}

class Starter {
 public:
  Starter(int socket, std::string program) : socket_(socket), program_(std::move(program)) {}

  [[noreturn]] void run() {
    for (;;) {
      pollfd entries[2] = {{socket_, POLLIN, 0}, {handle_.get(), POLLIN, 0}};
      if (::poll(entries, 2, -1) < 0 && errno != EINTR) end();
      if (entries[1].revents != 0) reap();
      if (entries[0].revents != 0) take();
    }
  }

 private:
  [[noreturn]] void end() {
    if (child_ > 0) ::kill(-child_, SIGKILL);
    ::_exit(0);
  }

  void answer(int status) {
    const StarterAnswer answer{status};
    if (::send(socket_, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer) end();
  }

  void reap() {
    int status = 0;
    // What it left behind in its group goes with it, before its id is free.
    ::kill(-child_, SIGKILL);
    while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    child_ = -1;
    handle_.reset();
    answer(status);
  }

  void take() {
    StarterRequest request;
    iovec part{&request, sizeof request};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got != sizeof request) end();
    Fd output;
    const cmsghdr* head = CMSG_FIRSTHDR(&message);
    if (head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
        head->cmsg_len == CMSG_LEN(sizeof(int))) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(head), sizeof fd);
      output = Fd(fd);
    }
    if (request.verb == StarterRequest::kKill && child_ > 0) ::kill(-child_, SIGKILL);
    if (request.verb != StarterRequest::kStart) return;
    if (child_ > 0 || !output.valid() || request.pid == 0 || request.pid > INT_MAX) return answer(kNotStarted << 8);
    const pid_t child = ::fork();
    if (child == 0) become_probe(program_, request.pid, output.get());
    if (child < 0) return answer(kNotStarted << 8);
    (void)::setpgid(child, child);
    child_ = child;
    handle_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    if (!handle_.valid()) reap();
  }

  int socket_;
  std::string program_;
  pid_t child_ = -1;
  Fd handle_;
};

}  // namespace

Result<std::string> probe_program(const std::string& configured) {
  std::string program = configured;
  if (program.empty()) {
    char self[PATH_MAX];
    const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) return Error::from_errno("/proc/self/exe");
    const std::string own(self, static_cast<std::size_t>(length));
    const std::string folder = own.substr(0, own.rfind('/'));
    program = folder + "/gpuwatch-probe";
    if (::access(program.c_str(), F_OK) != 0) program = folder.substr(0, folder.rfind('/')) + "/bin/gpuwatch-probe";
  }
  if (!program.starts_with('/')) return Error(Code::kBadInput, "probe.program: " + program + ": give the whole path");
  struct stat info {};
  if (::stat(program.c_str(), &info) != 0) return Error::from_errno("probe.program: " + program);
  if (!S_ISREG(info.st_mode) || ::access(program.c_str(), X_OK) != 0)
    return Error(Code::kBadInput, "probe.program: " + program + ": is no executable file");
  // It is started with the right to trace: a group that may change it would have that.
  if ((info.st_mode & S_IWOTH) != 0 || ((info.st_mode & S_IWGRP) != 0 && info.st_gid != 0) ||
      (info.st_uid != 0 && info.st_uid != ::geteuid()))
    return Error(Code::kPermission,
                 "probe.program: " + program + ": others may change it; let root own it and take their right to write");
  return program;
}

Result<ProbeStarter> ProbeStarter::begin(const std::string& configured) {
  auto program = probe_program(configured);
  if (!program) return std::move(program.error());
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return Error::from_errno("socketpair");
  Fd ours(ends[0]), theirs(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return Error::from_errno("fork");
  if (child > 0) return ProbeStarter(std::move(ours), child);
  // Of the daemon's descriptors it has none but its socket, and no terminal ends it.
  constexpr int kSocket = 3;
  (void)::setsid();
  if (::dup2(theirs.get(), kSocket) < 0) ::_exit(1);
  (void)::syscall(SYS_close_range, static_cast<unsigned>(kSocket + 1), ~0u, 0u);
  (void)::fcntl(kSocket, F_SETFD, FD_CLOEXEC);
  for (const int number : {SIGHUP, SIGUSR1, SIGUSR2}) ::signal(number, SIG_IGN);
  for (const int number : {SIGTERM, SIGINT, SIGPIPE, SIGCHLD}) ::signal(number, SIG_DFL);
  (void)::prctl(PR_SET_NAME, "gpuwatchd-probe");
  if (::geteuid() == 0) {
    choose({CAP_SETUID, CAP_SETGID, CAP_SYS_PTRACE, CAP_KILL}, CAPNG_EFFECTIVE | CAPNG_PERMITTED);
    if (capng_apply(CAPNG_SELECT_CAPS) != 0) ::_exit(1);
  }
  Starter(kSocket, *program).run();
}

ProbeStarter::~ProbeStarter() {
  if (!socket_.valid()) return;
  socket_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Status ProbeStarter::start(std::uint32_t pid, const Fd& output) const {
  StarterRequest request{StarterRequest::kStart, pid};
  iovec part{&request, sizeof request};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = output.get();
  std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
  if (::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) != sizeof request)
    return Error::from_errno("the process that starts gpuwatch-probe");
  return {};
}

void ProbeStarter::kill() const {
  const StarterRequest request{StarterRequest::kKill, 0};
  (void)!::send(socket_.get(), &request, sizeof request, MSG_NOSIGNAL);
}

}  // namespace gpuwatch::daemon
