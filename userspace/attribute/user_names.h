// SPDX-License-Identifier: Apache-2.0
// UserNames: names of this machine's users from /etc/passwd, read when a uid is
// met that it does not know, at most once in ten seconds. It does not ask name
// services: those may hang. A name tells who the host calls so, not who a
// container does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace gpuwatch::attribute {

class UserNames {
 public:
  explicit UserNames(std::string passwd = "/etc/passwd") : passwd_(std::move(passwd)) {}

  // Empty where there is no such user. Valid until the next call.
  std::string_view name(std::uint32_t uid);

  std::uint64_t reads() const { return reads_; }

 private:
  void read();

  std::string passwd_;
  std::unordered_map<std::uint32_t, std::string> names_;
  std::uint64_t next_read_ns_ = 0;
  std::uint64_t reads_ = 0;
};

}  // namespace gpuwatch::attribute
