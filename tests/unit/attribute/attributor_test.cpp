// SPDX-License-Identifier: Apache-2.0
// Definitions are remembered by identity, bounded, and never mixed up.
#include "attribute/attributor.h"

#include <gtest/gtest.h>

#include "unit/support.h"

namespace gpuwatch::attribute {
namespace {

using test::Blob;

Blob with_path(gpuwatch_rec head, Blob payload, const std::string& path) {
  for (const char c : path) payload.push_back(static_cast<std::byte>(c));
  test::pad8(payload);
  return test::finish_record(head, payload);
}

Blob task(std::uint32_t tgid, std::uint64_t start_ns, const std::string& exe, std::uint32_t ns_tgid = 1) {
  gpuwatch_rec head = test::make_head(GPUWATCH_REC_TASK);
  head.tgid = tgid;
  head.start_ns = start_ns;
  gpuwatch_rec_task fixed{};
  fixed.ns_tgid = ns_tgid;
  fixed.path_len = static_cast<__u32>(exe.size());
  Blob payload;
  test::append_struct(payload, fixed);
  return with_path(head, payload, exe);
}

Blob cgroup(std::uint64_t id, const std::string& path, std::uint16_t flags = 0) {
  gpuwatch_rec head = test::make_head(GPUWATCH_REC_CGROUP);
  head.cgroup_id = id;
  head.flags = flags;
  gpuwatch_rec_cgroup fixed{};
  fixed.version = 2;
  fixed.path_len = static_cast<__u32>(path.size());
  Blob payload;
  test::append_struct(payload, fixed);
  return with_path(head, payload, path);
}

void learn(Attributor& attributor, const Blob& blob) {
  attributor.learn(model::parse_record(blob).value());
}

gpuwatch_rec head_of(std::uint32_t tgid, std::uint64_t start_ns, std::uint64_t cgroup_id) {
  gpuwatch_rec head = test::make_head(GPUWATCH_REC_IOCTL);
  head.tgid = tgid;
  head.start_ns = start_ns;
  head.cgroup_id = cgroup_id;
  return head;
}

const std::string kId(64, 'a');

TEST(Attributor, TellsProcessAndContainer) {
  Attributor attributor;
  learn(attributor, task(100, 5, "/usr/bin/python3", 12));
  learn(attributor, cgroup(9, "/kubepods/pod11111111-2222-3333-4444-555555555555/" + kId));
  const model::Actor actor = attributor.actor_of(head_of(100, 5, 9));
  EXPECT_EQ(actor.exe, "/usr/bin/python3");
  EXPECT_EQ(actor.ns_tgid, 12U);
  EXPECT_EQ(actor.runtime, "kubernetes");
  EXPECT_EQ(actor.container_id, kId);
  EXPECT_EQ(actor.container_short_id(), kId.substr(0, 12));
  EXPECT_EQ(actor.pod_uid, "11111111-2222-3333-4444-555555555555");
}

TEST(Attributor, UnderscoresOfASliceBecomeDashes) {
  Attributor attributor;
  learn(attributor,
        cgroup(9, "/kubepods.slice/kubepods-pod11111111_2222_3333_4444_555555555555.slice/crio-" + kId + ".scope"));
  EXPECT_EQ(attributor.actor_of(head_of(1, 1, 9)).pod_uid, "11111111-2222-3333-4444-555555555555");
}

TEST(Attributor, UnknownStaysEmpty) {
  Attributor attributor;
  const model::Actor actor = attributor.actor_of(head_of(100, 5, 9));
  EXPECT_TRUE(actor.exe.empty());
  EXPECT_TRUE(actor.runtime.empty());
  EXPECT_EQ(actor.tgid, 100U);
  EXPECT_EQ(actor.cgroup_id, 9U);
}

TEST(Attributor, ReusedPidIsAnotherProcess) {
  Attributor attributor;
  learn(attributor, task(100, 5, "/old"));
  learn(attributor, task(100, 6, "/new"));
  EXPECT_EQ(attributor.actor_of(head_of(100, 5, 0)).exe, "/old");
  EXPECT_EQ(attributor.actor_of(head_of(100, 6, 0)).exe, "/new");
}

TEST(Attributor, ExecChangesTheExecutable) {
  Attributor attributor;
  learn(attributor, task(100, 5, "/bin/sh"));
  learn(attributor, task(100, 5, "/usr/bin/app"));
  EXPECT_EQ(attributor.actor_of(head_of(100, 5, 0)).exe, "/usr/bin/app");
}

TEST(Attributor, VersionsOfCgroupsAreApart) {
  Attributor attributor;
  learn(attributor, cgroup(9, "/docker/" + kId));
  learn(attributor, cgroup(9, "/user.slice", GPUWATCH_F_CGROUP_V1));
  EXPECT_EQ(attributor.actor_of(head_of(1, 1, 9)).runtime, "docker");
  gpuwatch_rec head = head_of(1, 1, 9);
  head.flags = GPUWATCH_F_CGROUP_V1;
  EXPECT_EQ(attributor.actor_of(head).cgroup_path, "/user.slice");
}

TEST(Attributor, ForgetsTheLeastRecentlyUsed) {
  Attributor attributor({3, 2});
  for (std::uint32_t pid = 1; pid <= 3; ++pid) learn(attributor, task(pid, 1, "/p" + std::to_string(pid)));
  EXPECT_EQ(attributor.actor_of(head_of(1, 1, 0)).exe, "/p1");
  learn(attributor, task(4, 1, "/p4"));
  EXPECT_EQ(attributor.actor_of(head_of(1, 1, 0)).exe, "/p1");
  EXPECT_TRUE(attributor.actor_of(head_of(2, 1, 0)).exe.empty());
  EXPECT_EQ(attributor.evicted(), 1U);
  for (std::uint64_t id = 0; id < 1000; ++id) learn(attributor, cgroup(id, "/c" + std::to_string(id)));
  EXPECT_EQ(attributor.actor_of(head_of(1, 1, 999)).cgroup_path, "/c999");
  EXPECT_EQ(attributor.evicted(), 1U + 998U);
}

TEST(Attributor, MalformedDefinitionsAreCounted) {
  Attributor attributor;
  gpuwatch_rec head = test::make_head(GPUWATCH_REC_TASK);
  learn(attributor, test::finish_record(head, Blob(8)));
  gpuwatch_rec_cgroup fixed{};
  fixed.path_len = 4000;
  Blob payload;
  test::append_struct(payload, fixed);
  head.type = GPUWATCH_REC_CGROUP;
  learn(attributor, test::finish_record(head, payload));
  EXPECT_EQ(attributor.malformed(), 2U);
}

}  // namespace
}  // namespace gpuwatch::attribute
