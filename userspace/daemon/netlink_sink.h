// SPDX-License-Identifier: Apache-2.0
// NetlinkSink: alerts, and events that have a verdict, to the kernel module,
// which relays them to the multicast group verdicts.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "sink/sink.h"

namespace gpuwatch::daemon {

base::Result<std::unique_ptr<sink::Sink>> open_netlink_sink();

// The one line for people in such a message. It is short, and the reason stands at
// its end: what the message's own attributes tell, and its time, are not in it.
std::string relayed_text(const sink::Item& item);

}  // namespace gpuwatch::daemon
