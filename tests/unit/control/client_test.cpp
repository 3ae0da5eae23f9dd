// SPDX-License-Identifier: Apache-2.0
// Unit tests of the control client against daemons that are not there, answer
// well, say nothing, hang up or talk without end.
#include "control/client.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <thread>

#include "base/fd.h"

namespace gpuwatch::control {
namespace {

class Server {
 public:
  explicit Server(std::function<void(int)> serve)
      : path_(::testing::TempDir() + "control-" + std::to_string(::getpid())) {
    ::unlink(path_.c_str());
    listener_ = base::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    thread_ = std::thread([this, serve = std::move(serve)] {
      const base::Fd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (peer.valid()) serve(peer.get());
    });
  }
  ~Server() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    ::unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  base::Fd listener_;
  std::thread thread_;
};

std::string read_line(int fd) {
  std::string line;
  for (char c = 0; ::read(fd, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

void send_text(int fd, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t sent = ::send(fd, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return;
    at += static_cast<std::size_t>(sent);
  }
}

TEST(Client, AnAnswerOfManyPiecesIsWhole) {
  const std::string body = "\"" + std::string(300'000, 'x') + "\"";
  std::string seen;
  Server server([&](int fd) {
    seen = read_line(fd);
    send_text(fd, format_answer(Verb::kHoldings, body) + "\n");
  });
  auto answer = ask({Verb::kHoldings, ""}, server.path());
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  EXPECT_EQ(*answer, body);
  EXPECT_EQ(seen, "{\"request\":\"holdings\"}");
}

TEST(Client, NobodyThereIsSaidWithTheRemedy) {
  auto answer = ask({}, ::testing::TempDir() + "no-such-socket");
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), base::Code::kNotFound);
  EXPECT_NE(answer.error().message().find("systemctl start gpuwatchd"), std::string::npos);
  EXPECT_FALSE(ask({}, std::string(200, 'a')).ok());
  EXPECT_FALSE(ask({}, "").ok());
}

TEST(Client, SilenceEndsWithTheTime) {
  Server server([](int fd) { (void)read_line(fd), (void)read_line(fd); });
  auto answer = ask({}, server.path(), std::chrono::milliseconds(100));
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message().find("does not answer"), std::string::npos);
}

TEST(Client, HalfAnAnswerIsAnError) {
  Server server([](int fd) { (void)read_line(fd), send_text(fd, "{\"ok\":true"); });
  auto answer = ask({}, server.path());
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), base::Code::kTruncated);
}

TEST(Client, AnAnswerWithoutEndIsCut) {
  Server server([](int fd) {
    (void)read_line(fd);
    for (int i = 0; i < 20; ++i) send_text(fd, std::string(1 << 20, 'x'));
  });
  auto answer = ask({}, server.path());
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), base::Code::kLimit);
}

}  // namespace
}  // namespace gpuwatch::control
