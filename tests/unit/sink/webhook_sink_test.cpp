// SPDX-License-Identifier: Apache-2.0
// A webhook gets the alert once it answers well; a server that is dead, slow,
// angry or endless costs a bounded time; a secret stays one.
#include "sink/webhook_sink.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/stat.h>

#include "unit/sink/items.h"
#include "unit/support.h"

namespace gpuwatch::sink {
namespace {

using gpuwatch::test::ScratchDir;
using gpuwatch::test::spill;
using test::item_of;
using test::Server;
using namespace std::chrono_literals;

const char* const kFine = "HTTP/1.1 204 No Content\r\n\r\n";

std::unique_ptr<Sink> opened(WebhookOptions options) {
  auto sink = WebhookSink::open(std::move(options));
  EXPECT_TRUE(sink.ok()) << (sink.ok() ? "" : sink.error().message());
  return sink.ok() ? std::move(*sink) : nullptr;
}

Outcome post(Sink& sink, std::initializer_list<const char*> lines) {
  std::vector<ItemPtr> items;
  for (const char* line : lines) items.push_back(item_of(line));
  return sink.write(items);
}

std::string refused(WebhookOptions options) {
  auto sink = WebhookSink::open(std::move(options));
  return sink.ok() ? "taken" : sink.error().message();
}

TEST(Webhook, PostsEachAlert) {
  Server server({kFine});
  auto sink = opened({.url = server.url("/hook?x=%20")});
  EXPECT_TRUE(sink->wants(*item_of("a")));
  EXPECT_FALSE(sink->wants(*item_of("e", ItemKind::kEvent)));
  EXPECT_FALSE(sink->wants(*item_of("l", ItemKind::kLoss)));
  EXPECT_EQ(post(*sink, {"{\"a\":1}", "{\"a\":2}"}).sent, Outcome::kAll);
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_TRUE(requests[0].starts_with("POST /hook?x=%20 HTTP/1.1\r\n")) << requests[0];
  EXPECT_NE(requests[0].find("Content-Type: application/json\r\n"), std::string::npos);
  EXPECT_NE(requests[0].find("Idempotency-Key: \"id-1\"\r\n"), std::string::npos);
  EXPECT_EQ(requests[0].find("Authorization"), std::string::npos);
  EXPECT_TRUE(requests[1].ends_with("\r\n\r\n{\"a\":2}\n")) << requests[1];
}

TEST(Webhook, ServerTroubleIsTriedAgainAndOthersAreNot) {
  Server server({kFine, "HTTP/1.1 503 No\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n",
                 "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
                 "HTTP/1.1 302 Go\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", "garbage\r\n\r\n"});
  auto sink = opened({.url = server.url()});
  Outcome outcome = post(*sink, {"1", "2", "3"});
  EXPECT_EQ(outcome.sent, 1U);
  EXPECT_EQ(outcome.refused, 0U);
  EXPECT_TRUE(outcome.retry);
  EXPECT_EQ(outcome.retry_after, 3s);
  outcome = post(*sink, {"2"});
  EXPECT_EQ(outcome.refused, 1U);
  EXPECT_NE(outcome.error->message().find("HTTP status 404"), std::string::npos);
  outcome = post(*sink, {"2"});  // a redirect is not followed
  EXPECT_EQ(outcome.refused, 1U);
  outcome = post(*sink, {"2"});
  EXPECT_EQ(outcome.sent, 0U);
  EXPECT_TRUE(outcome.retry);
  EXPECT_EQ(server.requests().size(), 5U);
}

TEST(Webhook, ADeadServer) {
  std::string url;
  {
    Server server({kFine});
    url = server.url();
  }
  auto sink = opened({.url = url});
  const Outcome outcome = post(*sink, {"1"});
  EXPECT_EQ(outcome.sent, 0U);
  EXPECT_TRUE(outcome.retry);
}

TEST(Webhook, SilenceAndDripEndInTime) {
  Server server({"", "drip"});
  auto sink = opened({.url = server.url(), .limit = 200ms});
  for (int i = 0; i < 2; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = post(*sink, {"1"});
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
    ASSERT_TRUE(outcome.error.has_value());
    EXPECT_TRUE(outcome.retry);
  }
}

TEST(Webhook, AnAnswerWithoutEndIsNotRead) {
  Server server({"HTTP/1.1 200 OK\r\nContent-Length: 90000000\r\n\r\n" + std::string(1 << 20, 'x')});
  auto sink = opened({.url = server.url(), .limit = 20s});
  EXPECT_EQ(post(*sink, {"1"}).sent, Outcome::kAll);
}

TEST(Webhook, CancelEndsARequest) {
  Server server({""});
  auto sink = opened({.url = server.url(), .limit = 1h});
  std::thread canceller([&] {
    while (server.requests().empty()) std::this_thread::yield();
    sink->cancel();
  });
  const Outcome outcome = post(*sink, {"1"});
  canceller.join();
  EXPECT_TRUE(outcome.error.has_value());
}

TEST(Webhook, RateLimitMakesItWait) {
  Server server({kFine});
  auto sink = opened({.url = server.url(), .rate = {0.001, 1}});
  const Outcome outcome = post(*sink, {"1", "2"});
  EXPECT_EQ(outcome.sent, 1U);
  EXPECT_FALSE(outcome.error.has_value());
  EXPECT_GT(outcome.retry_after, 900s);
}

TEST(Webhook, SecretFromAFile) {
  const ScratchDir dir;
  Server server({kFine, "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"});
  const std::string path = dir.file("secret");
  spill(path, "hunter2\n");
  ::chmod(path.c_str(), 0600);
  auto sink = opened({.url = server.url("/token-hunter2"), .secret_file = path});
  EXPECT_EQ(post(*sink, {"1"}).sent, Outcome::kAll);
  EXPECT_NE(server.requests()[0].find("Authorization: Bearer hunter2\r\n"), std::string::npos);
  const Outcome outcome = post(*sink, {"1"});
  EXPECT_EQ(outcome.error->message().find("hunter2"), std::string::npos) << outcome.error->message();
  spill(path, "newer\n");
  EXPECT_TRUE(sink->reopen().ok());

  EXPECT_NE(refused({.url = "http://example.org/", .secret_file = path}).find("use https"), std::string::npos);
  ::chmod(path.c_str(), 0604);
  EXPECT_NE(refused({.url = server.url(), .secret_file = path}).find("everybody may use it"), std::string::npos);
  ::chmod(path.c_str(), 0600);
  for (const std::string bad : {"", "two words", "a\r\nX: y", "line\nline"}) {
    spill(path, bad);
    const std::string message = refused({.url = server.url(), .secret_file = path});
    EXPECT_NE(message.find("wants one line"), std::string::npos) << message;
  }
  EXPECT_NE(refused({.url = server.url(), .secret_file = dir.file("none")}).find("No such file"), std::string::npos);
  ASSERT_EQ(::symlink(path.c_str(), dir.file("link").c_str()), 0);
  EXPECT_NE(refused({.url = server.url(), .secret_file = dir.file("link")}), "taken");
}

TEST(Webhook, Tls) {
  const ScratchDir dir;
  const std::string key = dir.file("key.pem");
  const std::string cert = dir.file("cert.pem");
  const std::string command =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout " + key + " -out " +
      cert + " -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  httplib::SSLServer server(cert.c_str(), key.c_str());
  std::atomic<int> heard = 0;
  server.Post("/hook",
              [&](const httplib::Request& request, httplib::Response&) { heard += request.body == "{\"a\":1}\n"; });
  const int port = server.bind_to_any_port("127.0.0.1");
  std::thread thread([&] { server.listen_after_bind(); });
  const std::string url = "https://localhost:" + std::to_string(port) + "/hook";
  {
    auto stranger = opened({.url = url});
    const Outcome outcome = post(*stranger, {"{\"a\":1}"});
    ASSERT_TRUE(outcome.error.has_value());  // nobody vouches for the certificate
    EXPECT_EQ(heard, 0);
    auto trusting = opened({.url = url, .ca_file = cert});
    const Outcome fine = post(*trusting, {"{\"a\":1}"});
    EXPECT_EQ(fine.sent, Outcome::kAll) << (fine.error ? fine.error->message() : "");
    EXPECT_EQ(heard, 1);
  }
  server.stop();
  thread.join();
}

}  // namespace
}  // namespace gpuwatch::sink
