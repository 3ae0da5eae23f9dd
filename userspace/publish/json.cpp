// SPDX-License-Identifier: Apache-2.0
// See json.h. Every key written here is described in man/gpuwatch-json.5.md; a
// test compares the two. Keys whose value is not known are left out.
#include "publish/json.h"

#include <algorithm>

#include "model/definitions.h"
#include "publish/fields.h"
#include "publish/format.h"
#include "publish/json_object.h"
#include "publish/text.h"

namespace gpuwatch::publish {

namespace {

using json::append_string;
using json::Object;
using model::Call;
using model::CallKind;
using model::Field;
using model::StoryEvent;
using model::StoryKind;

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
    case CallKind::kMalformed:
      return "malformed";
    case CallKind::kUnknown:
      break;
  }
  return "unknown";
}

void write_head(Object& json, std::string_view type, const gpuwatch_rec& head, const JsonOptions& options) {
  json.number("schema", kJsonSchema);
  json.text("type", type);
  json.number("time_ns", head.time_ns);
  if (options.realtime_offset_ns != 0)
    json.number("time_unix_ns", head.time_ns + static_cast<std::uint64_t>(options.realtime_offset_ns));
  json.number("cpu", head.cpu);
  json.number("seq", head.seq);
}

void write_chain(Object& json, const model::Actor& actor) {
  std::string& out = json.key("container_chain");
  char before = '[';
  for (const model::ContainerRef& container : actor.chain) {
    out += before;
    before = ',';
    std::string text(container.runtime);
    text += ':';
    text += container.id;
    append_string(out, text);
  }
  out += ']';
}

void write_labels(Object& json, const model::Actor& actor) {
  std::string& out = json.key("container_labels");
  char before = '{';
  for (const model::Label& label : actor.labels) {
    out += before;
    before = ',';
    append_string(out, label.key);
    out += ':';
    append_string(out, label.value);
  }
  out += '}';
}

// Ids in all pid namespaces the process is in, where it is in more than one.
void write_ns_pids(Object& json, const std::vector<std::uint32_t>& pids) {
  if (pids.size() < 2) return;
  std::string& out = json.key("ns_pids");
  for (std::size_t i = 0; i < pids.size(); ++i) {
    out += i == 0 ? '[' : ',';
    format::append_number(out, pids[i]);
  }
  out += ']';
}

void write_actor(Object& json, const gpuwatch_rec& head, const model::Actor& actor) {
  json.number("pid", head.tgid);
  json.number("tid", head.tid);
  json.number("uid", head.uid);
  json.number("process_start_ns", head.start_ns);
  json.text("comm", model::comm_of(head));
  json.number_if("ns_pid", actor.ns_tgid);
  if (actor.process != nullptr) {
    write_ns_pids(json, actor.process->ns_pids);
    json.text_if("exe_state", model::exe_state_name(actor.process->exe_state));
  }
  json.text_if("exe_path", actor.exe);
  json.text_if("user_name", actor.user_name);
  json.number("cgroup_id", head.cgroup_id);
  json.text_if("cgroup_path", actor.cgroup_path);
  json.text_if("container_runtime", actor.runtime);
  json.text_if("container_id", actor.container_id);
  json.text_if("pod_uid", actor.pod_uid);
  if (actor.chain.size() > 1) write_chain(json, actor);
  json.text_if("qos", actor.qos);
  json.text_if("unit", actor.unit);
  if (actor.user) json.number("user", *actor.user);
  if (actor.slurm_job) json.number("slurm_job", *actor.slurm_job);
  json.text_if("slurm_step", actor.slurm_step);
  json.text_if("container_name", actor.container_name);
  json.text_if("container_image", actor.image);
  json.text_if("pod_name", actor.pod_name);
  json.text_if("pod_namespace", actor.pod_namespace);
  if (!actor.labels.empty()) write_labels(json, actor);
}

void write_ancestors(Object& json, const std::vector<model::Ancestor>& ancestors) {
  if (ancestors.empty()) return;
  std::string& out = json.key("ancestors");
  for (std::size_t i = 0; i < ancestors.size(); ++i) {
    const model::Ancestor& ancestor = ancestors[i];
    out += i == 0 ? "[{\"pid\":" : ",{\"pid\":";
    format::append_number(out, ancestor.tgid);
    if (ancestor.ns_tgid != 0) format::append_number(out += ",\"ns_pid\":", ancestor.ns_tgid);
    format::append_number(out += ",\"start_ns\":", ancestor.start_ns);
    if (!ancestor.comm.empty()) append_string(out += ",\"comm\":", ancestor.comm);
    out += '}';
  }
  out += ']';
}

// What of the process does not fit in every line.
void write_process(Object& json, const model::Actor& actor) {
  if (actor.process == nullptr) return;
  const model::Process& process = *actor.process;
  json.number_if("exe_inode", process.exe_ino);
  json.number_if("exe_device", process.exe_dev);
  json.number_if("pid_ns", process.pid_ns);
  write_ancestors(json, process.ancestors);
  if (process.source == model::ProcessSource::kProc) json.text("process_source", "proc");
}

