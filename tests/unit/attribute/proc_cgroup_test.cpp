// SPDX-License-Identifier: Apache-2.0
// Which line of /proc/PID/cgroup is believed.
#include "attribute/proc_cgroup.h"

#include <gtest/gtest.h>

#include <string>

namespace gpuwatch::attribute {
namespace {

const std::string kId(64, 'a');
const std::string kOther(64, 'b');

TEST(ProcCgroup, LinesHaveThreeParts) {
  const auto line = parse_cgroup_line("11:cpu,cpuacct:/a:b");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->hierarchy, 11U);
  EXPECT_EQ(line->controllers, "cpu,cpuacct");
  EXPECT_EQ(line->path, "/a:b");
  for (const char* bad : {"", "0", "0:", "0::", "0::a", "x::/", "-1::/", "1:/", "4294967296::/"})
    EXPECT_FALSE(parse_cgroup_line(bad)) << bad;
}

TEST(ProcCgroup, UnifiedHierarchy) {
  const std::string text = "0::/system.slice/docker-" + kId + ".scope\n";
  const auto chosen = parse_proc_cgroup(text);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->facts.innermost()->id, kId);
}

// From ctrsploit/ctrsploit#280: v1 with docker, and v2 that knows the daemon only.
TEST(ProcCgroup, HybridKnowsTheContainerInV1Only) {
  const std::string text = "12:net_cls,net_prio:/docker/" + kId + "\n10:rdma:/\n8:memory:/docker/" + kId +
                           "\n1:name=systemd:/docker/" + kId + "\n0::/system.slice/containerd.service\n";
  const auto chosen = parse_proc_cgroup(text);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->line.controllers, "memory");
  EXPECT_EQ(chosen->facts.innermost()->id, kId);
  EXPECT_TRUE(chosen->facts.unit.empty());
}

// From concourse/concourse#3613: systemd moved two of the hierarchies.
TEST(ProcCgroup, MemoryGoesBeforeSystemd) {
  const std::string text =
      "8:devices:/docker/" + kOther + "\n4:memory,hugetlb:/docker/" + kId + "\n1:name=systemd:/docker/" + kOther + "\n";
  EXPECT_EQ(parse_proc_cgroup(text)->facts.innermost()->id, kId);
}

TEST(ProcCgroup, AJobGoesBeforeAUnit) {
  const std::string text = "1:name=systemd:/system.slice/slurmd.service\n5:cpuset:/slurm/uid_1/job_2/step_3\n";
  EXPECT_EQ(parse_proc_cgroup(text)->facts.slurm_job, 2U);
}

TEST(ProcCgroup, NothingOfTheForm) {
  EXPECT_FALSE(parse_proc_cgroup(""));
  EXPECT_FALSE(parse_proc_cgroup("\n\n/docker/x\n"));
  EXPECT_TRUE(parse_proc_cgroup("0::/\n")->facts.unknown());
}

}  // namespace
}  // namespace gpuwatch::attribute
