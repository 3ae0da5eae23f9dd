// SPDX-License-Identifier: Apache-2.0
// See print.h. Keys are those of the other lines where the meaning is the same.
#include <linux/gpuwatch_genl.h>

#include "netlink/print.h"
#include "publish/json.h"
#include "publish/json_object.h"

namespace gpuwatch::netlink {

namespace {

using publish::json::Object;

void write_stamp(Object& json, std::string_view type, Group group, const Stamp& stamp) {
  json.number("schema", publish::kJsonSchema);
  json.text("type", type);
  json.text("group", group_name(group));
  json.number("time_ns", stamp.time_ns);
  json.number("time_unix_ns", stamp.realtime_ns);
  json.number("seq", stamp.seq);
  json.hex("module_instance", stamp.instance);
}

template <typename T>
void number_if(Object& json, std::string_view name, const std::optional<T>& value) {
  if (value) json.number(name, *value);
}

void write_losses(Object& json, const std::vector<LossCount>& losses) {
  if (losses.empty()) return;
  std::string& out = json.key("losses");
  out += '[';
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (i != 0) out += ',';
    Object one(out, "}");
    one.text("reason", named(cause_word(losses[i].cause), losses[i].cause));
    one.number("lost", losses[i].count);
    one.number("lost_total", losses[i].total);
  }
  out += ']';
}

void write(Object& json, const Event& event) {
  write_stamp(json, "kernel_event", Group::kEvents, event.stamp);
  json.text("event", named(event_word(event.kind), static_cast<std::uint32_t>(event.kind)));
  number_if(json, "pid", event.pid);
  number_if(json, "tid", event.tid);
  number_if(json, "uid", event.uid);
  number_if(json, "process_start_ns", event.start_ns);
  if (event.pid) json.text("comm", event.comm);
  number_if(json, "cgroup_id", event.cgroup_id);
  if (event.node_kind) json.text("node_kind", named(node_word(*event.node_kind), *event.node_kind));
  number_if(json, "gpu_minor", event.gpu_minor);
  if (event.rdev) {
    json.number("rdev_major", *event.rdev >> 20);
    json.number("rdev_minor", *event.rdev & 0xfffff);
  }
  if (event.file_id) json.hex("file_id", *event.file_id);
  if (event.open_flags) json.hex("open_flags", *event.open_flags);
  if (event.result) json.errno_name("errno_name", *event.result);
  number_if(json, "image_id", event.image_id);
  number_if(json, "image_bytes", event.image_bytes);
  if (event.image_kind) json.text("image_kind", named(image_word(*event.image_kind), *event.image_kind));
  json.text_if("symbol", event.symbol);
  json.text_if("module", event.module);
  if (event.value && (event.kind == EventKind::kHooked || event.kind == EventKind::kHookFailed))
    json.text("op", named(op_word(*event.value), *event.value));
  else if (event.value && event.kind == EventKind::kAttached)
    json.number("functions", *event.value);
  else if (event.value && event.kind == EventKind::kPlan)
    json.number("plan", *event.value);
  write_losses(json, event.losses);
}

void write(Object& json, const Verdict& verdict) {
  const VerdictMessage& said = verdict.said;
  write_stamp(json, "kernel_verdict", Group::kVerdicts, verdict.stamp);
  json.text("verdict", named(verdict_word(said.verdict), static_cast<std::uint32_t>(said.verdict)));
  json.text("severity", named(severity_word(said.severity), static_cast<std::uint32_t>(said.severity)));
  json.text_if("rule", said.rule);
  json.text_if("title", said.text);
  number_if(json, "pid", said.pid);
  number_if(json, "process_start_ns", said.start_ns);
  number_if(json, "cgroup_id", said.cgroup_id);
  json.text_if("container_id", said.container);
  number_if(json, "gpu_minor", said.gpu_minor);
  if (said.digest) {
    std::string hex;
    for (const std::byte byte : *said.digest) {
      static constexpr char kDigits[] = "0123456789abcdef";
      hex += kDigits[std::to_integer<unsigned>(byte) >> 4];
      hex += kDigits[std::to_integer<unsigned>(byte) & 15];
    }
    json.text("r", hex);
  }
  json.number("submitter_pid", verdict.submitter_pid);
  json.number("submitter_uid", verdict.submitter_uid);
}

void write(Object& json, const Heartbeat& beat) {
  write_stamp(json, "heartbeat", beat.group, beat.stamp);
  json.number("period_ms", beat.period_ms);
}

void write(Object& json, const Loss& loss) {
  json.number("schema", publish::kJsonSchema);
  json.text("type", "loss");
  json.text("group", group_name(loss.group));
  json.number("time_unix_ns", loss.realtime_ns);
  json.text("source", "netlink");
  json.text("reason", loss_reason_word(loss.reason));
  if (loss.count) json.number("lost", *loss.count);
}

void write(Object& json, const Membership& membership) {
  json.number("schema", publish::kJsonSchema);
  json.text("type", "membership");
  json.text("group", group_name(membership.group));
  json.number("time_unix_ns", membership.realtime_ns);
  json.flag("joined", membership.joined);
}

}  // namespace

void append_json(std::string& out, const Item& item) {
  Object json(out);
  std::visit([&](const auto& one) { write(json, one); }, item);
}

}  // namespace gpuwatch::netlink
