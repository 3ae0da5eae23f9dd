// SPDX-License-Identifier: Apache-2.0
// golden-lines [STORY]: one line of each form of alert and loss, by the real
// writer; the first alert is about the event STORY, a line of JSON.
#include <cstdio>
#include <string>
#include <vector>

#include "publish/alert_json.h"

int main(int argc, char** argv) {
  using namespace gpuwatch::publish;
  std::string out;
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
  std::fwrite(out.data(), 1, out.size(), stdout);
  return 0;
}
