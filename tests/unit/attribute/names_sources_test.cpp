// SPDX-License-Identifier: Apache-2.0
// Sources of names against answers as real runtimes give them, and against
// ones that mean no good.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "attribute/names_files.h"
#include "attribute/names_json.h"
#include "attribute/names_socket.h"
#include "base/clock.h"
#include "unit/attribute/socket_server.h"
#include "unit/support.h"

namespace gpuwatch::attribute {
namespace {

const std::string kId = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string kPod = "11111111-2222-3333-4444-555555555555";

Patience patience(std::uint64_t ms = 30'000) {
  return {base::monotonic_ns() + ms * 1'000'000, -1};
}

class Root : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gpuwatch-test-XXXXXX";
    root_ = ::mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  std::string root_;
};

TEST(NamesJson, EngineApi) {
  const auto answer = names_from_engine(
      R"({"Id":"x","Name":"/trainer","State":{"Status":"running"},"Config":{"Hostname":"h","Image":"pytorch:2.4","Labels":{"team":"vision","n":3}}})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->container_name, "trainer");
  EXPECT_EQ(answer->image, "pytorch:2.4");
  ASSERT_EQ(answer->labels.size(), 1U);
  EXPECT_EQ(answer->labels[0].first, "team");
}

TEST(NamesJson, LabelsOfTheKubelet) {
  const auto answer = names_from_engine(
      R"({"Name":"/k8s_main_web-0_prod_uid_0","Config":{"Image":"sha256:1","Labels":{"io.kubernetes.container.name":"main","io.kubernetes.pod.name":"web-0","io.kubernetes.pod.namespace":"prod"}}})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->container_name, "main");
  EXPECT_EQ(answer->pod_name, "web-0");
  EXPECT_EQ(answer->pod_namespace, "prod");
}

TEST(NamesJson, BundleOfContainerd) {
  const auto answer = names_from_bundle(
      R"({"ociVersion":"1.0.2","annotations":{"io.kubernetes.cri.container-name":"cuda","io.kubernetes.cri.container-type":"container","io.kubernetes.cri.image-name":"nvcr.io/cuda:12","io.kubernetes.cri.sandbox-id":"s","io.kubernetes.cri.sandbox-name":"job-1","io.kubernetes.cri.sandbox-namespace":"ml","io.kubernetes.cri.sandbox-uid":"u"}})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->container_name, "cuda");
  EXPECT_EQ(answer->image, "nvcr.io/cuda:12");
  EXPECT_EQ(answer->pod_name, "job-1");
  EXPECT_EQ(answer->pod_namespace, "ml");
}

TEST(NamesJson, BundleOfCrio) {
  const auto answer = names_from_bundle(
      R"({"annotations":{"io.kubernetes.container.name":"cuda","io.kubernetes.cri-o.ImageName":"cuda:12","io.kubernetes.pod.name":"job-1","io.kubernetes.pod.namespace":"ml","io.kubernetes.cri-o.Labels":"{\"app\":\"llm\",\"io.kubernetes.pod.name\":\"job-1\"}"}})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->container_name, "cuda");
  EXPECT_EQ(answer->pod_name, "job-1");
  ASSERT_EQ(answer->labels.size(), 2U);
  EXPECT_EQ(answer->labels[0].second, "llm");
}

TEST(NamesJson, StoreOfPodman) {
  const std::string text =
      R"([{"id":"other","names":["b"]},{"id":")" + kId +
      R"(","names":["quiet_fox"],"image":"i","metadata":"{\"image-name\":\"docker.io/library/alpine:latest\",\"name\":\"quiet_fox\"}"}])";
  const auto answer = names_from_store(text, kId);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->container_name, "quiet_fox");
  EXPECT_EQ(answer->image, "docker.io/library/alpine:latest");
  EXPECT_FALSE(names_from_store(text, "none"));
}

