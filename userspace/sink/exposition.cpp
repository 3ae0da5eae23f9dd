// SPDX-License-Identifier: Apache-2.0
// See exposition.h. Not built on the HTTP library, which bounds neither the
// number of a request's headers nor the time of a connection.
#include "sink/exposition.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <vector>

#include "base/escape.h"
#include "base/io.h"

namespace gpuwatch::sink {

namespace {

using base::Error;
using base::Fd;
using base::Status;
using Clock = std::chrono::steady_clock;

std::string reply(std::string_view status, std::string_view type, std::string_view body, bool head_only = false) {
  std::string out = "HTTP/1.1 ";
  out += status;
  out += "\r\nContent-Type: ";
  out += type;
  out += "\r\nContent-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n";
  if (!head_only) out += body;
  return out;
}

std::string refusal(std::string_view status) {
  return reply(status, "text/plain; charset=utf-8", std::string(status) + "\n");
}

// The address as a socket address; its length, 0 where it is none.
socklen_t address_of(const ExpositionOptions& options, sockaddr_storage& out, bool& loopback) {
  auto& v4 = reinterpret_cast<sockaddr_in&>(out);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(out);
  if (::inet_pton(AF_INET, options.address.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(options.port);
    loopback = (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
    return sizeof v4;
  }
  if (::inet_pton(AF_INET6, options.address.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(options.port);
    loopback = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) != 0;
    return sizeof v6;
  }
  return 0;
}

}  // namespace

Status parse_address(const std::string& text, ExpositionOptions& options) {
  const std::size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (host.empty() || port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos ||
      std::stoul(port) > 65535)
    return Error(base::Code::kBadInput,
                 "\"" + base::escaped(text) + "\" is no ADDRESS:PORT; write it as 127.0.0.1:9847");
  options.address = host;
  options.port = static_cast<std::uint16_t>(std::stoul(port));
  return {};
}

Request parse_request(std::string_view request) {
  const std::string_view line = request.substr(0, request.find_first_of("\r\n"));
  const std::size_t first = line.find(' ');
  const std::size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos || !line.substr(second + 1).starts_with("HTTP/1.")) return {};
  const std::string_view method = line.substr(0, first);
  std::string_view path = line.substr(first + 1, second - first - 1);
  path = path.substr(0, path.find('?'));
  if (method != "GET" && method != "HEAD") return {Asked::kMethod};
  return {path == "/metrics" ? Asked::kMetrics : path == "/" ? Asked::kRoot : Asked::kOther, method == "HEAD"};
}

struct Exposition::Peer {
  Fd fd;
  Clock::time_point until;
  std::string request;
  std::string answer;
  std::size_t sent = 0;
};

Exposition::Exposition(const ExpositionOptions& options, std::function<std::string()> page)
    : options_(options), page_(std::move(page)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

base::Result<std::unique_ptr<Exposition>> Exposition::open(const ExpositionOptions& options,
                                                           std::function<std::string()> page) {
  const std::string where = "metrics endpoint " + options.address + " port " + std::to_string(options.port);
  sockaddr_storage address{};
  bool loopback = false;
  const socklen_t length = address_of(options, address, loopback);
  if (length == 0) return Error(base::Code::kBadInput, where + ": the address must be one of IPv4 or IPv6");
  if (!loopback && !options.anywhere)
    return Error(base::Code::kPermission,
                 where + ": is not 127.0.0.1 or ::1; others would read it, so say so expressly");
  std::unique_ptr<Exposition> made(new Exposition(options, std::move(page)));
  made->listener_ = Fd(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (!made->listener_.valid() || !made->wake_.valid()) return Error::from_errno(where);
  ::setsockopt(made->listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.ss_family == AF_INET6) ::setsockopt(made->listener_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(made->listener_.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(made->listener_.get(), 16) != 0)
    return Error::from_errno(where);
  socklen_t bound = sizeof address;
  ::getsockname(made->listener_.get(), reinterpret_cast<sockaddr*>(&address), &bound);
  made->port_ = ntohs(address.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(address).sin_port
                                                   : reinterpret_cast<sockaddr_in6&>(address).sin6_port);
  made->thread_ = std::thread([self = made.get()] {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    ::pthread_setname_np(::pthread_self(), "metrics");
    self->run();
  });
  return made;
}

Exposition::~Exposition() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

void Exposition::accept_one(std::vector<Peer>& peers) {
  Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) return;
  if (peers.size() >= options_.connections) {
    ++refused_;
    return;
  }
  peers.push_back({std::move(fd), Clock::now() + std::chrono::milliseconds(options_.limit_ms), {}, {}, 0});
}

std::string Exposition::answer(std::string_view request) {
  const Request parsed = parse_request(request);
  switch (parsed.asked) {
    case Asked::kNonsense:
      ++refused_;
      return refusal("400 Bad Request");
    case Asked::kMethod:
      return refusal("405 Method Not Allowed");
    case Asked::kOther:
      return refusal("404 Not Found");
    case Asked::kRoot:
      return reply("200 OK", "text/plain; charset=utf-8", "gpuwatch: see /metrics\n", parsed.head_only);
    case Asked::kMetrics:
      break;
  }
  ++scrapes_;
  try {
    return reply("200 OK", "text/plain; version=0.0.4; charset=utf-8", page_(), parsed.head_only);
  } catch (...) {
    return refusal("500 Internal Server Error");
  }
}

bool Exposition::serve(Peer& peer) {
  if (peer.answer.empty()) {
    char bytes[2048];
    const ssize_t n = ::recv(peer.fd.get(), bytes, sizeof bytes, 0);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    peer.request.append(bytes, static_cast<std::size_t>(n));
    const bool whole = peer.request.find("\r\n\r\n") != std::string::npos;
    if (whole) {
      peer.answer = answer(peer.request);
    } else if (peer.request.size() > options_.request_bytes) {
      ++refused_;
      peer.answer = refusal("431 Request Header Fields Too Large");
    } else {
      return true;
    }
  }
  const ssize_t n = ::send(peer.fd.get(), peer.answer.data() + peer.sent, peer.answer.size() - peer.sent, MSG_NOSIGNAL);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  peer.sent += static_cast<std::size_t>(n);
  if (peer.sent < peer.answer.size()) return true;
  ::shutdown(peer.fd.get(), SHUT_WR);
  return false;
}

void Exposition::run() {
  std::vector<Peer> peers;
  std::vector<pollfd> wait;
  while (true) {
    wait.assign({{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}});
    auto until = Clock::time_point::max();
    for (const Peer& peer : peers) {
      wait.push_back({peer.fd.get(), static_cast<short>(peer.answer.empty() ? POLLIN : POLLOUT), 0});
      until = std::min(until, peer.until);
    }
    int timeout = -1;
    if (!peers.empty())
      timeout = static_cast<int>(std::max<long long>(
          0, std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count() + 1));
    if (::poll(wait.data(), wait.size(), timeout) < 0 && errno != EINTR) return;
    if (wait[0].revents != 0) return;
    const auto now = Clock::now();
    std::vector<Peer> kept;
    for (std::size_t i = 0; i < peers.size(); ++i) {
      bool keep = wait[i + 2].revents == 0 || serve(peers[i]);
      if (keep && peers[i].until <= now) {
        ++refused_;
        keep = false;
      }
      if (keep) kept.push_back(std::move(peers[i]));
    }
    peers = std::move(kept);
    if (wait[1].revents != 0) accept_one(peers);
  }
}

Status write_textfile(const std::string& path, std::string_view text) {
  // The collector reads only *.prom: a name of our own beside it is not read.
  const std::string beside = path + "." + std::to_string(::getpid()) + ".tmp";
  ::unlink(beside.c_str());
  Fd fd(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd.valid()) return Error::from_errno(beside);
  Status status = base::write_all(fd.get(), text);
  if (status.ok() && ::fchmod(fd.get(), 0644) != 0) status = Error::from_errno(beside);
  if (status.ok() && ::rename(beside.c_str(), path.c_str()) != 0) status = Error::from_errno(path);
  if (!status.ok()) ::unlink(beside.c_str());
  return status;
}

}  // namespace gpuwatch::sink
