// SPDX-License-Identifier: Apache-2.0
#include "daemon/sink_watch.h"

#include "base/escape.h"
#include "daemon/log.h"

namespace gpuwatch::daemon {

namespace {

constexpr std::uint64_t kPauseNs = 60'000'000'000;

}  // namespace

std::vector<SinkState> SinkWatch::changed(const std::vector<SinkState>& states, std::uint64_t now_ns) {
  std::vector<SinkState> out;
  for (const SinkState& state : states) {
    Told& told = told_[state.name];
    if (state.failing == told.failing || (told.at_ns != 0 && now_ns - told.at_ns < kPauseNs)) continue;
    told = {state.failing, now_ns};
    out.push_back(state);
  }
  return out;
}

void SinkWatch::look(const Outputs& outputs, std::uint64_t now_ns) {
  std::vector<SinkState> states;
  for (const Outputs::Named& named : outputs.all()) {
    const sink::QueueCounts counts = named.queue->counts();
    states.push_back({std::string(named.queue->name()), counts.failing, counts.last_error});
  }
  for (const SinkState& state : changed(states, now_ns)) {
    if (state.failing)
      note(Level::kWarning, sink::MessageId::kSinkFailing,
           "output " + state.name + " does not take what it is given: " + base::escaped(state.error) +
               "; others go on, what finds no room is dropped and counted",
           state.name);
    else
      say(Level::kNotice, "output " + state.name + " takes items again");
  }
}

}  // namespace gpuwatch::daemon
