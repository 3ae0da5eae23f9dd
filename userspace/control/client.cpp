// SPDX-License-Identifier: Apache-2.0
#include "control/client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "base/fd.h"

namespace gpuwatch::control {

using base::Code;
using base::Error;
using base::Result;
using base::Status;
using Clock = std::chrono::steady_clock;

namespace {

Status wait_for(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return Error(Code::kIo, "gpuwatchd does not answer: see its log", ETIMEDOUT);
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(left));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return Error::from_errno("poll");
  }
}

}  // namespace

Result<std::string> ask(const Request& request, const std::string& socket, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.empty() || socket.size() >= sizeof address.sun_path)
    return Error(Code::kBadInput, "the control socket's path has no or too many characters");
  std::memcpy(address.sun_path, socket.data(), socket.size());
  const base::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Error::from_errno("control socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED)
      return Error(Code::kNotFound, socket + ": gpuwatchd does not run; start it with systemctl start gpuwatchd",
                   errno);
    if (errno == EACCES)
      return Error(Code::kPermission, socket + ": permission denied; only root and members of group gpuwatch may ask",
                   errno);
    return Error::from_errno(socket);
  }
  const std::string line = format_request(request) + "\n";
  for (std::size_t at = 0; at < line.size();) {
    const ssize_t sent = ::send(fd.get(), line.data() + at, line.size() - at, MSG_NOSIGNAL);
    if (sent >= 0) {
      at += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN) {
      if (Status ready = wait_for(fd.get(), POLLOUT, deadline); !ready.ok()) return std::move(ready.error());
    } else if (errno != EINTR) {
      return Error::from_errno(socket);
    }
  }
  std::string answer;
  char piece[16384];
  while (answer.find('\n', answer.size() > sizeof piece ? answer.size() - sizeof piece : 0) == std::string::npos) {
    if (answer.size() > kAnswerMax) return Error(Code::kLimit, "the daemon's answer is too long");
    if (Status ready = wait_for(fd.get(), POLLIN, deadline); !ready.ok()) return std::move(ready.error());
    const ssize_t got = ::recv(fd.get(), piece, sizeof piece, 0);
    if (got == 0) return Error(Code::kTruncated, "gpuwatchd closed the control socket before its answer was whole");
    if (got < 0 && errno != EINTR && errno != EAGAIN) return Error::from_errno(socket);
    if (got > 0) answer.append(piece, static_cast<std::size_t>(got));
  }
  answer.resize(answer.find('\n'));
  return parse_answer(answer, request.verb);
}

}  // namespace gpuwatch::control
