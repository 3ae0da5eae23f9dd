// SPDX-License-Identifier: Apache-2.0
#include "attribute/names_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "attribute/container_words.h"
#include "attribute/names_json.h"
#include "base/fd.h"

namespace gpuwatch::attribute {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

// Until the socket is ready, the time is up or somebody cancels.
Status wait_for(int fd, short events, const Patience& patience) {
  for (;;) {
    const int left = patience.left_ms();
    if (left == 0) return Error(Code::kLimit, "no answer in time", ETIMEDOUT);
    pollfd polled[2] = {{fd, events, 0}, {patience.cancel_fd, POLLIN, 0}};
    const int ready = ::poll(polled, patience.cancel_fd < 0 ? 1 : 2, left);
    if (ready < 0 && errno != EINTR) return Error::from_errno("poll");
    if (ready > 0 && polled[1].revents != 0 && patience.cancel_fd >= 0)
      return Error(Code::kLimit, "cancelled", ECANCELED);
    if (ready > 0 && polled[0].revents != 0) return {};
  }
}

Result<base::Fd> connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Error(Code::kBadInput, path + ": too long for a socket");
  std::memcpy(address.sun_path, path.data(), path.size());
  base::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Error::from_errno("socket");
  // Does not block: a full backlog is EAGAIN at once.
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return Error::from_errno(path);
  return fd;
}

class SocketSource : public NameSource {
 public:
  SocketSource(std::string runtime, std::string path) : runtime_(std::move(runtime)), path_(std::move(path)) {}

  bool answers(const NameQuery& query) const override {
    const bool engine = query.runtime == runtime_ || (runtime_ == "docker" && query.runtime == "ecs");
    return engine && words::is_id64(query.container_id);
  }

  Result<std::optional<NameAnswer>> lookup(const NameQuery& query, const Patience& patience) override {
    auto response = exchange(
        path_, "GET /containers/" + query.container_id + "/json HTTP/1.0\r\nHost: localhost\r\n\r\n", patience);
    if (!response) {
      if (response.error().code() == Code::kNotFound) return std::optional<NameAnswer>();
      return std::move(response.error());
    }
    const auto body = http_body(*response);
    return body ? names_from_engine(*body) : std::optional<NameAnswer>();
  }

 private:
  std::string runtime_;
  std::string path_;
};

}  // namespace

Result<std::string> exchange(const std::string& socket_path, std::string_view request, const Patience& patience) {
  auto fd = connect_to(socket_path);
  if (!fd) return std::move(fd.error());
  while (!request.empty()) {
    if (Status status = wait_for(fd->get(), POLLOUT, patience); !status.ok()) return std::move(status.error());
    const ssize_t sent = ::send(fd->get(), request.data(), request.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR && errno != EAGAIN) return Error::from_errno(socket_path);
    if (sent > 0) request.remove_prefix(static_cast<std::size_t>(sent));
  }
  std::string response;
  for (;;) {
    if (Status status = wait_for(fd->get(), POLLIN, patience); !status.ok()) return std::move(status.error());
    char chunk[16384];
    const ssize_t got = ::recv(fd->get(), chunk, sizeof chunk, 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return Error::from_errno(socket_path);
    if (got == 0) return response;
    response.append(chunk, static_cast<std::size_t>(got));
    if (response.size() > kJsonBytesMax) return Error(Code::kLimit, socket_path + ": the answer is too big");
  }
}

std::optional<std::string_view> http_body(std::string_view response) {
  const std::size_t end = response.find("\r\n\r\n");
  if (end == std::string_view::npos || !response.starts_with("HTTP/1.")) return std::nullopt;
  if (response.size() < 12 || response.substr(8, 4) != " 200") return std::nullopt;
  return response.substr(end + 4);
}

std::unique_ptr<NameSource> make_socket_source(std::string runtime, std::string socket_path) {
  return std::make_unique<SocketSource>(std::move(runtime), std::move(socket_path));
}

}  // namespace gpuwatch::attribute
