// SPDX-License-Identifier: Apache-2.0
// See tree_text.h. Keys of the JSON lines are in man/gpuwatch-json.5.md.
#include "publish/tree_text.h"

#include "model/definitions.h"
#include "publish/format.h"
#include "publish/json_common.h"
#include "publish/text.h"
#include "publish/words.h"

namespace gpuwatch::publish {

namespace {

using json::Object;
using model::Location;

void append_usage(std::string& out, std::string_view name, const model::Usage& usage) {
  if (usage.peak == 0) return;
  out += ", ";
  out += name;
  out += ' ';
  append_bytes(out, usage.live);
  if (usage.peak == usage.live) return;
  out += " (peak ";
  append_bytes(out, usage.peak);
  out += ')';
}

void append_plural(std::string& out, std::uint64_t count, std::string_view what) {
  format::append_number(out, count);
  out += ' ';
  out += what;
  if (count != 1) out += 's';
}

void append_class(std::string& out, const model::TreeObject& object) {
  if (object.class_name.empty())
    format::append_hex(out += "class ", object.class_number);
  else
    out += object.class_name;
}

bool is_channel_thing(const model::TreeObject& object) {
  return object.category == model::Category::kChannel || object.category == model::Category::kChannelGroup;
}

}  // namespace

void append_tree_line(std::string& out, const model::TreeProcess& process, const model::Actor& actor) {
  append_word(out, model::comm_of(process.head));
  format::append_number(out += '/', process.head.tgid);
  if (!actor.container_id.empty()) {
    out += " in ";
    out += actor.runtime;
    out += ':';
    out += actor.container_short_id();
  }
  out += ": ";
  append_plural(out, process.contexts, "context");
  out += ", ";
  append_plural(out, process.objects, "object");
  for (std::size_t i = 0; i < process.memory.size(); ++i)
    append_usage(out, i == 0 ? "GPU memory" : model::location_name(static_cast<Location>(i)), process.memory[i]);
  if (process.partial) out += ", partial";
  out += '\n';
}

void append_tree_line(std::string& out, const model::TreeClient& client) {
  format::append_hex(out += "  client ", client.handle);
  if (client.partial) out += " partial";
  out += '\n';
}

void append_tree_line(std::string& out, const model::TreeObject& object, unsigned depth) {
  // Deeper than any driver's tree only hostile ones get.
  out.append(4 + 2 * std::size_t{depth < 40 ? depth : 40}, ' ');
  format::append_hex(out, object.handle);
  out += ' ';
  append_class(out, object);
  if (object.category == model::Category::kDevice && object.device >= 0)
    format::append_signed(out += " instance ", object.device);
  if (object.bytes != 0) {
    out += ' ';
    append_bytes(out, object.bytes);
    if (object.location == Location::kPinned) out += " pinned";
    if (object.references > 1) {
      out += object.counted ? " (shared, " : " (counted elsewhere, ";
      append_plural(out, object.references, "reference");
      out += ')';
    }
  }
  if (is_channel_thing(object)) {
    if (!object.engine_name.empty()) {
      out += " on ";
      out += object.engine_name;
    }
    if (object.entries != 0) {
      out += ", ";
      format::append_number(out, object.entries);
      out += " entries";
    }
    if (object.context != 0) format::append_number(out += ", context ", object.context);
  }
  if (object.partial) out += " (parent not seen)";
  out += '\n';
}

void append_tree_json(std::string& out, const model::TreeProcess& process, const model::Actor& actor,
                      const JsonOptions& options) {
  json::Object json(out);
  write_head(json, "tree_process", process.head, options);
  write_actor(json, process.head, actor);
  json.number("contexts", process.contexts);
  json.number("objects", process.objects);
  json.number("gpu_bytes", process.memory[0].live);
  json.number("gpu_peak_bytes", process.memory[0].peak);
  json.number("host_bytes", process.memory[1].live);
  json.number("host_peak_bytes", process.memory[1].peak);
  json.number("pinned_bytes", process.memory[2].live);
  json.number("pinned_peak_bytes", process.memory[2].peak);
  json.number("fabric_bytes", process.memory[3].live);
  json.number("fabric_peak_bytes", process.memory[3].peak);
  if (process.partial) json.flag("partial", true);
}

void append_tree_json(std::string& out, const model::TreeProcess& process, const model::TreeClient& client) {
  json::Object json(out);
  json.number("schema", kJsonSchema);
  json.text("type", "tree_client");
  json.number("pid", process.head.tgid);
  json.number("process_start_ns", process.head.start_ns);
  json.hex("client", client.handle);
  json.number("made_ns", client.made_ns);
  json.number("objects", client.objects);
  if (client.partial) json.flag("partial", true);
}

void append_tree_json(std::string& out, const model::TreeProcess& process, const model::TreeObject& object,
                      unsigned depth) {
  json::Object json(out);
  json.number("schema", kJsonSchema);
  json.text("type", "tree_object");
  json.number("pid", process.head.tgid);
  json.number("process_start_ns", process.head.start_ns);
  json.hex("client", object.client);
  json.hex("parent", object.parent);
  json.hex("object", object.handle);
  json.number("depth", depth);
  json.hex("class_id", object.class_number);
  json.text_if("class_name", object.class_name);
  json.number("made_ns", object.made_ns);
  if (object.device >= 0) json.signed_number("device_instance", object.device);
  if (object.bytes != 0) {
    json.number("bytes", object.bytes);
    json.text("location", model::location_name(object.location));
    json.flag("counted", object.counted);
    json.number("references", object.references);
  }
  if (is_channel_thing(object)) {
    json.number_if("entries", object.entries);
    json.number("engine_type", object.engine);
    json.text_if("engine", object.engine_name);
    json.number_if("context_id", object.context);
    json.flag("running", object.running);
  }
  if (object.partial) json.flag("partial", true);
}

}  // namespace gpuwatch::publish
