// SPDX-License-Identifier: Apache-2.0
// Cgroup paths as the runtimes write them, and paths that only look like it.
#include "attribute/container.h"

#include <gtest/gtest.h>

#include <string>

namespace gpuwatch::attribute {
namespace {

const std::string kId = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string kOther = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";
const std::string kPod = "11111111-2222-3333-4444-555555555555";
const std::string kPodSlice = "11111111_2222_3333_4444_555555555555";

struct Case {
  std::string path;
  std::string runtime;
  std::string id;
  std::string pod;
};

TEST(Container, KnownForms) {
  const Case cases[] = {
      {"/system.slice/docker-" + kId + ".scope", "docker", kId, ""},
      {"/docker/" + kId, "docker", kId, ""},
      {"/docker/" + kId + "/inner", "docker", kId, ""},
      {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + kPodSlice + ".slice/cri-containerd-" +
           kId + ".scope",
       "containerd", kId, kPodSlice},
      {"/kubepods.slice/kubepods-pod" + kPodSlice + ".slice/crio-" + kId + ".scope", "cri-o", kId, kPodSlice},
      {"/kubepods/burstable/pod" + kPod + "/" + kId, "kubernetes", kId, kPod},
      {"/kubepods/pod" + kPod + "/" + kId, "kubernetes", kId, kPod},
      {"/machine.slice/libpod-" + kId + ".scope/container", "podman", kId, ""},
      {"/system.slice/docker-" + kId + ".scope/docker/" + kOther, "docker", kOther, ""},
  };
  for (const Case& each : cases) {
    const Container found = parse_container(each.path);
    EXPECT_EQ(found.runtime, each.runtime) << each.path;
    EXPECT_EQ(found.id, each.id) << each.path;
    EXPECT_EQ(found.pod_uid, each.pod) << each.path;
  }
}

TEST(Container, WhatOnlyLooksLikeOneIsLeftAlone) {
  std::string upper = kId;
  upper[10] = 'A';
  const std::string paths[] = {
      "",
      "/",
      "////",
      "/user.slice/user-1000.slice/session-1.scope",
      "/system.slice/docker-" + kId.substr(1) + ".scope",
      "/system.slice/docker-" + kId + "0.scope",
      "/system.slice/docker-" + upper + ".scope",
      "/system.slice/docker-" + kId,
      "/system.slice/xdocker-" + kId + ".scope",
      "/" + kId,
      "/notdocker/" + kId,
      "/docker/" + kId.substr(0, 63) + "g",
      "/system.slice/docker-.scope",
      "/system.slice/docker.service",
      std::string("/docker/") + kId.substr(0, 32) + std::string(1, '\0') + kId.substr(33),
      "/kubepods/pod" + kPod.substr(1) + "/x/" + kId,
      "/kubepods/pod11111111-2222_3333-4444-555555555555/" + kId,
  };
  for (const std::string& path : paths) {
    const Container found = parse_container(path);
    EXPECT_TRUE(found.runtime.empty()) << path;
    EXPECT_TRUE(found.id.empty()) << path;
    EXPECT_TRUE(found.pod_uid.empty()) << path;
  }
}

}  // namespace
}  // namespace gpuwatch::attribute
