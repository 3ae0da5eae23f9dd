// SPDX-License-Identifier: Apache-2.0
// Story events as JSON lines: one function per body. Every key written here is
// described in man/gpuwatch-json.5.md, every kind is listed there; tests compare.
#include <algorithm>
#include <variant>

#include "publish/json_common.h"

namespace gpuwatch::publish {

namespace {

using json::Object;
using model::Party;

void write_party(Object& json, std::string_view prefix, const Party& party) {
  // "from_pid", "to_client", ...: the keys are spelled out for who searches them.
  const bool from = prefix == "from";
  const bool to = prefix == "to";
  if (party.process.tgid != 0) {
    if (from) json.number("from_pid", party.process.tgid);
    if (from) json.number("from_start_ns", party.process.start_ns);
    if (to) json.number("to_pid", party.process.tgid);
    if (to) json.number("to_start_ns", party.process.start_ns);
    if (!from && !to) json.number("target_pid", party.process.tgid);
    if (!from && !to) json.number("target_start_ns", party.process.start_ns);
  }
  if (party.client != 0) {
    if (from) json.hex("from_client", party.client);
    if (to) json.hex("to_client", party.client);
    if (!from && !to) json.hex("target_client", party.client);
  }
  if (party.object != 0) {
    if (from) json.hex("from_object", party.object);
    if (to) json.hex("to_object", party.object);
    if (!from && !to) json.hex("target_object", party.object);
  }
}

void write_handles(Object& json, std::uint32_t client, std::uint32_t object) {
  if (client != 0) json.hex("client", client);
  if (object != 0) json.hex("object", object);
}

void write_status(Object& json, std::uint32_t status, std::string_view name) {
  json.number_if("status", status);
  json.text_if("status_name", name);
}

void write_modules(std::string& out, const model::ModuleBody& body) {
  out += '[';
  for (const model::ModuleLine& module : body.modules) {
    if (out.back() != '[') out += ',';
    Object json(out, "}");
    json.text("kind", model::code_kind_name(module.kind));
    json.number_if("sm", module.sm);
    if (module.sm_suffix != 0) json.text("sm_suffix", {&module.sm_suffix, 1});
    json.text("r", model::hex_of(module.r));
    if (module.m) json.text("m", model::hex_of(*module.m));
    json.number("kernel_count", module.kernels);
    if (body.judged) json.text("verdict", model::verdict_name(module.verdict));
  }
  out += ']';
}

void write_differences(std::string& out, std::span<const model::Difference> differences) {
  out += '[';
  for (const model::Difference& difference : differences) {
    if (out.back() != '[') out += ',';
    Object json(out, "}");
    json.text_if("kernel", difference.kernel);
    json.text("section", difference.section);
    json.text("what", difference.what);
    json.text("baseline", difference.baseline);
    json.text("seen", difference.seen);
  }
  out += ']';
}

struct Writer {
  Object& json;

