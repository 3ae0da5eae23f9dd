// SPDX-License-Identifier: Apache-2.0
// GET has its answer before the acknowledgement, SET long after it.
#include "netlink/control.h"

#include <linux/gpuwatch_genl.h>
#include <netlink/attr.h>

#include <algorithm>
#include <optional>
#include <span>

#include "netlink/connection.h"

namespace gpuwatch::netlink {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

// Attaching changes kernel text, and detaching waits for calls to leave it.
constexpr int kSetMarginMs = 60'000;

std::span<const std::byte> bytes_of(const nlmsghdr* header) {
  return {reinterpret_cast<const std::byte*>(header), header->nlmsg_len};
}

}  // namespace

Control::Control(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
Control::Control(Control&&) noexcept = default;
Control& Control::operator=(Control&&) noexcept = default;
Control::~Control() = default;

Result<Control> Control::open() {
  auto connection = Connection::open();
  if (!connection) return std::move(connection.error());
  return Control(std::move(*connection));
}

Result<State> Control::state() {
  std::optional<Result<State>> answer;
  Status status = connection_->request(GPUWATCH_CMD_GET, "asking for the module's state", {}, [&](nlmsghdr* header) {
    answer = parse_state(bytes_of(header));
    return true;
  });
  if (!status.ok()) return std::move(status.error());
  return std::move(*answer);
}

Result<SetAnswer> Control::set(bool attach, std::uint32_t timeout_ms) {
  std::optional<Result<SetAnswer>> answer;
  Status status = connection_->request(
      GPUWATCH_CMD_SET, attach ? "attaching" : "detaching",
      [&](nl_msg* message) {
        int err = nla_put_u32(message, GPUWATCH_A_ATTACH, attach ? 1 : 0);
        if (err == 0 && !attach) err = nla_put_u32(message, GPUWATCH_A_TIMEOUT_MS, timeout_ms);
        return err;
      },
      [&](nlmsghdr* header) {
        answer = parse_set_answer(bytes_of(header));
        return true;
      },
      static_cast<int>(timeout_ms) + kSetMarginMs);
  if (!status.ok()) return std::move(status.error());
  return std::move(*answer);
}

Status Control::attach() {
  auto answer = set(true, 0);
  if (!answer) return std::move(answer.error());
  if (answer->result == 0) return {};
  return Error::from_errno("attaching: the kernel module could not hook the driver", -answer->result);
}

Result<std::uint32_t> Control::detach(std::chrono::milliseconds timeout) {
  const auto bounded = std::clamp<std::int64_t>(timeout.count(), 0, GPUWATCH_GENL_TIMEOUT_MAX_MS);
  auto answer = set(false, static_cast<std::uint32_t>(bounded));
  if (!answer) return std::move(answer.error());
  if (answer->result == 0) return std::uint32_t{0};
  if (answer->result == -EBUSY && answer->in_flight != 0) return answer->in_flight;
  return Error::from_errno("detaching", -answer->result);
}

}  // namespace gpuwatch::netlink
