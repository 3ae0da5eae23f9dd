// SPDX-License-Identifier: Apache-2.0
#include "probe/agent/rights.h"

#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gpuwatch::probe::agent {

namespace {

constexpr uid_t kNobody = 65534;

// The parent's answer; a descriptor comes with it when it is good.
struct Answer {
  std::uint32_t outcome = 0;
  std::uint32_t full = 0;
  char text[512] = {};
};

// False: something is kept, so nothing may be parsed.
bool drop_rights() {
  // Root without the right to become somebody else keeps its name and no capability: gpuwatchd starts the probe so.
  if (::geteuid() == 0 &&
      (::setgroups(0, nullptr) != 0 || ::setresgid(kNobody, kNobody, kNobody) != 0 ||
       ::setresuid(kNobody, kNobody, kNobody) != 0) &&
      errno != EPERM)
    return false;
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  return ::syscall(SYS_capset, &head, none) == 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

bool send_answer(int channel, const Answer& answer, int fd) {
  iovec part{const_cast<Answer*>(&answer), sizeof answer};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  return ::sendmsg(channel, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof answer);
}

bool receive_answer(int channel, Answer& answer, base::Fd& fd) {
  iovec part{&answer, sizeof answer};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = 0;
  do got = ::recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (const cmsghdr* rights = CMSG_FIRSTHDR(&message); rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
    int taken = -1;
    std::memcpy(&taken, CMSG_DATA(rights), sizeof taken);
    fd = base::Fd(taken);
  }
  return got == static_cast<ssize_t>(sizeof answer);
}

// In the parent, until the child has ended.
void serve(int channel, const Connect& connect) {
  for (;;) {
    char request = 0;
    const ssize_t got = ::recv(channel, &request, sizeof request, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof request) return;
    base::Fd fd;
    bool full = false;
    const Failure failure = connect(fd, full);
    Answer answer;
    answer.outcome = static_cast<std::uint32_t>(failure.outcome);
    answer.full = full ? 1 : 0;
    std::snprintf(answer.text, sizeof answer.text, "%s", failure.text.c_str());
    if (!send_answer(channel, answer, failure ? -1 : fd.get())) return;
  }
}

Failure ask_parent(int channel, base::Fd& fd, bool& full) {
  Answer answer;
  if (::send(channel, "c", 1, MSG_NOSIGNAL) != 1 || !receive_answer(channel, answer, fd))
    return {Outcome::kTrouble, "the part of gpuwatch-probe that connects has ended"};
  full = answer.full != 0;
  answer.text[sizeof answer.text - 1] = 0;
  if (answer.outcome != 0) return {static_cast<Outcome>(answer.outcome), answer.text};
  return {};
}

int trouble(const char* what) {
  std::fprintf(stderr, "gpuwatch-probe: %s: %s\n", what, std::strerror(errno));
  return static_cast<int>(Outcome::kTrouble);
}

}  // namespace

int run_without_rights(const Connect& connect, const std::function<int(const Connect&)>& work) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return trouble("a socket");
  base::Fd ours(ends[0]);
  base::Fd theirs(ends[1]);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return trouble("a child for what is parsed");
  if (child == 0) {
    ours = base::Fd();
    // A change of identity clears the wish to end with the parent, so it comes after; a parent that ended before
    // is told by the socket.
    const bool dropped = drop_rights();
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    int code = static_cast<int>(Outcome::kTrouble);
    if (!dropped)
      code = trouble("rights cannot be dropped");
    else
      try {
        code = work([&](base::Fd& fd, bool& full) { return ask_parent(theirs.get(), fd, full); });
      } catch (const std::exception& error) {
        std::fprintf(stderr, "gpuwatch-probe: %s\n", error.what());
      }
    std::fflush(nullptr);
    ::_exit(code);
  }
  theirs = base::Fd();
  serve(ours.get(), connect);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  std::fprintf(stderr,
               "gpuwatch-probe: the part that parses was ended by signal %d: an image or an answer of the process "
               "may be made for that\n",
               WTERMSIG(status));
  return static_cast<int>(Outcome::kTrouble);
}

}  // namespace gpuwatch::probe::agent
