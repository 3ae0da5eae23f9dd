// SPDX-License-Identifier: Apache-2.0
// The endpoint answers scrapes and stays small and alive under clients that
// send rubbish, nothing, too much, or never read.
#include "sink/exposition.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "unit/support.h"

namespace gpuwatch::sink {
namespace {

using gpuwatch::test::ScratchDir;
using gpuwatch::test::slurp;
using gpuwatch::test::spill;

std::unique_ptr<Exposition> opened(ExpositionOptions options = {}, std::string page = "gpuwatch_x 1\n") {
  options.port = 0;
  auto made = Exposition::open(options, [page = std::move(page)] { return page; });
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message());
  return made.ok() ? std::move(*made) : nullptr;
}

base::Fd connected(std::uint16_t port) {
  base::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

std::string rest_of(const base::Fd& fd) {
  std::string all;
  char bytes[4096];
  ssize_t n = 0;
  while ((n = ::recv(fd.get(), bytes, sizeof bytes, 0)) > 0) all.append(bytes, static_cast<std::size_t>(n));
  return all;
}

std::string talk(std::uint16_t port, const std::string& request) {
  const base::Fd fd = connected(port);
  ::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
  return rest_of(fd);
}

TEST(Exposition, Scrape) {
  auto endpoint = opened();
  httplib::Client client("127.0.0.1", endpoint->port());
  const auto result = client.Get("/metrics");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 200);
  EXPECT_EQ(result->body, "gpuwatch_x 1\n");
  EXPECT_EQ(result->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(client.Get("/metrics?x=1")->status, 200);
  EXPECT_EQ(client.Head("/metrics")->status, 200);
  EXPECT_EQ(client.Get("/")->status, 200);
  EXPECT_EQ(client.Get("/etc/passwd")->status, 404);
  EXPECT_EQ(client.Post("/metrics", "x", "text/plain")->status, 405);
  EXPECT_EQ(endpoint->scrapes(), 3U);
}

TEST(Exposition, ALargePageToASlowReader) {
  const std::string page(3 << 20, 'x');
  auto endpoint = opened({}, page);
  const base::Fd slow = connected(endpoint->port());
  ASSERT_EQ(::send(slow.get(), "GET /metrics HTTP/1.1\r\n\r\n", 25, 0), 25);
  EXPECT_EQ(talk(endpoint->port(), "GET / HTTP/1.0\r\n\r\n").substr(0, 15), "HTTP/1.1 200 OK");  // others are served
  const std::string all = rest_of(slow);
  EXPECT_EQ(all.size() - all.find("\r\n\r\n") - 4, page.size());
}

TEST(Exposition, Rubbish) {
  auto endpoint = opened();
  EXPECT_TRUE(talk(endpoint->port(), "nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
  EXPECT_TRUE(talk(endpoint->port(), std::string("\0\xff \0 HTTP/1.1\r\n\r\n", 17)).starts_with("HTTP/1.1 405"));
  EXPECT_TRUE(talk(endpoint->port(), " \r\n\r\n").starts_with("HTTP/1.1 400"));
  EXPECT_TRUE(talk(endpoint->port(), "GET /metrics FTP/1\r\n\r\n").starts_with("HTTP/1.1 400"));
  EXPECT_GE(endpoint->refused(), 3U);
}

TEST(Exposition, HeadersWithoutEnd) {
  auto endpoint = opened();
  const base::Fd fd = connected(endpoint->port());
  ::send(fd.get(), "GET /metrics HTTP/1.1\r\n", 23, MSG_NOSIGNAL);
  const std::string header = "X-Header: " + std::string(1000, 'x') + "\r\n";
  int sent = 0;
  while (sent < 10'000 && ::send(fd.get(), header.data(), header.size(), MSG_NOSIGNAL) > 0) ++sent;
  EXPECT_LT(sent, 10'000);  // it hung up
  EXPECT_EQ(endpoint->refused(), 1U);
  EXPECT_TRUE(talk(endpoint->port(), "GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
}

TEST(Exposition, IdleConnectionsAreFewAndEnd) {
  ExpositionOptions options;
  options.connections = 3;
  options.limit_ms = 300;
  auto endpoint = opened(options);
  std::vector<base::Fd> idle;
  for (int i = 0; i < 10; ++i) idle.push_back(connected(endpoint->port()));
  for (const base::Fd& fd : idle) EXPECT_EQ(rest_of(fd), "");  // all are closed, late or at once
  EXPECT_EQ(endpoint->refused(), 10U);
  EXPECT_TRUE(talk(endpoint->port(), "GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
}

TEST(Exposition, APageThatThrows) {
  ExpositionOptions options;
  options.port = 0;
  auto made = Exposition::open(options, []() -> std::string { throw 1; });
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(talk((*made)->port(), "GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 500"));
}

TEST(Exposition, OnlyLoopbackUnlessAsked) {
  const auto page = [] { return std::string(); };
  ExpositionOptions options;
  options.port = 0;
  options.address = "0.0.0.0";
  auto refused = Exposition::open(options, page);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("say so expressly"), std::string::npos);
  options.anywhere = true;
  EXPECT_TRUE(Exposition::open(options, page).ok());
  options.address = "localhost";
  EXPECT_FALSE(Exposition::open(options, page).ok());
  ExpositionOptions taken;
  auto first = opened();
  taken.port = first->port();
  auto second = Exposition::open(taken, page);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message().find("Address already in use"), std::string::npos);
}

TEST(Exposition, SixIsLoopbackToo) {
  ExpositionOptions options;
  options.address = "::1";
  options.port = 0;
  auto made = Exposition::open(options, [] { return std::string("y\n"); });
  if (!made.ok()) GTEST_SKIP() << "no IPv6 here: " << made.error().message();
  EXPECT_NE((*made)->port(), 0);
}

TEST(Textfile, IsReplacedAsAWhole) {
  const ScratchDir dir;
  const std::string path = dir.file("gpuwatch.prom");
  EXPECT_TRUE(write_textfile(path, "a 1\n").ok());
  EXPECT_TRUE(write_textfile(path, "a 2\n").ok());
  EXPECT_EQ(slurp(path), "a 2\n");
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0644U);
  // Neither a link in its place nor one in the place of the new text is followed.
  spill(dir.file("victim"), "v");
  const std::string beside = path + "." + std::to_string(::getpid()) + ".tmp";
  ASSERT_EQ(::symlink(dir.file("victim").c_str(), beside.c_str()), 0);
  ::unlink(path.c_str());
  ASSERT_EQ(::symlink(dir.file("victim").c_str(), path.c_str()), 0);
  EXPECT_TRUE(write_textfile(path, "a 3\n").ok());
  EXPECT_EQ(slurp(dir.file("victim")), "v");
  EXPECT_EQ(slurp(path), "a 3\n");
  EXPECT_FALSE(write_textfile(dir.file("no/such.prom"), "x").ok());
  EXPECT_EQ(std::system(("test $(ls " + dir.file("") + " | wc -l) = 2").c_str()), 0);  // nothing is left over
}

}  // namespace
}  // namespace gpuwatch::sink
