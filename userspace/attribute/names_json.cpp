// SPDX-License-Identifier: Apache-2.0
#include "attribute/names_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace gpuwatch::attribute {

namespace {

using Json = nlohmann::json;

// Brackets outside of strings; stops a document whose only aim is depth.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kJsonDepthMax) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

Json parse(std::string_view text) {
  if (text.size() > kJsonBytesMax || too_deep(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

const Json* member(const Json& json, const char* key) {
  if (!json.is_object()) return nullptr;
  const auto at = json.find(key);
  return at == json.end() ? nullptr : &*at;
}

std::string text(const Json* json, const char* key) {
  const Json* value = json == nullptr ? nullptr : member(*json, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

std::string first_of(const Json* json, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (std::string value = text(json, key); !value.empty()) return value;
  return {};
}

void take_labels(NameAnswer& answer, const Json* labels) {
  if (labels == nullptr || !labels->is_object()) return;
  for (const auto& [key, value] : labels->items()) {
    if (answer.labels.size() == kLabelsMax) break;
    if (value.is_string()) answer.labels.emplace_back(key, value.get<std::string>());
  }
  // The kubelet puts these on what it starts.
  answer.pod_name = text(labels, "io.kubernetes.pod.name");
  answer.pod_namespace = text(labels, "io.kubernetes.pod.namespace");
  if (std::string name = text(labels, "io.kubernetes.container.name"); !name.empty())
    answer.container_name = std::move(name);
}

std::optional<NameAnswer> finished(NameAnswer answer) {
  if (answer.empty()) return std::nullopt;
  answer.bound();
  return answer;
}

}  // namespace

std::optional<NameAnswer> names_from_engine(std::string_view json_text) {
  const Json json = parse(json_text);
  if (!json.is_object()) return std::nullopt;
  NameAnswer answer;
  answer.container_name = text(&json, "Name");
  if (answer.container_name.starts_with('/')) answer.container_name.erase(0, 1);
  const Json* config = member(json, "Config");
  answer.image = text(config, "Image");
  if (config != nullptr) take_labels(answer, member(*config, "Labels"));
  return finished(std::move(answer));
}

std::optional<NameAnswer> names_from_bundle(std::string_view json_text) {
  const Json json = parse(json_text);
  const Json* notes = member(json, "annotations");
  NameAnswer answer;
  answer.container_name =
      first_of(notes, {"io.kubernetes.cri.container-name", "io.kubernetes.container.name", "nerdctl/name"});
  answer.image = first_of(
      notes, {"io.kubernetes.cri.image-name", "io.kubernetes.cri-o.ImageName", "io.container.manager.image-name"});
  answer.pod_name = first_of(notes, {"io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"});
  answer.pod_namespace = first_of(notes, {"io.kubernetes.cri.sandbox-namespace", "io.kubernetes.pod.namespace"});
  // cri-o keeps the labels as JSON in an annotation.
  if (const Json labels = parse(text(notes, "io.kubernetes.cri-o.Labels")); labels.is_object()) {
    NameAnswer more;
    take_labels(more, &labels);
    answer.complete_with(std::move(more));
  }
  return finished(std::move(answer));
}

std::vector<std::string> cdi_devices_from_bundle(std::string_view json_text) {
  std::vector<std::string> devices;
  const Json json = parse(json_text);
  const Json* notes = member(json, "annotations");
  if (notes == nullptr || !notes->is_object()) return devices;
  for (const auto& [key, value] : notes->items()) {
    if (!key.starts_with("cdi.k8s.io/") || !value.is_string()) continue;
    const auto& all = value.get_ref<const std::string&>();
    for (std::string_view rest = all; !rest.empty() && devices.size() < kCdiDevicesMax;) {
      const std::string_view word = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(word.size() + 1, rest.size()));
      if (word.find('=') != std::string_view::npos && word.size() <= kNameBytesMax) devices.emplace_back(word);
    }
  }
  return devices;
}

std::optional<NameAnswer> names_from_store(std::string_view json_text, std::string_view container_id) {
  const Json json = parse(json_text);
  if (!json.is_array()) return std::nullopt;
  for (const Json& entry : json) {
    if (text(&entry, "id") != container_id) continue;
    NameAnswer answer;
    if (const Json* names = member(entry, "names");
        names != nullptr && names->is_array() && !names->empty() && names->front().is_string())
      answer.container_name = names->front().get<std::string>();
    const Json metadata = parse(text(&entry, "metadata"));
    answer.image = text(&metadata, "image-name");
    if (answer.container_name.empty()) answer.container_name = text(&metadata, "name");
    return finished(std::move(answer));
  }
  return std::nullopt;
}

}  // namespace gpuwatch::attribute
