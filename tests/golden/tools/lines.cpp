// SPDX-License-Identifier: Apache-2.0
// golden-lines [STORY]: one line of each form of alert and loss, and of what
// subscribers see, by the real writers; an alert is about the event STORY, a
// line of JSON. golden-lines --status|--top: see made_up.h.
#include <cstdio>
#include <string>
#include <vector>

#include "made_up.h"
#include "netlink/print.h"
#include "publish/alert_json.h"

namespace {

using namespace gpuwatch::netlink;

// Everything that an event can have, and the least.
void append_subscribers_lines(std::string& out) {
  const Stamp stamp{7, 1, 2, 0xabc};
  Event event;
  event.stamp = stamp;
  append_json(out, event);
  event.pid = event.tid = event.uid = 5;
  event.start_ns = event.cgroup_id = event.file_id = event.image_id = event.image_bytes = 9;
  event.comm = "a\xff";
  event.node_kind = event.rdev = event.gpu_minor = event.open_flags = event.image_kind = 2;
  event.result = -13;
  event.symbol = "cuModuleLoadData";
  event.module = "nvidia";
  event.losses = {{1, 2, 3}};
  for (std::uint32_t kind = 0; kind < 20; ++kind) {
    event.kind = static_cast<EventKind>(kind);
    event.value = 1;
    append_json(out, event);
  }
  Verdict verdict;
  verdict.stamp = stamp;
  append_json(out, verdict);
  verdict.said.rule = "unknown-code";
  verdict.said.text = "text";
  verdict.said.container = "0123";
  verdict.said.pid = 3;
  verdict.said.start_ns = verdict.said.cgroup_id = 4;
  verdict.said.gpu_minor = 0;
  verdict.said.digest.emplace();
  append_json(out, verdict);
  append_json(out, Heartbeat{stamp, Group::kVerdicts, 1000});
  append_json(out, Loss{Group::kEvents, LossReason::kMissing, 4, 1});
  append_json(out, Loss{Group::kVerdicts, LossReason::kOverrun, {}, 1});
  append_json(out, Membership{Group::kEvents, 1, true});
}

}  // namespace

int main(int argc, char** argv) {
  using namespace gpuwatch::publish;
  std::string out;
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "--status" || what == "--top") {
    out = what == "--top" ? gpuwatch::golden::made_up_holdings() : gpuwatch::golden::made_up_status();
    std::fwrite(out.data(), 1, out.size(), stdout);
    return 0;
  }
  const std::vector<std::string> attack = {"T1496", "T1496.001"};
  AlertLine alert;
  alert.time_ns = 1;
  alert.alert_id = "0123";
  alert.rule = "unknown-code";
  alert.severity = "critical";
  append_json_alert(out, alert);
  alert.time_unix_ns = 2;
  alert.host_name = "node";
  alert.title = "names \xff from \"programs\"\n";
  alert.verdict = "known-kernels";
  alert.attack = attack;
  alert.suppressed = 3;
  alert.event = "module.load";
  append_json_alert(out, alert);
  if (argc > 1) {
    alert.story = argv[1];
    append_json_alert(out, alert);
  }
  LossLine loss;
  loss.source = "ring";
  loss.reason = "ring_full";
  append_json_loss(out, loss);
  loss.time_ns = 1;
  loss.time_unix_ns = 2;
  loss.host_name = "node";
  loss.source = "sink";
  loss.name = "webhook";
  loss.reason = "full";
  loss.lost = 3;
  loss.lost_total = 4;
  loss.cgroup_id = 5;
  append_json_loss(out, loss);
  append_subscribers_lines(out);
  std::fwrite(out.data(), 1, out.size(), stdout);
  return 0;
}
