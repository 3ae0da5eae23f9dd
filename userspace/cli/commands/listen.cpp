// SPDX-License-Identifier: Apache-2.0
// `gpuwatch listen`: what the kernel module tells its subscribers, as lines. Loss
// is told where it is, and as a total at the end. It changes nothing but one
// thing: while somebody listens, the module looks at opens and closes.
#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "cli/view.h"
#include "netlink/print.h"
#include "netlink/subscriber.h"

namespace gpuwatch::cli {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

constexpr std::chrono::milliseconds kLook{200};
constexpr std::uint64_t kBufferMin = 4096;
constexpr std::uint64_t kBufferMax = 1 << 30;

struct ListenPlan {
  netlink::SubscriberOptions options;
  bool json = false;
  bool heartbeats = false;
  std::optional<std::uint64_t> count;
  std::optional<std::chrono::nanoseconds> duration;
  netlink::TextStyle style;
};

Result<ListenPlan> plan_of(const Flags& flags) {
  ListenPlan plan;
  for (const std::string& name : flags.list("group")) {
    const auto group = name == netlink::group_name(netlink::Group::kEvents)     ? netlink::Group::kEvents
                       : name == netlink::group_name(netlink::Group::kVerdicts) ? netlink::Group::kVerdicts
                                                                                : netlink::Group{0xff};
    if (group == netlink::Group{0xff})
      return Error(Code::kBadInput, "--group: '" + name + "' is none of events, verdicts");
    if (std::find(plan.options.groups.begin(), plan.options.groups.end(), group) == plan.options.groups.end())
      plan.options.groups.push_back(group);
  }
  if (plan.options.groups.empty()) plan.options.groups = {netlink::Group::kEvents, netlink::Group::kVerdicts};
  if (const auto bytes = flags.number("buffer-bytes")) {
    if (*bytes < kBufferMin || *bytes > kBufferMax) return Error(Code::kBadInput, "--buffer-bytes: wants 4K to 1G");
    plan.options.buffer_bytes = *bytes;
  }
  plan.json = flags.has("json");
  plan.heartbeats = flags.has("heartbeats");
  plan.count = flags.number("count");
  plan.duration = flags.duration("duration");
  plan.style.colour = !plan.json && wants_colour();
  plan.style.utc_offset_s = flags.has("utc") ? 0 : local_utc_offset_s(base::realtime_ns());
  return plan;
}

}  // namespace

Result<int> run_listen(const Flags& flags) {
  auto plan = plan_of(flags);
  if (!plan) return std::move(plan.error());
  auto subscriber = netlink::Subscriber::open(plan->options);
  if (!subscriber) return std::move(subscriber.error());
  Output output;
  std::uint64_t lines = 0;
  const auto print = [&](const netlink::Item& item) {
    if (std::holds_alternative<netlink::Heartbeat>(item) && !plan->heartbeats) return true;
    if (plan->json)
      netlink::append_json(output.buffer(), item);
    else
      netlink::append_text(output.buffer(), item, plan->style);
    ++lines;
    return !plan->count || lines < *plan->count;
  };
  const auto begin = std::chrono::steady_clock::now();
  Status status;
  // Before the first wait: who starts it with a pipe behind it may wait for this line.
  std::string groups;
  for (const netlink::Group group : plan->options.groups)
    groups += (groups.empty() ? "" : ", ") + std::string(netlink::group_name(group));
  say("listening to " + groups);
  while (status.ok() && !stop_wanted() && !output.closed() && !(plan->count && lines >= *plan->count)) {
    auto wait = kLook;
    if (plan->duration) {
      const auto left = *plan->duration - (std::chrono::steady_clock::now() - begin);
      if (left <= left.zero()) break;
      wait = std::min(wait, std::chrono::ceil<std::chrono::milliseconds>(left));
    }
    status = (*subscriber)->poll(wait, print);
    if (Status written = output.flush(); status.ok() && !written.ok()) status = std::move(written);
  }
  const auto totals = (*subscriber)->totals();
  say(netlink::loss_summary(totals));
  if (!status.ok()) return std::move(status.error());
  return totals.any_loss() ? kExitFinding : kExitOk;
}

}  // namespace gpuwatch::cli
