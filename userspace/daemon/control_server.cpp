// SPDX-License-Identifier: Apache-2.0
#include "daemon/control_server.h"

#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

namespace gpuwatch::daemon {

using base::Error;
using base::Result;
using Clock = std::chrono::steady_clock;

struct ControlServer::Peer {
  base::Fd fd;
  Clock::time_point deadline;
  std::string in, out;
  std::size_t sent = 0;
  bool answered = false;
};

Result<std::unique_ptr<ControlServer>> ControlServer::open(ControlOptions options) {
  std::unique_ptr<ControlServer> server(new ControlServer(std::move(options)));
  const std::string& path = server->options_.path;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.front() != '/' || path.size() >= sizeof address.sun_path)
    return Error(base::Code::kBadInput, "control.path: wants an absolute path of at most 107 characters");
  std::memcpy(address.sun_path, path.data(), path.size());
  server->listener_ = base::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  server->wake_ = base::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!server->listener_.valid() || !server->wake_.valid()) return Error::from_errno("control socket");
  // A socket of a daemon that was killed is in the way; one that answers is a
  // second daemon's.
  if (::connect(server->listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
    return Error(base::Code::kLimit, path + ": another gpuwatchd answers there; stop it first");
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode))
      return Error(base::Code::kBadInput, path + ": is there, and no socket; remove it or set control.path");
    ::unlink(path.c_str());
  }
  server->listener_ = base::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Nobody can connect between bind and chmod: it is born without rights.
  const mode_t old = ::umask(0177);
  const int bound = ::bind(server->listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  ::umask(old);
  if (bound != 0) {
    if (errno == ENOENT)
      return Error(base::Code::kNotFound, path + ": its directory does not exist; make it, or start by systemd");
    return Error::from_errno(path);
  }
  server->bound_ = true;
  if (!server->options_.group.empty())
    if (const group* entry = ::getgrnam(server->options_.group.c_str())) server->group_ = entry->gr_gid;
  if (server->group_ >= 0) {
    if (::chown(path.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(server->group_)) == 0)
      ::chmod(path.c_str(), 0660);
    else
      server->group_ = -1;
  }
  if (::listen(server->listener_.get(), 64) != 0) return Error::from_errno(path);
  return server;
}

ControlServer::~ControlServer() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
    thread_.join();
  }
  if (bound_) ::unlink(options_.path.c_str());
}

void ControlServer::serve(Answer answer) {
  answer_ = std::move(answer);
  thread_ = std::thread([this] { run(); });
}

bool ControlServer::may_ask(int fd) const {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  if (peer.uid == 0 || peer.uid == ::geteuid()) return true;
  if (group_ < 0) return false;
  const auto wanted = static_cast<gid_t>(group_);
  if (peer.gid == wanted) return true;
  // Groups as they were when the peer connected.
  gid_t groups[256];
  length = sizeof groups;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &length) != 0) return false;
  return std::find(groups, groups + length / sizeof(gid_t), wanted) != groups + length / sizeof(gid_t);
}

bool ControlServer::work(Peer& peer) {
  if (!peer.answered) {
    char piece[4096];
    const ssize_t got = ::recv(peer.fd.get(), piece, sizeof piece, 0);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    peer.in.append(piece, static_cast<std::size_t>(got));
    const std::size_t end = peer.in.find('\n');
    if (end == std::string::npos && peer.in.size() <= control::kRequestMax) return true;
    peer.answered = true;
    auto request = control::parse_request(std::string_view(peer.in).substr(0, end));
    peer.out = (request ? answer_(*request) : control::format_refusal(request.error().message())) + "\n";
    peer.in.clear();
  }
  while (peer.sent < peer.out.size()) {
    const ssize_t sent = ::send(peer.fd.get(), peer.out.data() + peer.sent, peer.out.size() - peer.sent, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    peer.sent += static_cast<std::size_t>(sent);
  }
  return false;
}

void ControlServer::run() {
  std::vector<std::unique_ptr<Peer>> peers;
  for (;;) {
    std::vector<pollfd> entries;
    entries.push_back({wake_.get(), POLLIN, 0});
    entries.push_back({listener_.get(), static_cast<short>(peers.size() < options_.connections ? POLLIN : 0), 0});
    auto next = Clock::now() + std::chrono::seconds(60);
    for (const auto& peer : peers) {
      entries.push_back({peer->fd.get(), static_cast<short>(peer->answered ? POLLOUT : POLLIN), 0});
      next = std::min(next, peer->deadline);
    }
    const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now()).count();
    (void)::poll(entries.data(), entries.size(), static_cast<int>(std::max<std::int64_t>(wait, 0) + 1));
    if ((entries[0].revents & POLLIN) != 0) return;
    const auto now = Clock::now();
    std::vector<std::unique_ptr<Peer>> left;
    for (std::size_t i = 0; i < peers.size(); ++i) {
      const bool ready = entries[i + 2].revents != 0;
      if (now < peers[i]->deadline && (!ready || work(*peers[i]))) left.push_back(std::move(peers[i]));
    }
    peers = std::move(left);
    if ((entries[1].revents & POLLIN) == 0) continue;
    auto peer = std::make_unique<Peer>();
    peer->fd = base::Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!peer->fd.valid()) continue;
    peer->deadline = now + std::chrono::milliseconds(options_.limit_ms);
    if (!may_ask(peer->fd.get())) {
      peer->answered = true;
      peer->out = control::format_refusal("not permitted: only root and members of the group may ask") + "\n";
    }
    peers.push_back(std::move(peer));
  }
}

}  // namespace gpuwatch::daemon
