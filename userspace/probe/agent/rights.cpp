// SPDX-License-Identifier: Apache-2.0
#include "probe/agent/rights.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "probe/agent/confine.h"

namespace gpuwatch::probe::agent {

namespace {

// In front of what is told; a descriptor comes with it when all is well.
struct Head {
  std::uint32_t outcome = 0;
  std::uint32_t bytes = 0;
  char text[512] = {};
};

bool send_told(int channel, const Told& told) {
  Head head;
  head.outcome = static_cast<std::uint32_t>(told.failure.outcome);
  std::snprintf(head.text, sizeof head.text, "%s", told.failure.text.c_str());
  head.bytes = told.failure ? 0 : static_cast<std::uint32_t>(told.bytes.size());
  iovec parts[] = {{&head, sizeof head}, {const_cast<std::uint8_t*>(told.bytes.data()), head.bytes}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  const int fd = told.failure ? -1 : told.fd.get();
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
  ssize_t sent = 0;
  do sent = ::sendmsg(channel, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(sizeof head + head.bytes);
}

bool receive_told(int channel, Told& told) {
  Head head;
  told.bytes.resize(kToldMax);
  iovec parts[] = {{&head, sizeof head}, {told.bytes.data(), told.bytes.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = 0;
  do got = ::recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (const cmsghdr* rights = CMSG_FIRSTHDR(&message); rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
    int taken = -1;
    std::memcpy(&taken, CMSG_DATA(rights), sizeof taken);
    told.fd = base::Fd(taken);
  }
  if (got < static_cast<ssize_t>(sizeof head) || got != static_cast<ssize_t>(sizeof head + head.bytes)) return false;
  told.bytes.resize(head.bytes);
  head.text[sizeof head.text - 1] = 0;
  told.failure = {static_cast<Outcome>(head.outcome), head.text};
  return true;
}

// In the parent, until the child has ended. False: it asked for what it never does.
bool serve_child(int channel, const Serve& serve) {
  for (;;) {
    // Descriptors that come with it are not taken. One byte more than there may be tells what is too long.
    std::uint8_t request[kAskMax + 1];
    const ssize_t got = ::recv(channel, request, sizeof request, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    Told told;
    if (got > static_cast<ssize_t>(kAskMax) || !serve({request, static_cast<std::size_t>(got)}, told) ||
        told.bytes.size() > kToldMax)
      return false;
    if (!send_told(channel, told)) return true;
  }
}

int trouble(const char* what) {
  std::fprintf(stderr, "gpuwatch-probe: %s: %s\n", what, std::strerror(errno));
  return static_cast<int>(Outcome::kTrouble);
}

constexpr std::uint8_t kConnect = 'c';

}  // namespace

Failure Parent::ask(std::span<const std::uint8_t> request, Told& told) {
  told = {};
  if (::send(channel_, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size()) ||
      !receive_told(channel_, told))
    return {Outcome::kTrouble, "the part of gpuwatch-probe that has the rights has ended"};
  return told.failure;
}

int run_without_rights(const Serve& serve, const std::function<int(Parent&)>& work) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return trouble("a socket");
  base::Fd ours(ends[0]);
  base::Fd theirs(ends[1]);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return trouble("a child for what is parsed");
  if (child == 0) {
    ours = base::Fd();
    int code = static_cast<int>(Outcome::kTrouble);
    if (!confine())
      code = trouble("rights cannot be dropped");
    else
      try {
        Parent parent(theirs.get());
        code = work(parent);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "gpuwatch-probe: %s\n", error.what());
      }
    std::fflush(nullptr);
    ::_exit(code);
  }
  theirs = base::Fd();
  const bool in_order = serve_child(ours.get(), serve);
  ours.reset();  // who still waits for an answer gets none
  if (!in_order) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_order) {
    std::fprintf(stderr,
                 "gpuwatch-probe: the part that parses asked for what it never does and was ended: what the process "
                 "chose may be made for that\n");
    return static_cast<int>(Outcome::kTrouble);
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  std::fprintf(stderr,
               "gpuwatch-probe: the part that parses was ended by signal %d: an image, records or an answer of the "
               "process may be made for that\n",
               WTERMSIG(status));
  return static_cast<int>(Outcome::kTrouble);
}

int run_without_rights(const Connect& connect, const std::function<int(const Connect&)>& work) {
  // One byte comes with a connection: too many wait there. That is no failure to the parent, which is why its text
  // comes as bytes.
  const Serve serve = [&](std::span<const std::uint8_t> request, Told& told) {
    if (request.size() != 1 || request[0] != kConnect) return false;
    bool full = false;
    Failure failure = connect(told.fd, full);
    if (!full) {
      told.failure = std::move(failure);
      return true;
    }
    told.fd = base::Fd();
    told.bytes.assign(failure.text.begin(), failure.text.end());
    return true;
  };
  return run_without_rights(serve, [&](Parent& parent) {
    return work([&](base::Fd& fd, bool& full) -> Failure {
      Told told;
      const std::uint8_t request[] = {kConnect};
      if (Failure failure = parent.ask(request, told)) return failure;
      full = !told.fd.valid();
      if (full) return {Outcome::kNoAnswer, std::string(told.bytes.begin(), told.bytes.end())};
      fd = std::move(told.fd);
      return {};
    });
  });
}

}  // namespace gpuwatch::probe::agent