TEST(NamesJson, NoGood) {
  std::string deep(200'000, '[');
  for (const std::string& text : {std::string(), std::string("{"), std::string("null"), std::string("[1,2]"), deep,
                                  std::string(R"({"Name":7,"Config":[]})"), std::string(R"({"annotations":"x"})"),
                                  R"({"annotations":{"io.kubernetes.cri-o.Labels":")" + deep + "\"}}",
                                  std::string(R"([{"id":1,"names":{},"metadata":[]}])"), std::string("\xff\xfe{}")}) {
    EXPECT_FALSE(names_from_engine(text)) << text.substr(0, 60);
    EXPECT_FALSE(names_from_bundle(text)) << text.substr(0, 60);
    EXPECT_FALSE(names_from_store(text, kId)) << text.substr(0, 60);
  }
  EXPECT_FALSE(names_from_engine(R"({"Name":")" + std::string(kJsonBytesMax, 'x') + "\"}"));
}

TEST_F(Root, BundlesOfContainerdAndCrio) {
  const auto source = make_bundle_source(root_);
  const NameQuery query{"containerd", kId, kPod};
  ASSERT_TRUE(source->answers(query));
  EXPECT_FALSE(source->lookup(query, patience()).value());
  put("/run/containerd/io.containerd.runtime.v2.task/k8s.io/" + kId + "/config.json",
      R"({"annotations":{"io.kubernetes.cri.container-name":"cuda"}})");
  EXPECT_EQ(source->lookup(query, patience()).value()->container_name, "cuda");
}

TEST_F(Root, StoresOfPodmanAndDocker) {
  put("/var/lib/containers/storage/vfs-containers/containers.json", R"([{"id":")" + kId + R"(","names":["fox"]}])");
  EXPECT_EQ(make_podman_store_source(root_)->lookup({"podman", kId, {}}, patience()).value()->container_name, "fox");
  put("/var/lib/docker/containers/" + kId + "/config.v2.json", R"({"Name":"/hen","Config":{"Image":"i"}})");
  EXPECT_EQ(make_docker_store_source(root_)->lookup({"docker", kId, {}}, patience()).value()->container_name, "hen");
}

TEST_F(Root, FilesOfTheKubelet) {
  put("/var/log/containers/web-0_prod_main-" + kId + ".log", "");
  put("/var/log/pods/prod_web-1_" + kPod + "/main/0.log", "");
  const auto source = make_kubelet_source(root_);
  const auto container = source->lookup({"containerd", kId, {}}, patience()).value();
  ASSERT_TRUE(container);
  EXPECT_EQ(container->container_name, "main");
  EXPECT_EQ(container->pod_name, "web-0");
  EXPECT_EQ(container->pod_namespace, "prod");
  const auto pod = source->lookup({{}, {}, kPod}, patience()).value();
  ASSERT_TRUE(pod);
  EXPECT_EQ(pod->pod_name, "web-1");
}

TEST_F(Root, CdiDevicesOfABundle) {
  using Devices = std::vector<std::string>;
  EXPECT_EQ(read_cdi_devices(root_, kId), Devices{});
  const std::string config =
      R"({"annotations":{"cdi.k8s.io/a_0":"nvidia.com/gpu=0,nvidia.com/gpu=1","cdi.k8s.io/b":"nvidia.com/gpu=all","cdi.k8s.io/c":7,"cdi.k8s.io/d":"none,,","other":"x=y"}})";
  put("/var/lib/containers/storage/overlay-containers/" + kId + "/userdata/config.json", config);
  EXPECT_EQ(read_cdi_devices(root_, kId), (Devices{"nvidia.com/gpu=0", "nvidia.com/gpu=1", "nvidia.com/gpu=all"}));
  EXPECT_EQ(read_cdi_devices(root_, "../../etc"), Devices{});
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "nvidia.com/gpu=" + std::to_string(i) + ",";
  EXPECT_EQ(cdi_devices_from_bundle(R"({"annotations":{"cdi.k8s.io/a":")" + many + R"("}})").size(), kCdiDevicesMax);
  for (const char* text : {"", "[]", R"({"annotations":[]})", R"({"annotations":"cdi.k8s.io/a"})"})
    EXPECT_TRUE(cdi_devices_from_bundle(text).empty()) << text;
}

