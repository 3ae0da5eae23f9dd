// SPDX-License-Identifier: Apache-2.0
// Unit tests of --node, --pid, --cgroup and --class: the kernel's filter that
// they make, and the same choice on recorded records.
#include "cli/selection.h"

#include <gtest/gtest.h>

#include "unit/support.h"

namespace gpuwatch::cli {
namespace {

base::Result<Selection> select(std::vector<std::string> args) {
  args.insert(args.begin(), "tail");
  ParseOutcome outcome = parse_flags(args);
  EXPECT_TRUE(outcome.flags) << outcome.text;
  return Selection::from_flags(*outcome.flags);
}

TEST(Selection, EverythingByDefault) {
  auto selection = select({});
  ASSERT_TRUE(selection.ok());
  EXPECT_TRUE(selection->everything());
  auto filter = selection->kernel_filter();
  ASSERT_TRUE(filter.ok());
  EXPECT_EQ(filter->node_mask, 0u);
  EXPECT_EQ(filter->class_mask, 0u);
  EXPECT_EQ(filter->cgroup_fd, -1);
  EXPECT_EQ(filter->nr_pids, 0u);
}

TEST(Selection, MasksAndPids) {
  auto selection = select({"--node", "gpu", "--node", "uvm", "--class", "ioctl", "--pid", "12", "--pid", "13"});
  ASSERT_TRUE(selection.ok());
  auto filter = selection->kernel_filter();
  ASSERT_TRUE(filter.ok());
  EXPECT_EQ(filter->node_mask, (1u << GPUWATCH_NODE_GPU) | (1u << GPUWATCH_NODE_UVM));
  // Definitions come along, to be learned from.
  EXPECT_EQ(filter->class_mask, GPUWATCH_CLASS(GPUWATCH_REC_IOCTL) | GPUWATCH_CLASS(GPUWATCH_REC_TASK) |
                                    GPUWATCH_CLASS(GPUWATCH_REC_CGROUP));
  ASSERT_EQ(filter->nr_pids, 2u);
  EXPECT_EQ(filter->pids[1], 13u);
}

TEST(Selection, MistakesNameTheFlag) {
  EXPECT_EQ(select({"--node", "gpx"}).error().message().substr(0, 31), "--node: unknown kind 'gpx'; kin");
  EXPECT_EQ(select({"--class", "opn"}).error().message().substr(0, 29), "--class: unknown class 'opn';");
  for (const char* pid : {"0", "x", "-1", "4294967296", "12 "}) EXPECT_FALSE(select({"--pid", pid}).ok()) << pid;
  std::vector<std::string> many;
  for (int i = 1; i <= 17; ++i) many.insert(many.end(), {"--pid", std::to_string(i)});
  EXPECT_NE(select(many).error().message().find("at most 16"), std::string::npos);
}

TEST(Selection, AbsentCgroupIsAnError) {
  auto selection = select({"--cgroup", "/no-such-cgroup-here"});
  ASSERT_TRUE(selection.ok());
  auto filter = selection->kernel_filter();
  ASSERT_FALSE(filter.ok());
  EXPECT_NE(filter.error().message().find("/no-such-cgroup-here"), std::string::npos);
}

TEST(Selection, MatchesRecords) {
  model::Actor actor;
  actor.cgroup_path = "/a/b";
  gpuwatch_rec head = test::make_head(GPUWATCH_REC_IOCTL);
  head.node_kind = GPUWATCH_NODE_GPU;
  const auto holds = [&](std::vector<std::string> args) { return select(std::move(args))->matches(head, actor); };
  EXPECT_TRUE(holds({"--node", "gpu"}));
  EXPECT_FALSE(holds({"--node", "ctl"}));
  EXPECT_TRUE(holds({"--class", "ioctl", "--class", "open"}));
  EXPECT_FALSE(holds({"--class", "open"}));
  EXPECT_TRUE(holds({"--pid", "7"}));
  EXPECT_FALSE(holds({"--pid", "8"}));
  EXPECT_TRUE(holds({"--cgroup", "/"}));
  EXPECT_TRUE(holds({"--cgroup", "/a"}));
  EXPECT_TRUE(holds({"--cgroup", "a/b/"}));
  EXPECT_FALSE(holds({"--cgroup", "/a/b/c"}));
  EXPECT_FALSE(holds({"--cgroup", "/a/bb"}));
  actor.cgroup_path = "/ab";
  EXPECT_FALSE(holds({"--cgroup", "/a"}));
  head.type = GPUWATCH_REC_STATE;
  EXPECT_TRUE(holds({"--cgroup", "/a", "--pid", "8", "--node", "ctl"}));
  EXPECT_FALSE(holds({"--class", "ioctl"}));
  head.type = 200;
  head.node_kind = 200;
  EXPECT_FALSE(holds({"--class", "ioctl"}));
  EXPECT_FALSE(holds({"--node", "ctl"}));
}

TEST(Cgroup2Mount, FindsTheMount) {
  EXPECT_EQ(cgroup2_mount("proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"), "/sys/fs/cgroup");
  EXPECT_EQ(cgroup2_mount("none /mnt/cg cgroup2 rw 0 0"), "/mnt/cg");
  EXPECT_FALSE(cgroup2_mount("cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n\nx\nx y"));
}

}  // namespace
}  // namespace gpuwatch::cli
