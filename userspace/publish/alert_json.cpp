// SPDX-License-Identifier: Apache-2.0
// See alert_json.h.
#include "publish/alert_json.h"

#include "publish/json.h"
#include "publish/json_object.h"

namespace gpuwatch::publish {

namespace {

void write_line_head(json::Object& json, std::string_view type, std::uint64_t time_ns, std::uint64_t time_unix_ns,
                     std::string_view host_name) {
  json.number("schema", kJsonSchema);
  json.text("type", type);
  json.number("time_ns", time_ns);
  json.number_if("time_unix_ns", time_unix_ns);
  json.text_if("host_name", host_name);
}

}  // namespace

void append_json_alert(std::string& out, const AlertLine& alert) {
  json::Object json(out);
  write_line_head(json, "alert", alert.time_ns, alert.time_unix_ns, alert.host_name);
  json.text("alert_id", alert.alert_id);
  json.text("rule", alert.rule);
  json.text("severity", alert.severity);
  json.text_if("title", alert.title);
  json.text_if("verdict", alert.verdict);
  if (!alert.attack.empty()) {
    std::string& list = json.key("attack");
    char before = '[';
    for (const std::string& id : alert.attack) {
      list += before;
      before = ',';
      json::append_string(list, id);
    }
    list += ']';
  }
  json.number_if("suppressed", alert.suppressed);
  json.text_if("event", alert.event);
  std::string_view story = alert.story;
  while (story.ends_with('\n')) story.remove_suffix(1);
  if (!story.empty()) json.key("story") += story;
}

void append_json_loss(std::string& out, const LossLine& loss) {
  json::Object json(out);
  write_line_head(json, "loss", loss.time_ns, loss.time_unix_ns, loss.host_name);
  json.text("source", loss.source);
  json.text_if("name", loss.name);
  json.text("reason", loss.reason);
  json.number("lost", loss.lost);
  json.number("lost_total", loss.lost_total);
  json.number_if("cgroup_id", loss.cgroup_id);
}

}  // namespace gpuwatch::publish
