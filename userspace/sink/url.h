// SPDX-License-Identifier: Apache-2.0
// Url: where a webhook goes. Takes the strict core of RFC 3986 and refuses what
// two readers could understand in two ways.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuwatch::sink {

struct Url {
  bool tls = false;
  std::string host;  // name or address; of IPv6 without brackets
  bool ipv6 = false;
  std::uint16_t port = 0;
  std::string target;  // path and query, begins with a slash

  bool loopback() const;
  std::string origin() const;  // http://host:port
};

base::Result<Url> parse_url(std::string_view text);

}  // namespace gpuwatch::sink
