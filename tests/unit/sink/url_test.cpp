// SPDX-License-Identifier: Apache-2.0
// URLs are taken as they are meant or refused, never half; and the bucket of
// tokens keeps its rate.
#include "sink/url.h"

#include <gtest/gtest.h>

#include "sink/token_bucket.h"

namespace gpuwatch::sink {
namespace {

std::string parsed(std::string_view text) {
  auto url = parse_url(text);
  return url.ok() ? url->origin() + " " + url->target + (url->loopback() ? " here" : "") : url.error().message();
}

TEST(Url, Taken) {
  EXPECT_EQ(parsed("https://example.org"), "https://example.org:443 /");
  EXPECT_EQ(parsed("http://example.org?x=1"), "http://example.org:80 /?x=1");
  EXPECT_EQ(parsed("https://a-b.c:8443/x/y%20z?q=1&r"), "https://a-b.c:8443 /x/y%20z?q=1&r");
  EXPECT_EQ(parsed("http://[::1]:9/x"), "http://[::1]:9 /x here");
  EXPECT_EQ(parsed("http://127.3.2.1/x"), "http://127.3.2.1:80 /x here");
  EXPECT_EQ(parsed("http://localhost/x"), "http://localhost:80 /x here");
  EXPECT_EQ(parsed("http://[2001:db8::1]/x"), "http://[2001:db8::1]:80 /x");
  EXPECT_EQ(parsed("http://127.evil.example/x"), "http://127.evil.example:80 /x");
}

TEST(Url, Refused) {
  const struct {
    std::string_view text, reason;
  } kCases[] = {
      {"", "must begin"},
      {"ftp://x/", "must begin"},
      {"file:///etc/shadow", "must begin"},
      {"HTTP//x", "must begin"},
      {"https://", "no name of a host"},
      {"https:///x", "no name of a host"},
      {"https://user:pw@host/", "user name or password"},
      {"https://host:0/", "port"},
      {"https://host:65536/", "port"},
      {"https://host:80x/", "port"},
      {"https://host:/", "port"},
      {"https://ho st/", "no name of a host"},
      {"https://h\xc3\xb6st/", "no name of a host"},
      {"https://[::1/", "without ]"},
      {"https://[nonsense]/", "no IPv6"},
      {std::string_view("https://[::1\0x]/", 16), "no IPv6"},
      {"https://[::1]x/", "between ] and the port"},
      {"https://host/a#b", "fragment"},
      {"https://host/a b", "%XX"},
      {"https://host/a\r\nX-Evil: 1", "%XX"},
      {std::string_view("https://host/\0x", 15), "%XX"},
  };
  for (const auto& one : kCases)
    EXPECT_NE(parsed(one.text).find(one.reason), std::string::npos) << one.text << parsed(one.text);
  EXPECT_NE(parsed("https://host/" + std::string(3000, 'x')).find("longer than"), std::string::npos);
}

TEST(Url, MessagesKeepTheSecret) {
  for (const std::string text : {"https://u:hunter2@host/", "https://host/hunter2 x", "hunter2://host"})
    EXPECT_EQ(parsed(text).find("hunter2"), std::string::npos);
}

TEST(TokenBucket, KeepsItsRate) {
  using namespace std::chrono_literals;
  const TokenBucket::Clock::time_point start{1h};
  TokenBucket bucket({2.0, 3.0});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bucket.take(start), 0ms);
  EXPECT_EQ(bucket.take(start), 500ms);
  EXPECT_LE(bucket.take(start + 499ms), 2ms);
  EXPECT_EQ(bucket.take(start + 500ms), 0ms);
  EXPECT_GT(bucket.take(start), 0ms);  // a clock that goes back gives nothing
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bucket.take(start + 1h), 0ms);
  EXPECT_EQ(bucket.take(start + 1h), 500ms);
}

TEST(TokenBucket, NonsenseRates) {
  TokenBucket bucket({0.0, 0.0});
  const auto now = TokenBucket::Clock::now();
  EXPECT_EQ(bucket.take(now).count(), 0);
  EXPECT_GT(bucket.take(now).count(), 0);
}

}  // namespace
}  // namespace gpuwatch::sink
