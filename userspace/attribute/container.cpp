// SPDX-License-Identifier: Apache-2.0
#include "attribute/container.h"

#include <algorithm>

namespace gpuwatch::attribute {

namespace {

constexpr std::size_t kIdLength = 64;
constexpr std::size_t kPodUidLength = 36;

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

bool is_container_id(std::string_view text) {
  return text.size() == kIdLength && std::all_of(text.begin(), text.end(), is_hex);
}

// 8-4-4-4-12 hex digits, all groups joined by the same character.
bool is_pod_uid(std::string_view text) {
  if (text.size() != kPodUidLength) return false;
  const char joint = text[8];
  if (joint != '-' && joint != '_') return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool at_joint = i == 8 || i == 13 || i == 18 || i == 23;
    if (at_joint ? text[i] != joint : !is_hex(text[i])) return false;
  }
  return true;
}

// What lies between prefix and suffix; empty where they do not fit.
std::string_view between(std::string_view text, std::string_view prefix, std::string_view suffix) {
  if (text.size() <= prefix.size() + suffix.size() || !text.starts_with(prefix) || !text.ends_with(suffix)) return {};
  return text.substr(prefix.size(), text.size() - prefix.size() - suffix.size());
}

struct Scope {
  std::string_view prefix;
  std::string_view runtime;
};

// systemd scopes: <prefix><id>.scope
constexpr Scope kScopes[] = {
    {"docker-", "docker"}, {"cri-containerd-", "containerd"}, {"crio-", "cri-o"}, {"libpod-", "podman"}};

// kubepods-besteffort-pod<uid>.slice, kubepods-pod<uid>.slice, pod<uid>
std::string_view pod_uid_of(std::string_view part) {
  std::string_view rest = between(part, "kubepods-", ".slice");
  if (rest.empty()) rest = part;
  for (const std::string_view quality : {"besteffort-", "burstable-"})
    if (rest.starts_with(quality)) rest.remove_prefix(quality.size());
  if (!rest.starts_with("pod")) return {};
  rest.remove_prefix(3);
  return is_pod_uid(rest) ? rest : std::string_view{};
}

}  // namespace

Container parse_container(std::string_view cgroup_path) {
  Container found;
  std::string_view parent;
  for (std::string_view rest = cgroup_path; !rest.empty();) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    rest = slash == std::string_view::npos ? std::string_view{} : rest.substr(slash + 1);
    if (part.empty()) continue;
    for (const Scope& scope : kScopes)
      if (const std::string_view id = between(part, scope.prefix, ".scope"); is_container_id(id)) {
        found.runtime = scope.runtime;
        found.id = id;
      }
    if (is_container_id(part)) {
      // cgroupfs driver: the directory above tells what it is.
      if (parent == "docker") {
        found.runtime = "docker";
        found.id = part;
      } else if (!pod_uid_of(parent).empty()) {
        found.runtime = "kubernetes";
        found.id = part;
      }
    }
    if (const std::string_view uid = pod_uid_of(part); !uid.empty()) found.pod_uid = uid;
    parent = part;
  }
  return found;
}

}  // namespace gpuwatch::attribute