// A link, a pipe, and an id that is a way out of the folder.
TEST_F(Root, FilesThatAreNone) {
  const std::string folder = "/var/lib/docker/containers/" + kId;
  std::filesystem::create_directories(root_ + folder);
  const std::string file = root_ + folder + "/config.v2.json";
  put("/real.json", R"({"Name":"/hen"})");
  const auto source = make_docker_store_source(root_);
  std::filesystem::create_symlink(root_ + "/real.json", file);
  EXPECT_FALSE(source->lookup({"docker", kId, {}}, patience()).value());
  std::filesystem::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_FALSE(source->lookup({"docker", kId, {}}, patience()).value());
  EXPECT_FALSE(source->answers({"docker", "../../../../etc", {}}));
  EXPECT_FALSE(make_kubelet_source(root_)->answers({"docker", "../x", {}}));
}

bool send_text(int fd, std::string_view text) {
  return ::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

TEST(NamesSocket, AnAnswerInPieces) {
  test::SocketServer server([](int fd) {
    char request[512];
    const ssize_t got = ::recv(fd, request, sizeof request, 0);
    const std::string asked(request, got > 0 ? static_cast<std::size_t>(got) : 0);
    if (asked != "GET /containers/" + kId + "/json HTTP/1.0\r\nHost: localhost\r\n\r\n") return true;
    for (const char* piece :
         {"HTTP/1.0 200 O", "K\r\nContent-Type: application/json\r\n\r", "\n{\"Name\":\"/a", "b\"}"})
      send_text(fd, piece);
    return true;
  });
  const auto answer = make_socket_source("docker", server.path())->lookup({"docker", kId, {}}, patience());
  ASSERT_TRUE(answer.ok());
  ASSERT_TRUE(answer.value());
  EXPECT_EQ(answer.value()->container_name, "ab");
}

TEST(NamesSocket, OtherAnswersAreNone) {
  for (const std::string& text :
       {std::string("HTTP/1.1 404 Not Found\r\n\r\n{}"), std::string("garbage"), std::string(),
        std::string("HTTP/1.1 200 OK\r\n\r\nnot json"), std::string("HTTP/1.1 200 OK")}) {
    test::SocketServer server([&](int fd) {
      char request[512];
      (void)::recv(fd, request, sizeof request, 0);
      return send_text(fd, text) || true;
    });
    const auto answer = make_socket_source("docker", server.path())->lookup({"docker", kId, {}}, patience());
    ASSERT_TRUE(answer.ok()) << text;
    EXPECT_FALSE(answer.value()) << text;
  }
}

TEST(NamesSocket, NobodyThere) {
  const auto absent = make_socket_source("docker", "/nonexistent/socket")->lookup({"docker", kId, {}}, patience());
  ASSERT_TRUE(absent.ok());
  EXPECT_FALSE(absent.value());
}

// One byte now and then would keep a time-out per read alive for ever.
TEST(NamesSocket, ADripIsUnderTheSameDeadline) {
  test::SocketServer* self = nullptr;
  std::atomic<bool> ready{false};
  test::SocketServer server([&](int fd) {
    while (!ready) std::this_thread::yield();
    while (!self->over(5) && send_text(fd, "x")) {
    }
    return true;
  });
  self = &server;
  ready = true;
  const auto answer = make_socket_source("docker", server.path())->lookup({"docker", kId, {}}, patience(200));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), base::Code::kLimit);
  EXPECT_EQ(answer.error().sys_errno(), ETIMEDOUT);
}

TEST(NamesSocket, AFloodIsCut) {
  const std::string chunk(1 << 20, 'x');
  test::SocketServer server([&](int fd) {
    while (send_text(fd, chunk)) {
    }
    return true;
  });
  const auto answer = exchange(server.path(), "GET / HTTP/1.0\r\n\r\n", patience());
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), base::Code::kLimit);
  EXPECT_NE(answer.error().message().find("too big"), std::string::npos);
}

}  // namespace
}  // namespace gpuwatch::attribute
