// SPDX-License-Identifier: Apache-2.0
// A Unix socket in a scratch directory whose connections a test's function
// serves, one after the other, until the test ends.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace gpuwatch::test {

class SocketServer {
 public:
  // `serve` gets a connection; true: close it, false: keep it open, silent.
  explicit SocketServer(std::function<bool(int)> serve) : serve_(std::move(serve)) {
    char name[] = "/tmp/gpuwatch-test-XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ + "/socket";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_, 8) != 0)
      std::abort();
    end_ = ::eventfd(0, EFD_CLOEXEC);
    thread_ = std::thread([this] { run(); });
  }

  ~SocketServer() {
    (void)::eventfd_write(end_, 1);
    thread_.join();
    for (const int fd : kept_) ::close(fd);
    ::close(listener_);
    ::close(end_);
    ::unlink(path_.c_str());
    ::rmdir(folder_.c_str());
  }
  SocketServer(const SocketServer&) = delete;
  SocketServer& operator=(const SocketServer&) = delete;

  const std::string& path() const { return path_; }
  int accepted() const { return accepted_; }
  // True when the test is over; for a `serve` that goes on and on.
  bool over(int ms) const {
    pollfd end{end_, POLLIN, 0};
    return ::poll(&end, 1, ms) != 0;
  }

 private:
  void run() {
    for (;;) {
      pollfd ready[2] = {{listener_, POLLIN, 0}, {end_, POLLIN, 0}};
      if (::poll(ready, 2, -1) < 0) continue;
      if (ready[1].revents != 0) return;
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      ++accepted_;
      if (serve_(fd))
        ::close(fd);
      else
        kept_.push_back(fd);
    }
  }

  std::function<bool(int)> serve_;
  std::string folder_;
  std::string path_;
  int listener_ = -1;
  int end_ = -1;
  std::atomic<int> accepted_{0};
  std::vector<int> kept_;
  std::thread thread_;
};

}  // namespace gpuwatch::test
