// SPDX-License-Identifier: Apache-2.0
// Items: makes what sinks get from events, rules that matched, and losses. One
// item a call, shared by all sinks. It decides nothing and keeps nothing but the
// machine's name and clock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/matcher.h"
#include "model/gpu.h"
#include "publish/json.h"
#include "publish/text.h"
#include "sink/sink.h"

namespace gpuwatch::daemon {

// Items that a sink had not taken when the process before this one was killed:
// at most so many did not go out.
inline constexpr std::string_view kUnsent = "unsent";

struct Loss {
  std::string source;  // "ring", "queue", "daemon", "sink"
  std::string reason;  // "ring_full", "flood", "full", "restart", "not_running", "unsent"
  std::uint64_t lost = 0;
  std::uint64_t total = 0;
  std::uint64_t cgroup_id = 0;
  std::string words;  // more for people; empty: none
  std::string name;   // which sink
};

class Items {
 public:
  Items(std::string host_name, std::int64_t realtime_offset_ns);

  void use_gpus(const model::GpuList* gpus) { json_.gpus = text_.gpus = gpus; }

  sink::ItemPtr event(const model::StoryEvent& event, const model::Actor& actor) const;
  // `cause`: the item of the event or loss that the rule matched.
  sink::ItemPtr alert(const sink::Item& cause, std::uint64_t time_ns, const Hit& hit, const std::string& id) const;
  sink::ItemPtr loss(const Loss& loss, std::uint64_t now_ns) const;

 private:
  std::string host_name_;
  std::int64_t realtime_offset_ns_;
  publish::JsonOptions json_;
  publish::TextOptions text_;
};

}  // namespace gpuwatch::daemon