  void operator()(const std::monostate&) const {}
  void operator()(const model::GpuBody& body) const {
    json.text_if("node", body.node);
    if (body.ret < 0) json.signed_number("ret", body.ret);
    json.errno_name("errno_name", body.ret);
  }
  void operator()(const model::ClientBody& body) const {
    json.hex("client", body.client);
    json.number("objects", body.objects);
    json.flag("by_file", body.by_file);
  }
  void operator()(const model::ContextBody& body) const {
    json.number("context_id", body.id);
    write_handles(json, body.client, 0);
    json.hex("device", body.device);
    if (body.vaspace != 0) json.hex("vaspace", body.vaspace);
    json.hex("group", body.group);
    json.number("groups", body.groups);
    json.number("channels", body.channels);
    json.number("compute_channels", body.compute);
    json.number_if("graphics_channels", body.graphics);
    json.number_if("video_channels", body.video);
    json.number("copy_channels", body.copy);
    json.number("entries", body.entries);
    json.number("started_ns", body.started_ns);
  }
  void operator()(const model::ChannelBody& body) const {
    write_handles(json, body.client, body.object);
    if (body.group != 0) json.hex("group", body.group);
    json.number("entries", body.entries);
    json.number("engine_type", body.engine);
    json.text_if("engine", body.engine_name);
    json.text_if("class_name", body.class_name);
  }
  void operator()(const model::MemoryBody& body) const {
    json.text("location", model::location_name(body.location));
    write_handles(json, body.client, body.object);
    json.number("objects", body.objects);
    json.number("bytes", body.bytes);
    json.number("live_bytes", body.live_bytes);
    json.number("peak_bytes", body.peak_bytes);
    if (body.location == model::Location::kGpu) {
      json.number("gpu_live_bytes", body.gpu_live_bytes);
      json.number("gpu_peak_bytes", body.gpu_peak_bytes);
    }
    json.text_if("class_name", body.class_name);
    write_party(json, "from", body.from);
    write_status(json, body.status, body.status_name);
  }
  void operator()(const model::MappingBody& body) const {
    json.text("space", body.space == model::MapSpace::kCpu ? "cpu" : "gpu");
    write_handles(json, body.client, body.object);
    json.hex("address", body.address);
    json.number("bytes", body.bytes);
    json.flag("foreign", body.foreign);
    json.text_if("name", body.name);
  }
  void operator()(const model::ShareBody& body) const {
    json.text("mechanism", model::mechanism_name(body.mechanism));
    write_party(json, "from", body.from);
    write_party(json, "to", body.to);
    json.number_if("bytes", body.bytes);
    json.text_if("name", body.name);
  }
  void operator()(const model::SyncBody& body) const {
    write_handles(json, body.client, body.object);
    json.number_if("bytes", body.bytes);
    json.text_if("name", body.name);
  }
  void operator()(const model::SignBody& body) const {
    write_handles(json, body.client, body.object);
    json.text_if("name", body.name);
  }
  void operator()(const model::FaultBody& body) const {
    write_handles(json, body.client, body.object);
    json.text_if("name", body.name);
  }
  void operator()(const model::DenialBody& body) const {
    write_handles(json, body.client, body.object);
    json.text_if("name", body.name);
    json.text_if("detail", body.detail);
    json.number("number", body.number);
    json.signed_number("ret", body.ret);
    json.errno_name("errno_name", body.ret);
    write_status(json, body.status, body.status_name);
  }
  void operator()(const model::FindingBody& body) const {
    json.text("reason", body.reason);
    json.text_if("name", body.name);
    json.number("number", body.number);
    json.text_if("privilege", body.privilege);
    json.flag("mutates", body.mutates);
    json.flag("failed", body.failed);
    write_status(json, body.status, body.status_name);
    write_handles(json, body.client, body.object);
    write_party(json, "target", body.target);
  }
  void operator()(const model::AllocationBody& body) const {
    json.text("reason", body.reason);
    json.text_if("evidence", body.evidence);
  }
  void operator()(const model::ModuleBody& body) const {
    json.text_if("loader", body.loader);
    json.text("image_kind", body.image_kind);
    json.text_if("image_name", body.name);
    json.text_if("image_file", body.source);
    if (body.place != model::ImagePlace::kUnknown)
      json.text("origin", body.place == model::ImagePlace::kFile ? "file" : "memory");
    json.number("image_bytes", body.bytes);
    json.text_if("problem", body.problem);
    if (body.deciding < body.modules.size()) {
      const model::ModuleLine& module = body.modules[body.deciding];
      json.text("kind", model::code_kind_name(module.kind));
      json.number_if("sm", module.sm);
      json.text("r", model::hex_of(module.r));
      json.number("kernel_count", module.kernels);
    }
    if (body.judged) {
      json.text("verdict", model::verdict_name(body.verdict));
      json.text("why", body.why);
      json.text_if("baseline", body.baseline);
      json.text_if("known_from", body.known_from);
      if (body.allowed) json.flag("allowed", true);
    }
    write_modules(json.key("modules"), body);
    if (!body.differences.empty()) write_differences(json.key("differences"), body.differences);
  }
  void operator()(const model::UnverifiedBody& body) const {
    json.number("waited_ns", body.waited_ns);
    json.number("channels", body.channels);
  }
  void operator()(const model::ProbedBody& body) const {
    json.number("match", body.match);
    json.number("differ", body.differ);
    json.number("not_resident", body.not_resident);
    json.number("not_probed", body.not_probed);
    json.number("duration_ns", body.duration_ns);
    json.number("exit_status", body.exit_status);
    json.text_if("problem", body.problem);
  }
  void operator()(const model::DiffersBody& body) const {
    json.text("kernel", body.kernel);
    json.text_if("image_name", body.image);
    json.text_if("reason", body.reason);
    json.number("bytes", body.bytes);
    json.number("first_offset", body.first_offset);
    json.number("different_bytes", body.different_bytes);
  }
  void operator()(const model::StateBody& body) const {
    const std::string_view all(body.name.data(), body.name.size());
    write_state_values(json, body.event, body.value, body.error, all.substr(0, std::min(all.find('\0'), all.size())));
  }
};

}  // namespace

void append_json_line(std::string& out, const model::StoryEvent& event, const model::Actor& actor,
                      const JsonOptions& options) {
  json::Object json(out);
  write_head(json, "story", event.head, options);
  json.text("event", model::story_kind_info(event.kind).name);
  if (event.view == model::StoryView::kDetail) json.flag("is_detail", true);
  if (event.kind != model::StoryKind::kDriverState) {
    write_actor(json, event.head, actor);
    write_process(json, actor);
    write_gpu(json, event.gpu_minor, options);
    write_mig(json, actor, options);
  }
  if (event.gpu_minor >= 0) json.signed_number("gpu_minor", event.gpu_minor);
  if (event.gpu_device >= 0) json.signed_number("device_instance", event.gpu_device);
  if (event.partial) json.flag("partial", true);
  std::visit(Writer{json}, event.body);
  write_recorder(json, event.head);
}

}  // namespace gpuwatch::publish