void write_gpu(Object& json, std::int32_t minor, const JsonOptions& options) {
  const model::Gpu* gpu = options.gpus == nullptr ? nullptr : model::find_gpu(*options.gpus, minor);
  if (gpu == nullptr) return;
  json.text_if("gpu_uuid", gpu->uuid);
  json.text_if("gpu_pci", gpu->pci);
  json.text_if("gpu_name", gpu->name);
}

// The part of a GPU in MIG mode that the process's capability nodes stand for.
void write_mig(Object& json, const model::Actor& actor, const JsonOptions& options) {
  if (actor.process == nullptr || options.gpus == nullptr) return;
  model::MigPlace place;
  for (const std::int32_t cap : actor.process->cap_minors) {
    const model::MigPlace found = model::find_mig(*options.gpus, cap);
    if (found.mig != nullptr && (place.mig == nullptr || place.mig->compute_instance < 0)) place = found;
  }
  if (place.mig == nullptr) return;
  json.signed_number("mig_gpu_minor", place.gpu->minor);
  json.signed_number("mig_gpu_instance", place.mig->gpu_instance);
  if (place.mig->compute_instance >= 0) json.signed_number("mig_compute_instance", place.mig->compute_instance);
  json.text_if("mig_uuid", place.mig->uuid);
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

void write_state_values(Object& json, std::uint32_t event, std::uint32_t value, std::int64_t error,
                        std::string_view module) {
  const std::string_view name = format::state_name(event);
  if (!name.empty())
    json.text("state", name);
  else
    json.number("state_number", event);
  json.text_if("module", module);
  json.number_if("state_value", value);
  json.errno_name("errno_name", error);
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

void write_recorder(Object& json, const gpuwatch_rec& head) {
  if ((head.flags & GPUWATCH_F_PRELOAD) != 0) json.text("recorder", "preload");
}

void write_task_head(Object& json, const gpuwatch_rec& head) {
  json.number("pid", head.tgid);
  json.number("process_start_ns", head.start_ns);
  json.text("comm", model::comm_of(head));
}

void write_story_memory(Object& json, const StoryEvent& event) {
  json.text("memory", event.host_memory ? "host" : "gpu");
  json.number("bytes", event.bytes);
  json.number("total_bytes", event.total_bytes);
}

void write_engines(Object& json, const StoryEvent& event) {
  std::string& out = json.key("engines");
  out += '[';
  for (std::uint32_t i = 0; i < event.engine_count; ++i) {
    if (i != 0) out += ',';
    append_string(out, event.engines[i]);
  }
  out += ']';
}

void write_story(Object& json, const StoryEvent& event) {
  const std::string_view module(
      event.state_name.data(),
      std::min(std::string_view(event.state_name.data(), event.state_name.size()).find('\0'), event.state_name.size()));
  if (event.kind == StoryKind::kDriverState) {
    write_state_values(json, event.state_event, event.state_value, event.state_error, module);
    return;
  }
  if (event.gpu_minor >= 0) json.signed_number("gpu_minor", event.gpu_minor);
  if (event.gpu_device >= 0) json.signed_number("device_instance", event.gpu_device);
  json.text_if("name", event.name);
  if (event.client != 0) json.hex("client", event.client);
  if (event.object != 0) json.hex("object", event.object);
  if (event.source_client != 0) json.hex("source_client", event.source_client);
  if (event.source_object != 0) json.hex("source_object", event.source_object);
  switch (event.kind) {
    case StoryKind::kContextCreated:
      json.number("channels", event.channels);
      write_engines(json, event);
      break;
    case StoryKind::kMemoryAllocated:
    case StoryKind::kMemoryFreed:
      write_story_memory(json, event);
      break;
    case StoryKind::kMemoryRefused:
      write_story_memory(json, event);
      json.number("status", event.status);
      json.text_if("status_name", event.status_name);
      break;
    case StoryKind::kContextClosed:
      json.number("contexts", event.contexts);
      break;
    case StoryKind::kMemoryMapped:
    case StoryKind::kMemoryUnmapped:
      json.hex("address", event.address);
      json.number("bytes", event.bytes);
      break;
    case StoryKind::kOpenFailed:
      json.signed_number("ret", event.ret);
      json.errno_name("errno_name", event.ret);
      break;
    case StoryKind::kDenied:
      json.text_if("detail", event.detail);
      json.number("number", event.number);
      json.signed_number("ret", event.ret);
      json.errno_name("errno_name", event.ret);
      json.number_if("status", event.status);
      json.text_if("status_name", event.status_name);
      break;
    default:
      break;
  }
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
    case CallKind::kMalformed:
    case CallKind::kUnknown:
      json.number("record_type", head.type);
      break;
  }
  write_recorder(json, head);
  if (fields != nullptr && call.kind == CallKind::kIoctl) append_json_parts(json.key("parts"), *fields);
}

void append_json_line(std::string& out, const StoryEvent& event, const model::Actor& actor,
                      const JsonOptions& options) {
  Object json(out);
  write_head(json, "story", event.head, options);
  json.text("event", format::story_name(event.kind));
  if (event.kind != StoryKind::kDriverState) {
    write_actor(json, event.head, actor);
    write_process(json, actor);
    write_gpu(json, event.gpu_minor, options);
    write_mig(json, actor, options);
  }
  write_story(json, event);
  write_recorder(json, event.head);
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
