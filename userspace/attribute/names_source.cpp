// SPDX-License-Identifier: Apache-2.0
#include "attribute/names_source.h"

#include <algorithm>

#include "attribute/names_files.h"
#include "attribute/names_socket.h"
#include "base/clock.h"

namespace gpuwatch::attribute {

namespace {

void take(std::string& mine, std::string& other) {
  if (mine.empty()) mine = std::move(other);
}

}  // namespace

void NameAnswer::complete_with(NameAnswer other) {
  take(container_name, other.container_name);
  take(image, other.image);
  take(pod_name, other.pod_name);
  take(pod_namespace, other.pod_namespace);
  if (labels.empty()) labels = std::move(other.labels);
}

void NameAnswer::bound() {
  const auto cut = [](std::string& text) {
    if (text.size() > kNameBytesMax) text.resize(kNameBytesMax);
  };
  for (std::string* text : {&container_name, &image, &pod_name, &pod_namespace}) cut(*text);
  if (labels.size() > kLabelsMax) labels.resize(kLabelsMax);
  for (auto& [key, value] : labels) {
    cut(key);
    cut(value);
  }
}

int Patience::left_ms() const {
  const std::uint64_t now = base::monotonic_ns();
  if (now >= deadline_ns) return 0;
  return static_cast<int>(std::min<std::uint64_t>((deadline_ns - now) / 1'000'000 + 1, 60'000));
}

NameSources local_name_sources(const std::string& root) {
  NameSources sources;
  sources.push_back(make_bundle_source(root));
  sources.push_back(make_podman_store_source(root));
  sources.push_back(make_docker_store_source(root));
  sources.push_back(make_kubelet_source(root));
  sources.push_back(make_socket_source("docker", root + "/run/docker.sock"));
  sources.push_back(make_socket_source("podman", root + "/run/podman/podman.sock"));
  return sources;
}

}  // namespace gpuwatch::attribute
