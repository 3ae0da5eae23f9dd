// SPDX-License-Identifier: Apache-2.0
// Outputs: the sinks that the settings ask for, each behind its own queue. Items
// are pushed and forgotten; no sink can hold up the caller. It formats nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/settings.h"
#include "daemon/unsent.h"
#include "sink/queue.h"
#include "sink/tally.h"

namespace gpuwatch::daemon {

class Outputs {
 public:
  // An error where a sink that was asked for cannot be had. `notes`: what is
  // done without. `live`: there is a kernel module. `unsent` may be nothing.
  static base::Result<std::shared_ptr<Outputs>> open(const Settings& settings, bool live,
                                                     std::shared_ptr<Unsent> unsent, std::vector<std::string>& notes);

  // Events and losses go to all, alerts where `actions` says.
  void push(const sink::ItemPtr& item, unsigned actions);
  void request_reopen();
  bool flush(std::chrono::milliseconds limit);
  // Within the limit, or soon after it where a sink hangs.
  void stop(std::chrono::milliseconds limit);
  // After stop(): "webhook 12, exec 3", items that had no time left; empty: none.
  std::string left_behind() const;

  struct Named {
    std::unique_ptr<sink::SinkQueue> queue;
    unsigned action = kActionAlert;  // that sends alerts here
    bool events = true;              // gets events and losses, too
  };
  const std::vector<Named>& all() const { return queues_; }

 private:
  void add(std::unique_ptr<sink::Sink> sink, sink::QueueLimits limits, unsigned action, bool events);

  std::shared_ptr<Unsent> unsent_;
  std::vector<Named> queues_;
};

// The same sinks would come of both: they need not be opened anew.
bool same_outputs(const Settings& a, const Settings& b);

}  // namespace gpuwatch::daemon
