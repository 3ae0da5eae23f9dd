// SPDX-License-Identifier: Apache-2.0
// NetlinkSink: alerts, and events that have a verdict, to the kernel module,
// which relays them to the multicast group verdicts.
#pragma once

#include <memory>

#include "base/result.h"
#include "sink/sink.h"

namespace gpuwatch::daemon {

base::Result<std::unique_ptr<sink::Sink>> open_netlink_sink();

}  // namespace gpuwatch::daemon
