// SPDX-License-Identifier: Apache-2.0
// See json_common.h.
#include "publish/json_common.h"

#include "model/definitions.h"
#include "publish/format.h"

namespace gpuwatch::publish {

using json::append_string;
using json::Object;

namespace {

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

}  // namespace

void write_head(Object& json, std::string_view type, const gpuwatch_rec& head, const JsonOptions& options) {
  json.number("schema", kJsonSchema);
  json.text("type", type);
  json.number("time_ns", head.time_ns);
  if (options.realtime_offset_ns != 0)
    json.number("time_unix_ns", head.time_ns + static_cast<std::uint64_t>(options.realtime_offset_ns));
  json.number("cpu", head.cpu);
  json.number("seq", head.seq);
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

void write_recorder(Object& json, const gpuwatch_rec& head) {
  if ((head.flags & GPUWATCH_F_PRELOAD) != 0) json.text("recorder", "preload");
}

}  // namespace gpuwatch::publish
