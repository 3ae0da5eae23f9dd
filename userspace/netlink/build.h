// SPDX-License-Identifier: Apache-2.0
// Parts of requests, for the files of this room and their tests. They fill
// messages, and send none.
#pragma once

#include <netlink/msg.h>

#include <string_view>

#include "netlink/submitter.h"

namespace gpuwatch::netlink {

// Up to a NUL and to `max_bytes`, not in the middle of a UTF-8 character.
std::string_view cut_text(std::string_view text, std::size_t max_bytes);

// 0, or a negative error of libnl when the message has no room.
int put_verdict(nl_msg* message, const VerdictMessage& verdict);

}  // namespace gpuwatch::netlink
