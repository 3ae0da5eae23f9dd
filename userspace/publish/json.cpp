// SPDX-License-Identifier: Apache-2.0
// See json.h. Every key written here is described in man/gpuwatch-json.5.md; a
// test compares the two. Keys whose value is not known are left out.
#include "publish/json.h"

#include "model/definitions.h"
#include "publish/fields.h"
#include "publish/format.h"
#include "publish/json_common.h"
#include "publish/text.h"

namespace gpuwatch::publish {

namespace {

using json::Object;
using model::Call;
using model::CallKind;
using model::Field;

std::string_view type_of(CallKind kind) {
  switch (kind) {
    case CallKind::kOpen:
      return "open";
    case CallKind::kIoctl:
      return "ioctl";
    case CallKind::kMmap:
      return "mmap";
    case CallKind::kRelease:
      return "release";
    case CallKind::kTask:
      return "task";
    case CallKind::kCgroup:
      return "cgroup";
    case CallKind::kState:
      return "state";
    case CallKind::kImage:
      return "image";
    case CallKind::kMalformed:
      return "malformed";
    case CallKind::kUnknown:
      break;
  }
  return "unknown";
}

void write_node(Object& json, const Call& call) {
  std::string& out = json.key("node");
  out += '"';
  append_node(out, call);
  out += '"';
  json.hex("file_id", call.record.head.file_id);
}

void write_outcome(Object& json, const Call& call) {
  json.signed_number("ret", call.ret);
  json.errno_name("errno_name", call.ret);
  if (call.has(Field::kStatus)) {
    json.number("status", call.get(Field::kStatus));
    json.text_if("status_name", call.status_name);
  }
  json.flag("failed", call.failed);
  if (call.denied) json.flag("denied", true);
  json.number("duration_ns", call.duration_ns);
}

void write_ioctl(Object& json, const Call& call) {
  const gpuwatch_rec& head = call.record.head;
  json.hex("request", call.request);
  json.number("number", call.number);
  json.text_if("name", call.name);
  if (call.has(Field::kClass)) {
    json.hex("class_id", call.get(Field::kClass));
    json.text_if("class_name", call.detail);
  } else if (call.has(Field::kControl)) {
    json.hex("control_id", call.get(Field::kControl));
    json.text_if("control_name", call.detail);
    json.text_if("control_interface", call.interface);
    json.text_if("control_privilege", call.privilege);
  }
  struct Key {
    std::string_view name;
    Field field;
    bool hex;
  };
  static constexpr Key kKeys[] = {
      {"client", Field::kClient, true},
      {"parent", Field::kParent, true},
      {"object", Field::kObject, true},
      {"source_client", Field::kSourceClient, true},
      {"source_object", Field::kSourceObject, true},
      {"function", Field::kFunction, false},
      {"device_instance", Field::kDevice, false},
      {"engine_type", Field::kEngine, false},
      {"entries", Field::kEntries, false},
      {"memory_bytes", Field::kBytes, false},
      {"address", Field::kAddress, true},
      {"offset_bytes", Field::kOffset, false},
      {"length_bytes", Field::kLength, false},
      {"flags", Field::kFlags, true},
      {"params_bytes", Field::kParamsSize, false},
  };
  for (const Key& key : kKeys) {
    if (!call.has(key.field)) continue;
    if (key.hex)
      json.hex(key.name, call.get(key.field));
    else
      json.number(key.name, call.get(key.field));
  }
  if (call.has(Field::kFd)) json.signed_number("fd", static_cast<std::int32_t>(call.get32(Field::kFd)));
  json.number("arg_bytes", call.arg_bytes);
  json.number_if("expected_arg_bytes", call.expected_bytes);
  json.number_if("expected_params_bytes", call.params_expected_bytes);
  if (!call.named) json.flag("named", false);
  if (call.truncated) json.flag("truncated", true);
  if ((head.flags & GPUWATCH_F_COMPAT) != 0) json.flag("compat", true);
  if ((head.flags & GPUWATCH_F_XFER) != 0) json.flag("xfer", true);
}

void write_mmap(Object& json, const Call& call) {
  const std::uint64_t flags = call.get(Field::kFlags);
  json.hex("address", call.get(Field::kAddress));
  json.number("length_bytes", call.get(Field::kLength));
  json.number("offset_bytes", call.get(Field::kOffset));
  json.flag("readable", (flags & 1) != 0);
  json.flag("writable", (flags & 2) != 0);
  json.flag("executable", (flags & 4) != 0);
  json.flag("shared", (flags & model::kMmapShared) != 0);
}

void write_open(Object& json, const Call& call) {
  json.hex("flags", call.get(Field::kFlags));
  if (const auto node = model::parse_open_node(call.record)) {
    json.number("node_inode", node->ino);
    json.number("node_device", node->dev);
  }
}

void write_definition(Object& json, const Call& call) {
  if (const auto task = model::parse_task(call.record)) {
    json.text_if("exe_path", task->path);
    json.number("ns_pid", task->fixed.ns_tgid);
    json.number("ns_level", task->fixed.ns_level);
    json.number("pid_ns", task->fixed.pid_ns);
    json.number("parent_pid", task->fixed.parent_tgid);
    json.number("parent_start_ns", task->fixed.parent_start_ns);
    json.number("exe_inode", task->fixed.exe_ino);
    json.number("exe_device", task->fixed.exe_dev);
    json.number_if("exec_id", task->more.exec_id);
  } else if (const auto cgroup = model::parse_cgroup(call.record)) {
    json.number("cgroup_id", call.record.head.cgroup_id);
    json.number("cgroup_version", cgroup->fixed.version);
    json.text("cgroup_path", cgroup->path);
  } else if (const auto state = model::parse_state(call.record)) {
    write_state_values(json, state->event, state->value, state->error, state->name);
  }
}

void write_image(Object& json, const Call& call) {
  const auto image = model::parse_image(call.record);
  if (!image) return;
  const gpuwatch_rec_image& fixed = image->fixed;
  json.text("symbol", image->symbol);
  json.text("image_kind", format::image_kind_name(fixed.kind));
  json.number_if("image_id", fixed.id);
  json.hex("address", fixed.address);
  if (fixed.kind == GPUWATCH_IMAGE_PATH) {
    json.text("path", image->path());
  } else if (fixed.kind != GPUWATCH_IMAGE_CALL) {
    json.hex("image_address", fixed.image_address);
    json.number("image_bytes", fixed.bytes);
    json.number("stored_bytes", fixed.copied_bytes);
    json.number("parts", fixed.nr_parts);
    std::string digits;
    for (const char c : image->head) {
      static constexpr char kDigits[] = "0123456789abcdef";
      digits += kDigits[static_cast<unsigned char>(c) >> 4];
      digits += kDigits[static_cast<unsigned char>(c) & 15];
    }
    json.text_if("head_hex", digits);
  }
  std::string flags;
  format::each_image_flag(fixed.flags, [&](std::string_view name) {
    if (!flags.empty()) flags += ' ';
    flags += name;
  });
  json.text_if("image_flags", flags);
  json.number("probe", fixed.probe);
  json.number("library_inode", fixed.library_ino);
  json.number("library_device", fixed.library_dev);
  json.number("duration_ns", fixed.duration_ns);
}

void write_task_head(Object& json, const gpuwatch_rec& head) {
  json.number("pid", head.tgid);
  json.number("process_start_ns", head.start_ns);
  json.text("comm", model::comm_of(head));
}

}  // namespace

void append_json_line(std::string& out, const Call& call, const model::Actor& actor, const JsonOptions& options,
                      const model::Description* fields) {
  const gpuwatch_rec& head = call.record.head;
  Object json(out);
  write_head(json, type_of(call.kind), head, options);
  switch (call.kind) {
    case CallKind::kIoctl:
    case CallKind::kMmap:
    case CallKind::kOpen:
    case CallKind::kRelease:
      write_actor(json, head, actor);
      write_node(json, call);
      if (head.node_kind == GPUWATCH_NODE_GPU) write_gpu(json, static_cast<std::int32_t>(head.rdev & 0xfffff), options);
      if (call.kind == CallKind::kIoctl) write_ioctl(json, call);
      if (call.kind == CallKind::kMmap) write_mmap(json, call);
      if (call.kind == CallKind::kOpen) write_open(json, call);
      write_outcome(json, call);
      break;
    case CallKind::kTask:
      write_task_head(json, head);
      write_definition(json, call);
      break;
    case CallKind::kCgroup:
    case CallKind::kState:
      write_definition(json, call);
      break;
    case CallKind::kImage:
      write_actor(json, head, actor);
      write_image(json, call);
      break;
    case CallKind::kMalformed:
    case CallKind::kUnknown:
      json.number("record_type", head.type);
      break;
  }
  write_recorder(json, head);
  if (fields != nullptr && call.kind == CallKind::kIoctl) append_json_parts(json.key("parts"), *fields);
}

void append_json_lone_call(std::string& out, const LoneCall& lone, const Call& call,
                           const model::Description& description) {
  Object json(out);
  json.number("schema", kJsonSchema);
  json.text("type", type_of(call.kind));
  json.text_if("driver", lone.driver);
  json.text("driver_from", lone.driver_from);
  json.text("branch", lone.branch);
  json.flag("inherited", lone.inherited);
  std::string& node = json.key("node");
  node += '"';
  append_node(node, call);
  node += '"';
  write_ioctl(json, call);
  if (lone.outcome_known) {
    json.signed_number("ret", call.ret);
    json.errno_name("errno_name", call.ret);
    if (call.has(Field::kStatus)) {
      json.number("status", call.get(Field::kStatus));
      json.text_if("status_name", call.status_name);
    }
    json.flag("failed", call.failed);
    if (call.denied) json.flag("denied", true);
  }
  append_json_parts(json.key("parts"), description);
}

}  // namespace gpuwatch::publish
