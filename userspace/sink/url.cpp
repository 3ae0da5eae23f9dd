// SPDX-License-Identifier: Apache-2.0
// See url.h.
#include "sink/url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace gpuwatch::sink {

namespace {

using base::Error;

constexpr std::size_t kMaxUrl = 2048;

// The reason names no part of the URL: it may hold a token.
Error bad(const std::string& why) {
  return Error(base::Code::kBadInput, "URL of the webhook: " + why);
}

bool is_host_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

bool is_target_char(char c) {
  constexpr std::string_view kOther = "-._~:/?@!$&'()*+,;=%";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kOther.find(c) != std::string_view::npos;
}

}  // namespace

bool Url::loopback() const {
  in_addr v4{};
  if (!ipv6 && ::inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  return ipv6 ? host == "::1" : host == "localhost";
}

std::string Url::origin() const {
  return std::string(tls ? "https://" : "http://") + (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

base::Result<Url> parse_url(std::string_view text) {
  if (text.size() > kMaxUrl) return bad("longer than 2048 bytes");
  Url url;
  if (text.starts_with("https://")) {
    url.tls = true;
    text.remove_prefix(8);
  } else if (text.starts_with("http://")) {
    text.remove_prefix(7);
  } else {
    return bad("must begin with https:// or http://");
  }
  const std::size_t end = std::min(text.find_first_of("/?#"), text.size());
  std::string_view authority = text.substr(0, end);
  url.target = text.substr(end);
  if (authority.find('@') != std::string_view::npos)
    return bad("holds a user name or password; put a secret into its own file");
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    in6_addr v6{};
    if (close == std::string_view::npos) return bad("has [ without ]");
    url.host = authority.substr(1, close - 1);
    url.ipv6 = true;
    // inet_pton() would stop at a NUL.
    if (url.host.find('\0') != std::string::npos || ::inet_pton(AF_INET6, url.host.c_str(), &v6) != 1)
      return bad("no IPv6 address between [ and ]");
    port = authority.substr(close + 1);
    if (!port.empty() && !port.starts_with(':')) return bad("something between ] and the port");
  } else {
    const std::size_t colon = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, colon);
    port = authority.substr(colon);
    if (url.host.empty() || url.host.size() > 253 || !std::all_of(url.host.begin(), url.host.end(), is_host_char))
      return bad("no name of a host where it should be");
  }
  url.port = url.tls ? 443 : 80;
  if (!port.empty()) {
    port.remove_prefix(1);
    const auto result = std::from_chars(port.data(), port.data() + port.size(), url.port);
    if (result.ec != std::errc() || result.ptr != port.data() + port.size() || url.port == 0)
      return bad("the port is no number from 1 to 65535");
  }
  if (url.target.find('#') != std::string::npos) return bad("has a fragment (#), which no server would get");
  if (!url.target.starts_with('/')) url.target.insert(0, "/");
  if (!std::all_of(url.target.begin(), url.target.end(), is_target_char))
    return bad("has bytes that must be written as %XX");
  return url;
}

}  // namespace gpuwatch::sink
