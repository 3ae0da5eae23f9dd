// SPDX-License-Identifier: Apache-2.0
// Lines of alerts and losses: valid JSON whatever the strings are, and what is
// not known is left out.
#include "publish/alert_json.h"

#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "publish/json.h"

namespace gpuwatch::publish {
namespace {

using Json = nlohmann::json;

TEST(AlertJson, Whole) {
  const std::vector<std::string> attack = {"T1496.001", "T1014"};
  AlertLine alert;
  alert.time_ns = 5;
  alert.time_unix_ns = 6;
  alert.host_name = "node-7";
  alert.alert_id = "a1";
  alert.rule = "unknown\"\n\xff";
  alert.severity = "critical";
  alert.title = "GPU code that no baseline knows";
  alert.verdict = "unknown";
  alert.attack = attack;
  alert.suppressed = 3;
  alert.event = "module.load";
  alert.story = "{\"schema\":2,\"type\":\"story\"}\n";
  std::string out;
  append_json_alert(out, alert);
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 1);
  const Json json = Json::parse(out);
  EXPECT_EQ(json["schema"], kJsonSchema);
  EXPECT_EQ(json["type"], "alert");
  EXPECT_EQ(json["time_ns"], 5);
  EXPECT_EQ(json["time_unix_ns"], 6);
  EXPECT_EQ(json["host_name"], "node-7");
  EXPECT_EQ(json["alert_id"], "a1");
  EXPECT_EQ(json["rule"], "unknown\"\n\xEF\xBF\xBD");
  EXPECT_EQ(json["severity"], "critical");
  EXPECT_EQ(json["verdict"], "unknown");
  EXPECT_EQ(json["attack"], Json(attack));
  EXPECT_EQ(json["suppressed"], 3);
  EXPECT_EQ(json["event"], "module.load");
  EXPECT_EQ(json["story"]["type"], "story");
}

TEST(AlertJson, WhatIsNotKnownIsLeftOut) {
  AlertLine alert;
  alert.alert_id = "a";
  alert.rule = "r";
  alert.severity = "info";
  std::string out;
  append_json_alert(out, alert);
  EXPECT_EQ(
      out, "{\"schema\":2,\"type\":\"alert\",\"time_ns\":0,\"alert_id\":\"a\",\"rule\":\"r\",\"severity\":\"info\"}\n");
}

TEST(AlertJson, Loss) {
  LossLine loss;
  loss.time_ns = 9;
  loss.source = "sink";
  loss.name = "webhook";
  loss.reason = "full";
  loss.lost = 4;
  loss.lost_total = 10;
  loss.cgroup_id = 77;
  std::string out;
  append_json_loss(out, loss);
  EXPECT_EQ(
      out,
      "{\"schema\":2,\"type\":\"loss\",\"time_ns\":9,\"source\":\"sink\",\"name\":\"webhook\",\"reason\":\"full\","
      "\"lost\":4,\"lost_total\":10,\"cgroup_id\":77}\n");
}

}  // namespace
}  // namespace gpuwatch::publish
