// SPDX-License-Identifier: Apache-2.0
// Connection: one socket of generic netlink that knows the number of the family,
// sends requests and waits for their acknowledgement, by libnl. Internal to this
// room. It waits for an answer no longer than a few seconds.
#pragma once

#include <netlink/msg.h>
#include <netlink/netlink.h>

#include <functional>
#include <memory>

#include "base/result.h"

namespace gpuwatch::netlink {

struct MessageDelete {
  void operator()(nl_msg* message) const { nlmsg_free(message); }
};
using OwnedMessage = std::unique_ptr<nl_msg, MessageDelete>;

struct SocketDelete {
  void operator()(nl_sock* socket) const { nl_socket_free(socket); }
};
using OwnedSocket = std::unique_ptr<nl_sock, SocketDelete>;

// What libnl says, in this program's words; `what` was tried.
base::Error error_of(int libnl_error, const std::string& what);
// There is no such family, and the remedy.
base::Error no_family();

class Connection {
 public:
  static base::Result<std::unique_ptr<Connection>> open();

  // Puts attributes into a request; negative: they do not fit.
  using Fill = std::function<int(nl_msg*)>;
  // Sees each answer that belongs to the request; true: the last one that was waited for.
  using Answer = std::function<bool(nlmsghdr*)>;

  // Sends and waits for the acknowledgement. With `answer` it goes on, for at
  // most `wait_ms`, until that says true. When the family has another number
  // by now, it is looked up again, once.
  base::Status request(std::uint8_t command, const std::string& what, const Fill& fill, const Answer& answer = {},
                       int wait_ms = 5000);

 private:
  Connection() = default;
  base::Status resolve();
  base::Status send_once(std::uint8_t command, const std::string& what, const Fill& fill, const Answer& answer,
                         int wait_ms);

  OwnedSocket socket_;
  int family_ = -1;
};

}  // namespace gpuwatch::netlink
