// SPDX-License-Identifier: Apache-2.0
// Sources of names against what podman, docker and containerd said of real
// containers: the recordings of tests/data/names, or fresh ones in the
// directory that GPUWATCH_TEST_NAMES names.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "attribute/container.h"
#include "attribute/names_files.h"
#include "attribute/names_json.h"
#include "attribute/names_socket.h"
#include "base/clock.h"
#include "unit/attribute/socket_server.h"

namespace gpuwatch::attribute {
namespace {

Patience patience() {
  return {base::monotonic_ns() + 30'000'000'000, -1};
}

std::string path_of(const std::string& name) {
  const char* fresh = std::getenv("GPUWATCH_TEST_NAMES");
  return std::string(fresh != nullptr ? fresh : NAMES_DATA) + "/" + name;
}

std::string read(const std::string& name) {
  std::ifstream file(path_of(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string id_of(const std::string& runtime) {
  const std::string text = read(runtime + ".id");
  return text.substr(0, text.find('\n'));
}

bool absent(const std::string& runtime) {
  return !std::filesystem::exists(path_of(runtime + ".id"));
}

// Serves the recorded answer to the recorded container, the other to others.
std::optional<NameAnswer> ask(const std::string& runtime, const std::string& id) {
  const std::string known = read(runtime + ".http");
  const std::string unknown = read(runtime + "-unknown.http");
  test::SocketServer server([&](int fd) {
    char request[512];
    const ssize_t got = ::recv(fd, request, sizeof request, 0);
    const std::string asked(request, got > 0 ? static_cast<std::size_t>(got) : 0);
    const std::string& text = asked.starts_with("GET /containers/" + id_of(runtime) + "/json ") ? known : unknown;
    return ::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  });
  auto answer = make_socket_source(runtime, server.path())->lookup({runtime, id, {}}, patience());
  EXPECT_TRUE(answer.ok()) << runtime;
  return answer.ok() ? *answer : std::nullopt;
}

// A root directory with one recorded file where its runtime keeps it.
class Root {
 public:
  Root(const std::string& path, const std::string& name) {
    char directory[] = "/tmp/gpuwatch-test-XXXXXX";
    root_ = ::mkdtemp(directory);
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path, std::ios::binary) << read(name);
  }
  ~Root() { std::filesystem::remove_all(root_); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;
  const std::string& path() const { return root_; }

 private:
  std::string root_;
};

void expect_podman(const std::optional<NameAnswer>& answer, bool with_labels) {
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->container_name == "quiet-fox" || answer->container_name == "quiet-cow") << answer->container_name;
  EXPECT_EQ(answer->image, "example.org/lab/busybox:1.0");
  if (!with_labels) return;
  ASSERT_EQ(answer->labels.size(), 1u);
  EXPECT_EQ(answer->labels[0].first, "team");
  EXPECT_EQ(answer->labels[0].second, "vision");
}

TEST(NamesRecorded, Podman) {
  if (absent("podman")) GTEST_SKIP() << "no recording of podman";
  const std::string id = id_of("podman");
  expect_podman(ask("podman", id), true);
  EXPECT_FALSE(ask("podman", std::string(64, 'c')));
  const Root root("/var/lib/containers/storage/vfs-containers/containers.json", "podman.containers.json");
  expect_podman(make_podman_store_source(root.path())->lookup({"podman", id, {}}, patience()).value(), false);
}

// podman passes annotations on to its bundle.
TEST(NamesRecorded, CdiAnnotationOfPodman) {
  std::ifstream file(NAMES_DATA "/podman.cdi.config.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(cdi_devices_from_bundle(text), std::vector<std::string>{"nvidia.com/gpu=0"});
}

TEST(NamesRecorded, Docker) {
  if (absent("docker")) GTEST_SKIP() << "no recording of docker";
  const std::string id = id_of("docker");
  const Root root("/var/lib/docker/containers/" + id + "/config.v2.json", "docker.config.v2.json");
  for (const auto& answer :
       {ask("docker", id), make_docker_store_source(root.path())->lookup({"docker", id, {}}, patience()).value()}) {
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->container_name, "quiet-hen");
    EXPECT_EQ(answer->image, "example.org/lab/busybox:1.0");
    ASSERT_EQ(answer->labels.size(), 1u);
    EXPECT_EQ(answer->labels[0].second, "vision");
  }
  EXPECT_FALSE(ask("docker", std::string(64, 'c')));
  const std::string line = read("docker.cgroup");
  const CgroupFacts facts = parse_cgroup(std::string_view(line).substr(0, line.find('\n')));
  ASSERT_EQ(facts.depth, 1u);
  EXPECT_EQ(facts.chain[0].runtime, "docker");
  EXPECT_EQ(facts.chain[0].id, id);
}

TEST(NamesRecorded, ContainerdAsAKubeletUsesIt) {
  if (absent("containerd")) GTEST_SKIP() << "no recording of containerd";
  const std::string id = id_of("containerd");
  const Root root("/run/containerd/io.containerd.runtime.v2.task/k8s.io/" + id + "/config.json",
                  "containerd.config.json");
  const auto answer = make_bundle_source(root.path())->lookup({"containerd", id, {}}, patience()).value();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->container_name, "cuda");
  EXPECT_EQ(answer->image, "example.org/lab/busybox:1.0");
  EXPECT_EQ(answer->pod_name, "job-1");
  EXPECT_EQ(answer->pod_namespace, "ml");
}

// The container that only holds a pod's namespaces.
TEST(NamesRecorded, SandboxOfContainerd) {
  if (absent("containerd")) GTEST_SKIP() << "no recording of containerd";
  const std::string id(64, 'd');
  const Root root("/run/containerd/io.containerd.runtime.v2.task/k8s.io/" + id + "/config.json",
                  "containerd.sandbox.config.json");
  const auto answer = make_bundle_source(root.path())->lookup({"containerd", id, {}}, patience()).value();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->container_name, "");
  EXPECT_EQ(answer->pod_name, "job-1");
}

}  // namespace
}  // namespace gpuwatch::attribute
