// SPDX-License-Identifier: Apache-2.0
// What a subscriber sees as lines: JSON as in gpuwatch-json(5), and text for
// people. Appends to a caller's buffer; untrusted bytes come out harmless.
#pragma once

#include <cstdint>
#include <string>

#include "netlink/subscriber.h"

namespace gpuwatch::netlink {

// One line with its newline.
void append_json(std::string& out, const Item& item);

struct TextStyle {
  bool colour = false;
  std::int32_t utc_offset_s = 0;  // added to times of day
};
void append_text(std::string& out, const Item& item, const TextStyle& style = {});

// "lost 12 of 3400 messages (2 overruns of the buffer)"
std::string loss_summary(const Subscriber::Totals& totals);

}  // namespace gpuwatch::netlink
