// SPDX-License-Identifier: Apache-2.0
// Items, and a loopback server that says what it is told to: for tests of sinks.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "sink/sink.h"

namespace gpuwatch::sink::test {

inline ItemPtr item_of(std::string json, ItemKind kind = ItemKind::kAlert) {
  auto item = std::make_shared<Item>();
  item->kind = kind;
  item->json = std::move(json);
  item->text = "text of " + item->json;
  item->rule = "rule-1";
  item->alert_id = "id-1";
  item->severity = Severity::kCritical;
  return item;
}

// Takes connections one by one, keeps what each sent up to the end of its body,
// and gives the n-th one the n-th answer; the last one again when there are no
// more. An empty answer: says nothing until the peer goes away.
class Server {
 public:
  explicit Server(std::vector<std::string> answers) : answers_(std::move(answers)) {
    listener_ = base::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        ::listen(listener_.get(), 8) != 0)
      std::abort();
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~Server() {
    ended_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::string url(const std::string& target = "/hook") const {
    return "http://127.0.0.1:" + std::to_string(port_) + target;
  }
  std::vector<std::string> requests() {
    std::unique_lock lock(mutex_);
    return requests_;
  }

 private:
  static bool whole(const std::string& request) {
    const std::size_t head = request.find("\r\n\r\n");
    const std::size_t at = request.find("Content-Length: ");
    return head != std::string::npos && at != std::string::npos &&
           request.size() >= head + 4 + std::stoul(request.substr(at + 16));
  }
  void run() {
    while (!ended_) {
      base::Fd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer.valid()) continue;
      std::string request;
      char bytes[4096];
      ssize_t n = 1;
      while (!whole(request) && (n = ::recv(peer.get(), bytes, sizeof bytes, 0)) > 0)
        request.append(bytes, static_cast<std::size_t>(n));
      std::string answer;
      {
        std::unique_lock lock(mutex_);
        answer = answers_[std::min(requests_.size(), answers_.size() - 1)];
        requests_.push_back(request);
      }
      if (answer.empty()) {
        while (::recv(peer.get(), bytes, sizeof bytes, 0) > 0) {
        }
      } else if (answer == "drip") {
        while (!ended_ && ::send(peer.get(), "x", 1, MSG_NOSIGNAL) == 1) ::poll(nullptr, 0, 5);
      } else {
        ::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      }
    }
  }

  std::vector<std::string> answers_;
  base::Fd listener_;
  std::uint16_t port_ = 0;
  std::atomic<bool> ended_ = false;
  std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace gpuwatch::sink::test
