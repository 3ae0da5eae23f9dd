// SPDX-License-Identifier: Apache-2.0
// Unit tests of the control socket from the daemon's side: answers, peers that
// are slow, many or talk nonsense, and sockets that are in the way.
#include "daemon/control_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "control/client.h"

namespace gpuwatch::daemon {
namespace {

class ControlServerTest : public ::testing::Test {
 protected:
  ControlServerTest() : path_(::testing::TempDir() + "ctl-" + std::to_string(::getpid())) { ::unlink(path_.c_str()); }

  std::unique_ptr<ControlServer> serve(int limit_ms = 5000) {
    auto server = ControlServer::open({path_, "", 4, limit_ms});
    EXPECT_TRUE(server.ok());
    (*server)->serve([](const control::Request& request) {
      return control::format_answer(request.verb, "\"" + request.path + "\"");
    });
    return std::move(*server);
  }
  base::Fd connect() {
    base::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  std::string path_;
};

TEST_F(ControlServerTest, Answers) {
  const auto server = serve();
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u) << "no group: only its owner";
  auto answer = control::ask({control::Verb::kDump, "/x"}, path_);
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  EXPECT_EQ(*answer, "\"/x\"");
}

TEST_F(ControlServerTest, NonsenseIsRefusedAndSilenceCostsItselfOnly) {
  const auto server = serve(300);
  std::vector<base::Fd> silent;
  for (int i = 0; i < 10; ++i) silent.push_back(connect());
  for (const std::string& line : {std::string("hello\n"), std::string(100'000, 'x') + "\n", std::string("{}\n")}) {
    const base::Fd fd = connect();
    (void)!::send(fd.get(), line.data(), line.size(), MSG_NOSIGNAL);
    std::string answer;
    for (char c = 0; ::recv(fd.get(), &c, 1, 0) == 1 && c != '\n';) answer += c;
    // One with too long a line may lose the answer with the connection.
    if (line.size() < 1000) {
      EXPECT_NE(answer.find("\"ok\":false"), std::string::npos) << line;
    }
  }
  EXPECT_TRUE(control::ask({}, path_).ok()) << "the silent ones ran out of time";
}

TEST_F(ControlServerTest, WhatIsInTheWay) {
  {
    const auto server = serve();
    auto second = ControlServer::open({path_, ""});
    ASSERT_FALSE(second.ok());
    EXPECT_NE(second.error().message().find("another gpuwatchd"), std::string::npos);
  }
  EXPECT_NE(::access(path_.c_str(), F_OK), 0) << "removed at the end";
  // Of one that was killed.
  {
    base::Fd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  EXPECT_TRUE(ControlServer::open({path_, ""}).ok());
  // A file of somebody else stays.
  base::Fd file(::open(path_.c_str(), O_CREAT | O_WRONLY, 0600));
  EXPECT_FALSE(ControlServer::open({path_, ""}).ok());
  EXPECT_EQ(::access(path_.c_str(), F_OK), 0);
  ::unlink(path_.c_str());
  EXPECT_FALSE(ControlServer::open({"relative", ""}).ok());
  EXPECT_FALSE(ControlServer::open({"/no/such/directory/x", ""}).ok());
}

}  // namespace
}  // namespace gpuwatch::daemon
