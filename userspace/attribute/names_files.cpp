// SPDX-License-Identifier: Apache-2.0
#include "attribute/names_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attribute/container_words.h"
#include "attribute/names_json.h"
#include "base/fd.h"

namespace gpuwatch::attribute {

namespace {

using Found = base::Result<std::optional<NameAnswer>>;

constexpr std::size_t kEntriesMax = 200'000;

// The whole file, or nothing: absent, no regular file, too big.
std::optional<std::string> read_regular(const std::string& path) {
  const base::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  if (info.st_size < 0 || static_cast<std::uint64_t>(info.st_size) > kJsonBytesMax) return std::nullopt;
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  text.resize(have);
  return text;
}

// An id goes into a path only when it can't be anything but an id.
bool fits(const NameQuery& query) {
  return words::is_id64(query.container_id);
}

class BundleSource : public NameSource {
 public:
  explicit BundleSource(std::string root) : root_(std::move(root)) {}

  bool answers(const NameQuery& query) const override {
    return fits(query) && (query.runtime == "containerd" || query.runtime == "kubernetes" || query.runtime == "cri-o");
  }

  Found lookup(const NameQuery& query, const Patience&) override {
    static constexpr const char* kPlaces[][2] = {
        {"/run/containerd/io.containerd.runtime.v2.task/k8s.io/", "/config.json"},
        {"/run/containerd/io.containerd.runtime.v2.task/default/", "/config.json"},
        {"/run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/", "/config.json"},
        {"/run/containers/storage/overlay-containers/", "/userdata/config.json"},
        {"/var/lib/containers/storage/overlay-containers/", "/userdata/config.json"}};
    for (const auto& place : kPlaces)
      if (const auto text = read_regular(root_ + place[0] + query.container_id + place[1]))
        if (auto answer = names_from_bundle(*text)) return answer;
    return std::optional<NameAnswer>();
  }

 private:
  std::string root_;
};

class PodmanStoreSource : public NameSource {
 public:
  explicit PodmanStoreSource(std::string root) : root_(std::move(root)) {}

  bool answers(const NameQuery& query) const override { return fits(query) && query.runtime == "podman"; }

  Found lookup(const NameQuery& query, const Patience&) override {
    for (const char* driver : {"overlay", "vfs", "btrfs", "zfs"})
      for (const char* file : {"/containers.json", "/volatile-containers.json"})
        if (const auto text = read_regular(root_ + "/var/lib/containers/storage/" + driver + "-containers" + file))
          if (auto answer = names_from_store(*text, query.container_id)) return answer;
    return std::optional<NameAnswer>();
  }

 private:
  std::string root_;
};

class DockerStoreSource : public NameSource {
 public:
  explicit DockerStoreSource(std::string root) : root_(std::move(root)) {}

  bool answers(const NameQuery& query) const override {
    return fits(query) && (query.runtime == "docker" || query.runtime == "ecs" || query.runtime == "kubernetes");
  }

  Found lookup(const NameQuery& query, const Patience&) override {
    const auto text = read_regular(root_ + "/var/lib/docker/containers/" + query.container_id + "/config.v2.json");
    return text ? names_from_engine(*text) : std::optional<NameAnswer>();
  }

 private:
  std::string root_;
};

// Calls `visit` with every name until it says true.
template <typename Visit>
void each_name(const std::string& path, const Patience& patience, Visit visit) {
  DIR* dir = ::opendir(path.c_str());
  if (dir == nullptr) return;
  for (std::size_t i = 0; i < kEntriesMax && (i % 1024 != 0 || patience.left_ms() > 0); ++i) {
    const dirent* entry = ::readdir(dir);
    if (entry == nullptr || visit(std::string_view(entry->d_name))) break;
  }
  ::closedir(dir);
}

class KubeletSource : public NameSource {
 public:
  explicit KubeletSource(std::string root) : root_(std::move(root)) {}

  bool answers(const NameQuery& query) const override {
    return fits(query) || (query.container_id.empty() && words::is_pod_uid(query.pod_uid));
  }

  Found lookup(const NameQuery& query, const Patience& patience) override {
    NameAnswer answer;
    if (!query.container_id.empty()) from_containers(query, patience, answer);
    if (answer.pod_name.empty() && !query.pod_uid.empty()) from_pods(query, patience, answer);
    if (answer.empty()) return std::optional<NameAnswer>();
    answer.bound();
    return std::optional<NameAnswer>(std::move(answer));
  }

 private:
  // <pod>_<namespace>_<container>-<id>.log; no part holds an underscore.
  void from_containers(const NameQuery& query, const Patience& patience, NameAnswer& answer) const {
    const std::string ending = "-" + query.container_id + ".log";
    each_name(root_ + "/var/log/containers", patience, [&](std::string_view name) {
      if (!name.ends_with(ending)) return false;
      name.remove_suffix(ending.size());
      const std::size_t first = name.find('_');
      const std::size_t second = name.find('_', first == std::string_view::npos ? first : first + 1);
      if (second == std::string_view::npos) return false;
      answer.pod_name = name.substr(0, first);
      answer.pod_namespace = name.substr(first + 1, second - first - 1);
      answer.container_name = name.substr(second + 1);
      return true;
    });
  }

  // <namespace>_<pod>_<uid>
  void from_pods(const NameQuery& query, const Patience& patience, NameAnswer& answer) const {
    const std::string ending = "_" + query.pod_uid;
    each_name(root_ + "/var/log/pods", patience, [&](std::string_view name) {
      if (!name.ends_with(ending)) return false;
      name.remove_suffix(ending.size());
      const std::size_t first = name.find('_');
      if (first == std::string_view::npos) return false;
      answer.pod_namespace = name.substr(0, first);
      answer.pod_name = name.substr(first + 1);
      return true;
    });
  }

  std::string root_;
};

}  // namespace

std::vector<std::string> read_cdi_devices(const std::string& root, const std::string& container_id) {
  static constexpr const char* kPlaces[][2] = {
      {"/run/containerd/io.containerd.runtime.v2.task/k8s.io/", "/config.json"},
      {"/run/containerd/io.containerd.runtime.v2.task/default/", "/config.json"},
      {"/run/containerd/io.containerd.runtime.v2.task/moby/", "/config.json"},
      {"/run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/", "/config.json"},
      {"/run/containers/storage/overlay-containers/", "/userdata/config.json"},
      {"/var/lib/containers/storage/overlay-containers/", "/userdata/config.json"},
      {"/var/lib/containers/storage/vfs-containers/", "/userdata/config.json"}};
  if (words::is_id64(container_id))
    for (const auto& place : kPlaces)
      if (const auto text = read_regular(root + place[0] + container_id + place[1]))
        return cdi_devices_from_bundle(*text);
  return {};
}

std::unique_ptr<NameSource> make_bundle_source(const std::string& root) {
  return std::make_unique<BundleSource>(root);
}
std::unique_ptr<NameSource> make_podman_store_source(const std::string& root) {
  return std::make_unique<PodmanStoreSource>(root);
}
std::unique_ptr<NameSource> make_docker_store_source(const std::string& root) {
  return std::make_unique<DockerStoreSource>(root);
}
std::unique_ptr<NameSource> make_kubelet_source(const std::string& root) {
  return std::make_unique<KubeletSource>(root);
}

}  // namespace gpuwatch::attribute
