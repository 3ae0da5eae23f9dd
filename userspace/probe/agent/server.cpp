// SPDX-License-Identifier: Apache-2.0
#include "probe/agent/server.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"

namespace gpuwatch::probe::agent {

namespace {

int left_of(std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::max<long>(0, left));
}

}  // namespace

void Server::run() {
  for (;;) {
    pollfd entries[2] = {{listener_, POLLIN, 0}, {wake_, POLLIN, 0}};
    if (::poll(entries, 2, -1) < 0) continue;
    if (entries[1].revents != 0) return;
    if ((entries[0].revents & (POLLERR | POLLNVAL)) != 0) return;
    const base::Fd fd(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      // Out of descriptors: the connection waits until there is one.
      pollfd stop{wake_, POLLIN, 0};
      if (::poll(&stop, 1, 100) > 0) return;
      continue;
    }
    serve(fd.get());
    service_.end();
  }
}

// Whoever comes while another is served is told so at once.
void Server::turn_away() {
  const base::Fd fd(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) return;
  const Frame frame = make(Refusal{Reason::kBusy, "another request is being answered; try again"});
  // Fits into any socket's buffer. What the peer sent is left unread.
  (void)::send(fd.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
}

Server::Got Server::receive(int fd, std::span<std::uint8_t> out, Clock::time_point deadline) {
  std::size_t have = 0;
  while (have < out.size()) {
    const ssize_t got = ::recv(fd, out.data() + have, out.size() - have, 0);
    if (got > 0) {
      have += static_cast<std::size_t>(got);
      continue;
    }
    if (got == 0) return Got::kEnd;
    if (errno != EAGAIN && errno != EINTR) return Got::kEnd;
    const int left = left_of(std::min(deadline, connection_end_));
    if (left == 0) return Got::kEnd;
    pollfd entries[3] = {{fd, POLLIN, 0}, {wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
    if (::poll(entries, 3, left) <= 0) continue;
    if (entries[1].revents != 0) return Got::kStop;
    // Whoever comes right after this peer has gone is not turned away for it.
    if (entries[0].revents == 0 && entries[2].revents != 0) turn_away();
  }
  return Got::kAll;
}

bool Server::send(int fd, const Frame& frame) {
  const Clock::time_point deadline = Clock::now() + times_.frame;
  std::size_t sent = 0;
  while (sent < frame.size()) {
    const ssize_t put = ::send(fd, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
    if (put > 0) {
      sent += static_cast<std::size_t>(put);
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return false;
    const int left = left_of(std::min(deadline, connection_end_));
    if (left == 0) return false;
    pollfd entries[2] = {{fd, POLLOUT, 0}, {wake_, POLLIN, 0}};
    if (::poll(entries, 2, left) > 0 && entries[1].revents != 0) return false;
  }
  return true;
}

Frame Server::answer(const Head& head, identify::Bytes payload) {
  switch (static_cast<Type>(head.type)) {
    case Type::kAskFacts:
      if (payload.empty()) return service_.facts();
      break;
    case Type::kAskRead:
      if (const auto ask = parse_ask_read(payload)) return service_.read(*ask);
      break;
    case Type::kAskHash:
      if (const auto ask = parse_ask_hash(payload)) return service_.hash(*ask);
      break;
    case Type::kAskSurvey:
      if (const auto ask = parse_ask_survey(payload)) return service_.survey(*ask);
      break;
    default:
      break;
  }
  return make(Refusal{Reason::kMalformed, "the request has no form that the agent knows"});
}

void Server::serve(int fd) {
  connection_end_ = Clock::now() + times_.connection;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || size != sizeof peer ||
      !allowed(peer.uid, ::geteuid())) {
    (void)send(fd, make(Refusal{Reason::kDenied, "only root and the process's own user may ask"}));
    return;
  }
  for (;;) {
    std::uint8_t raw[kHeadBytes];
    if (receive(fd, raw, Clock::now() + times_.frame) != Got::kAll) return;
    const auto head = parse_head(raw, kRequestMax);
    if (!head) {
      (void)send(fd, make(Refusal{Reason::kMalformed, "the request has no form that the agent knows"}));
      return;
    }
    if (head->version != kVersion) {
      (void)send(fd, make(Refusal{Reason::kVersion, "the agent speaks version " + std::to_string(kVersion)}));
      return;
    }
    std::vector<std::uint8_t> payload(head->bytes);
    if (receive(fd, payload, Clock::now() + times_.frame) != Got::kAll) return;
    if (!send(fd, answer(*head, payload))) return;
  }
}

}  // namespace gpuwatch::probe::agent
