// SPDX-License-Identifier: Apache-2.0
// Submitter: hands verdicts to the kernel module, which stamps them with its own
// clock and the sender's ids and relays them to group "verdicts". It does not
// judge, and keeps nothing: what could not be sent is the caller's to count.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "netlink/words.h"

namespace gpuwatch::netlink {

// Texts longer than the kernel takes are cut, at a character's border.
struct VerdictMessage {
  VerdictKind verdict = VerdictKind::kNone;
  Severity severity = Severity::kInfo;
  std::string rule;
  std::string text;
  std::string container;
  std::optional<std::uint32_t> pid;  // on the host
  std::optional<std::uint64_t> start_ns;
  std::optional<std::uint64_t> cgroup_id;
  std::optional<std::uint32_t> gpu_minor;
  std::optional<std::array<std::byte, 32>> digest;  // hash R of the module
};

class Connection;

// Not for several threads at once.
class Submitter {
 public:
  static base::Result<Submitter> open();
  Submitter(Submitter&&) noexcept;
  Submitter& operator=(Submitter&&) noexcept;
  ~Submitter();

  // Returns when the kernel has relayed it or refused. After a reload of the
  // module the family is looked up once more. kNotFound: there is no module.
  base::Status submit(const VerdictMessage& message);

 private:
  explicit Submitter(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

}  // namespace gpuwatch::netlink
