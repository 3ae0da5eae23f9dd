// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "harness.h"

namespace gpuwatch::preload {
namespace {

using model::Bytes;
using model::IoctlView;
using model::RawRecord;

std::string text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

IoctlView ioctl_of(const RawRecord& record) {
  const auto view = model::parse_ioctl(record);
  EXPECT_TRUE(view.has_value());
  return view.value_or(IoctlView{});
}

TEST_F(Recorded, RecordsEveryKindOfCall) {
  run({"basic"});
  expect_success();
  const auto opens = of_type(GPUWATCH_REC_OPEN);
  ASSERT_EQ(opens.size(), 2u);
  EXPECT_EQ(opens[0].head.rdev, 1u << 20 | 9);  // /dev/urandom
  EXPECT_EQ(opens[0].head.node_kind, GPUWATCH_NODE_GPU);
  EXPECT_EQ(opens[0].head.tgid, pid_);
  EXPECT_EQ(std::string(opens[0].head.comm, 15), "preload-subject");
  const auto ioctls = of_type(GPUWATCH_REC_IOCTL);
  ASSERT_EQ(ioctls.size(), 3u);

  const IoctlView entropy = ioctl_of(ioctls[0]);
  EXPECT_EQ(entropy.fixed.ret, 0);
  ASSERT_NE(entropy.find(GPUWATCH_CAP_ARG_OUT), nullptr);
  EXPECT_EQ(model::read_at<std::int32_t>(entropy.find(GPUWATCH_CAP_ARG_IN)->bytes, 0), -1);
  EXPECT_GE(*model::read_at<std::int32_t>(entropy.find(GPUWATCH_CAP_ARG_OUT)->bytes, 0), 0);

  const IoctlView control = ioctl_of(ioctls[1]);
  EXPECT_EQ(control.fixed.ret, -EINVAL);  // what /dev/urandom answers
  ASSERT_EQ(control.count, 4u);
  EXPECT_EQ(text(control.find(GPUWATCH_CAP_NESTED0_IN)->bytes), std::string("parameters of a control", 24));
  EXPECT_EQ(text(control.find(GPUWATCH_CAP_NESTED0_OUT)->bytes), std::string("parameters of a control", 24));
  EXPECT_EQ(ioctls[2].head.file_id, opens[0].head.file_id) << "the duplicate names the same open file";

  const auto maps = of_type(GPUWATCH_REC_MMAP);
  ASSERT_EQ(maps.size(), 1u);
  const auto map = *model::read_at<gpuwatch_rec_mmap>(maps[0].payload, 0);
  EXPECT_EQ(map.length, 8192u);
  EXPECT_EQ(map.offset, 8192u);
  EXPECT_EQ(map.shared, 0u);
  EXPECT_EQ(map.prot, 3u);

  const auto releases = of_type(GPUWATCH_REC_RELEASE);
  ASSERT_EQ(releases.size(), 2u);
  EXPECT_EQ(releases[0].head.file_id, opens[0].head.file_id);
  EXPECT_GT(releases[0].head.time_ns, ioctls[2].head.time_ns) << "the first close is not the last";
  EXPECT_EQ(recording_.killed, 0u);
}

TEST_F(Recorded, DefinesTaskAndCgroupFirst) {
  run({"basic"});
  ASSERT_GE(records_.size(), 2u);
  std::set<std::uint16_t> first{records_[0].head.type, records_[1].head.type};
  EXPECT_TRUE(first.count(GPUWATCH_REC_TASK));
  const auto tasks = of_type(GPUWATCH_REC_TASK);
  ASSERT_EQ(tasks.size(), 1u);
  const auto task = *model::read_at<gpuwatch_rec_task>(tasks[0].payload, 0);
  EXPECT_EQ(text(tasks[0].payload.subspan(sizeof task, task.path_len)), SUBJECT);
  EXPECT_EQ(task.parent_tgid, static_cast<std::uint32_t>(getpid()));
  EXPECT_NE(task.exe_ino, 0u);
  const auto cgroups = of_type(GPUWATCH_REC_CGROUP);
  if (!std::filesystem::exists("/proc/self/cgroup")) GTEST_SKIP() << "no cgroups on this kernel";
  ASSERT_EQ(cgroups.size(), 1u);
  for (const auto& record : records_) EXPECT_EQ(record.head.cgroup_id, cgroups[0].head.cgroup_id);
}

TEST_F(Recorded, UnwrapsXfer) {
  run({"xfer"});
  expect_success();
  const auto ioctls = of_type(GPUWATCH_REC_IOCTL);
  ASSERT_EQ(ioctls.size(), 3u);
  const IoctlView good = ioctl_of(ioctls[0]);
  EXPECT_TRUE(ioctls[0].head.flags & GPUWATCH_F_XFER);
  EXPECT_EQ(good.fixed.inner_cmd, 0x2au);
  EXPECT_EQ(good.fixed.inner_size, 32u);
  EXPECT_EQ(model::read_at<std::uint32_t>(good.find(GPUWATCH_CAP_ARG_IN)->bytes, 4), 99u);
  const IoctlView inner = ioctl_of(ioctls[1]);
  EXPECT_EQ(inner.find(GPUWATCH_CAP_XFER_IN)->head.len, 16u);
  EXPECT_EQ(inner.find(GPUWATCH_CAP_ARG_IN)->head.flags, GPUWATCH_CAPF_FAULT);
  const IoctlView outer = ioctl_of(ioctls[2]);
  EXPECT_EQ(outer.find(GPUWATCH_CAP_XFER_IN)->head.flags, GPUWATCH_CAPF_FAULT);
}

TEST_F(Recorded, SurvivesBadPointers) {
  run({"bad-pointers"});
  expect_success();
  const auto ioctls = of_type(GPUWATCH_REC_IOCTL);
  ASSERT_EQ(ioctls.size(), 5u);
  EXPECT_EQ(ioctl_of(ioctls[0]).find(GPUWATCH_CAP_ARG_IN)->head.flags, GPUWATCH_CAPF_FAULT);
  EXPECT_EQ(ioctl_of(ioctls[1]).count, 2u);
  EXPECT_EQ(ioctl_of(ioctls[1]).find(GPUWATCH_CAP_ARG_OUT)->head.flags, GPUWATCH_CAPF_FAULT);
  EXPECT_EQ(ioctl_of(ioctls[2]).find(GPUWATCH_CAP_NESTED0_IN)->head.flags, GPUWATCH_CAPF_FAULT);
  const IoctlView huge = ioctl_of(ioctls[3]);
  const auto* nested = huge.find(GPUWATCH_CAP_NESTED0_IN);
  EXPECT_EQ(nested->head.want, 0xffffffffu);
  EXPECT_EQ(nested->head.len, 512u);
  EXPECT_TRUE(nested->head.flags & GPUWATCH_CAPF_CAPPED);
  EXPECT_EQ(ioctl_of(ioctls[4]).find(GPUWATCH_CAP_ARG_IN)->head.flags, GPUWATCH_CAPF_FAULT);
}

TEST_F(Recorded, FollowsForkAndFindsTheLastClose) {
  run({"forks"});
  expect_success();
  EXPECT_EQ(values(), (std::vector<std::uint32_t>{1, 2}));
  const auto releases = of_type(GPUWATCH_REC_RELEASE);
  ASSERT_EQ(releases.size(), 1u);
  EXPECT_NE(releases[0].head.tgid, pid_) << "the child held it last";
  EXPECT_EQ(of_type(GPUWATCH_REC_TASK).size(), 2u);
}

TEST_F(Recorded, FollowsAFileThroughExecWithoutEnvironment) {
  run({"exec-keeps-fd"});
  expect_success();
  EXPECT_EQ(values(), (std::vector<std::uint32_t>{1, 100}));
  const auto opens = of_type(GPUWATCH_REC_OPEN), releases = of_type(GPUWATCH_REC_RELEASE);
  ASSERT_EQ(opens.size(), 1u);
  ASSERT_EQ(releases.size(), 1u);
  for (const auto& record : of_type(GPUWATCH_REC_IOCTL)) EXPECT_EQ(record.head.file_id, opens[0].head.file_id);
  EXPECT_GE(releases[0].head.time_ns, of_type(GPUWATCH_REC_IOCTL).back().head.time_ns);
}

TEST_F(Recorded, FollowsEveryFormOfExec) {
  run({"exec-forms"});
  expect_success();
  EXPECT_EQ(values(), std::vector<std::uint32_t>(8, 100));
}

TEST_F(Recorded, FollowsSpawnAndVfork) {
  run({"spawns"});
  expect_success();
  EXPECT_EQ(values(), (std::vector<std::uint32_t>{1, 100, 100, 100, 2}));
  const auto opens = of_type(GPUWATCH_REC_OPEN);
  ASSERT_EQ(opens.size(), 4u);
  for (const auto& release : of_type(GPUWATCH_REC_RELEASE)) {
    if (release.head.file_id != opens[0].head.file_id) continue;
    EXPECT_GE(release.head.time_ns, of_type(GPUWATCH_REC_IOCTL).back().head.time_ns)
        << "close in a vfork child is not ours";
  }
}

TEST_F(Recorded, NamesStaticProgramsItCannotFollow) {
  run({"static-children", SUBJECT_STATIC, SUBJECT_STATIC_PIE});
  expect_success();
  ASSERT_EQ(recording_.not_followed.size(), 2u);
  EXPECT_EQ(recording_.not_followed[0].path, SUBJECT_STATIC);
  EXPECT_EQ(recording_.not_followed[1].path, SUBJECT_STATIC_PIE);
  EXPECT_EQ(recording_.not_followed[1].reason, "statically linked");
}

TEST_F(Recorded, LosesNothingOf100000CallsFrom8Threads) {
  run({"threads"});
  expect_success();
  std::map<std::uint32_t, std::uint32_t> next;
  std::size_t seen = 0;
  for (const auto& record : of_type(GPUWATCH_REC_IOCTL)) {
    const auto value = model::read_at<std::uint32_t>(ioctl_of(record).find(GPUWATCH_CAP_ARG_IN)->bytes, 4);
    ASSERT_EQ(value, next[record.head.tid]++) << "thread " << record.head.tid;
    ++seen;
  }
  EXPECT_EQ(seen, 100000u);
  EXPECT_EQ(next.size(), 8u);
  EXPECT_EQ(recording_.lost(), 0u);
  EXPECT_EQ(of_type(GPUWATCH_REC_OPEN).size(), 8u);
  EXPECT_EQ(of_type(GPUWATCH_REC_RELEASE).size(), 8u);
}

TEST_F(Recorded, KeepsEverythingWhenKilled) {
  run({"killed"});
  EXPECT_TRUE(WIFSIGNALED(status_) && WTERMSIG(status_) == SIGKILL);
  EXPECT_EQ(values().size(), 1000u);
  EXPECT_EQ(recording_.killed, 1u);
  EXPECT_EQ(of_type(GPUWATCH_REC_RELEASE).size(), 1u);
}

TEST_F(Recorded, KeepsEverythingWhenCrashed) {
  run({"crashed"});
  EXPECT_TRUE(WIFSIGNALED(status_) && WTERMSIG(status_) == SIGABRT);
  EXPECT_EQ(values(), std::vector<std::uint32_t>{1});
}

TEST_F(Recorded, TakesCallsFromSignalHandlers) {
  run({"signals"});
  expect_success();
  const auto all = values();
  const auto handlers = std::count_if(all.begin(), all.end(), [](std::uint32_t value) { return value >= 0x80000000u; });
  EXPECT_GE(handlers, 200);
  std::uint32_t next = 0, next_signal = 0x80000000u;
  std::multiset<std::uint32_t> seen(all.begin(), all.end());
  for (const std::uint32_t value : seen) EXPECT_EQ(value, value < 0x80000000u ? next++ : next_signal++);
}

TEST_F(Recorded, LivesThroughClosefrom) {
  run({"close-ranges"});
  expect_success();
  EXPECT_EQ(values(), (std::vector<std::uint32_t>{1, 2, 3}));
  const auto opens = of_type(GPUWATCH_REC_OPEN), releases = of_type(GPUWATCH_REC_RELEASE);
  ASSERT_EQ(releases.size(), 3u);
  EXPECT_EQ(releases[0].head.file_id, opens[1].head.file_id);
}

TEST_F(Recorded, SeesCallsThroughLibcSyscall) {
  run({"raw-syscalls"});
  expect_success();
  EXPECT_EQ(values(), std::vector<std::uint32_t>{11});
  EXPECT_EQ(of_type(GPUWATCH_REC_OPEN).size(), 1u);
  EXPECT_EQ(of_type(GPUWATCH_REC_RELEASE).size(), 1u);
}

TEST_F(Recorded, SeesCallsOfAProgramWithAnIoctlOfItsOwn) {
  subject_ = SUBJECT_OWN_IOCTL;
  run({});
  expect_success();
  EXPECT_EQ(values(), std::vector<std::uint32_t>{33});
}

TEST_F(Recorded, SeesCallsOfDlopenedLibraries) {
  run({"dlopened", SUBJECT_LIBRARY});
  expect_success();
  EXPECT_EQ(values(), std::vector<std::uint32_t>{42});
}

TEST_F(Recorded, NamesReceivedFilesAsAdopted) {
  run({"received"});
  expect_success();
  EXPECT_EQ(values(), std::vector<std::uint32_t>{77});
  EXPECT_EQ(recording_.adopted, 1u);
}

TEST_F(Recorded, CountsWhatDoesNotFit) {
  environment_ = {{GW_ENV_MAX, "1"}};
  run({"flood"});
  expect_success();
  const auto kept = of_type(GPUWATCH_REC_IOCTL).size();
  EXPECT_GT(kept, 1000u);
  // 20,000 calls, and the reference that the end would not log anyway.
  EXPECT_EQ(kept + recording_.lost(), 20000u);
}

TEST_F(Recorded, ReadsArgumentsInASandbox) {
  run({"sandboxed"});
  expect_success();
  EXPECT_EQ(values(), (std::vector<std::uint32_t>{1, 2}));
  const auto ioctls = of_type(GPUWATCH_REC_IOCTL);
  ASSERT_EQ(ioctls.size(), 3u);
  EXPECT_EQ(ioctl_of(ioctls[0]).find(GPUWATCH_CAP_ARG_OUT)->head.len, 32u);
  EXPECT_EQ(ioctl_of(ioctls[1]).find(GPUWATCH_CAP_ARG_IN)->head.flags, GPUWATCH_CAPF_FAULT);
}

TEST_F(Recorded, StaysUnderTheFileSizeLimit) {
  run({"file-limit"});
  expect_success();
  EXPECT_EQ(of_type(GPUWATCH_REC_IOCTL).size() + recording_.lost(), 20000u);
  EXPECT_GT(recording_.lost(), 0u);
}

TEST_F(Recorded, TakesThePlanOfTheFile) {
  const gpuwatch_plan_entry entry{.cmd = 0xc020462a,
                                  .cmd_mask = 0xffffffff,
                                  .node_mask = 1u << GPUWATCH_NODE_GPU,
                                  .flags = 0,
                                  .in_bytes = 8,
                                  .out_bytes = 0,
                                  .out_offset = 0,
                                  .nested = {}};
  ASSERT_TRUE(write_plan_file(directory_ + "/plan", {&entry, 1}, {}, 0).ok());
  environment_ = {{GW_ENV_PLAN, directory_ + "/plan"}};
  run({"basic"});
  const IoctlView control = ioctl_of(of_type(GPUWATCH_REC_IOCTL)[1]);
  ASSERT_EQ(control.count, 1u);
  EXPECT_EQ(control.captures[0].head.len, 8u);
  EXPECT_EQ(control.captures[0].head.want, 32u);
  EXPECT_EQ(control.captures[0].head.flags, GPUWATCH_CAPF_CAPPED);
  const IoctlView entropy = ioctl_of(of_type(GPUWATCH_REC_IOCTL)[0]);
  EXPECT_EQ(entropy.count, 0u) << "default_bytes is 0";
}

TEST_F(Recorded, TakesResultsFromWhereThePlanSays) {
  gpuwatch_plan_entry entries[2]{};
  entries[0] = {0xc020462a, 0xffffffff, 1u << GPUWATCH_NODE_GPU, 0, 8, 64, 12, {}};
  // RNDGETENTCNT declares 4 bytes: nothing is left behind 8.
  entries[1] = {0x80045200, 0xffffffff, 1u << GPUWATCH_NODE_GPU, 0, 0, 4, 8, {}};
  ASSERT_TRUE(write_plan_file(directory_ + "/plan", entries, {}, 256).ok());
  environment_ = {{GW_ENV_PLAN, directory_ + "/plan"}};
  run({"basic"});
  expect_success();
  const IoctlView control = ioctl_of(of_type(GPUWATCH_REC_IOCTL)[1]);
  ASSERT_EQ(control.count, 2u);
  EXPECT_EQ(control.captures[0].head.len, 8u);
  EXPECT_EQ(control.captures[0].head.offset, 0u);
  EXPECT_EQ(control.captures[1].head.what, GPUWATCH_CAP_ARG_OUT);
  EXPECT_EQ(control.captures[1].head.offset, 12u);
  EXPECT_EQ(control.captures[1].head.len, 20u) << "cut by what the request word declares";
  EXPECT_EQ(control.captures[1].head.want, 32u);
  EXPECT_EQ(control.captures[1].head.flags, GPUWATCH_CAPF_CAPPED);
  const IoctlView entropy = ioctl_of(of_type(GPUWATCH_REC_IOCTL)[0]);
  EXPECT_EQ(entropy.count, 0u);
}

TEST_F(Recorded, FallsBackFromABrokenPlan) {
  std::ofstream(directory_ + "/plan") << "no plan";
  environment_ = {{GW_ENV_PLAN, directory_ + "/plan"}};
  run({"basic"});
  expect_success();
  EXPECT_EQ(recording_.plan_errors, 1u);
  EXPECT_EQ(ioctl_of(of_type(GPUWATCH_REC_IOCTL)[1]).count, 4u);
}

TEST_F(Recorded, LeavesProgramsAloneWithoutADirectory) {
  environment_ = {{GW_ENV_DIR, directory_ + "/absent"}};
  run({"basic"});
  expect_success();
  EXPECT_EQ(recording_.records, 0u);
}

}  // namespace
}  // namespace gpuwatch::preload
