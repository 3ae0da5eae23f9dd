// SPDX-License-Identifier: Apache-2.0
// Allocation against use: who is told to use what it was not given, by which
// source, and above all who is not, because nothing decides it.
#include "attribute/allocation.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attribute/allocation_facts.h"
#include "attribute/allocation_watch.h"
#include "base/io.h"
#include "unit/support.h"

namespace gpuwatch::attribute {
namespace {

constexpr std::uint64_t kReady = 1000;

// Minors are not indices: the GPU with the lowest address has minor 1.
const model::GpuList kGpus = {
    {0, "0000:c1:00.0", "GPU-00000000-1111-2222-3333-444444444444", "B", {}},
    {1, "0000:41:00.0", "GPU-55555555-6666-7777-8888-999999999999", "A", {{3, 0, 31, "MIG-aaaaaaaa-bbbb", ""}}}};

NodeFacts node(std::int32_t minor, std::uint64_t ino, std::uint64_t ctime_ns = kReady - 10, std::uint32_t dev = 7) {
  return {minor, ino, ctime_ns, dev};
}

GpuUse use_of(std::int32_t minor, const NodeFacts& opened) {
  GpuUse use;
  use.minor = minor;
  gpuwatch_open_node told{};
  told.ino = opened.ino;
  told.dev = opened.dev;
  told.ctime_ns = opened.ctime_ns;
  use.node = told;
  use.host_node = node(minor, 100 + static_cast<std::uint64_t>(minor), 5, 6);
  return use;
}

// A container whose runtime made nvidia0 in its /dev.
ContainerFacts given_gpu0() {
  ContainerFacts facts;
  facts.own_mounts = true;
  facts.nodes = std::vector<NodeFacts>{node(0, 50)};
  facts.dev_ready_ns = kReady;
  return facts;
}

std::string reason(const ContainerFacts& facts, const GpuUse& use, const model::GpuList& gpus = kGpus) {
  const auto finding = judge(facts, use, gpus);
  return finding ? finding->reason : "";
}

TEST(Allocation, WhatTheRuntimeGaveIsFine) {
  EXPECT_EQ(reason(given_gpu0(), use_of(0, node(0, 50))), "");
}

TEST(Allocation, AnotherGpuThroughANodeOfItsOwn) {
  const auto finding = judge(given_gpu0(), use_of(1, node(1, 60, kReady + 1)), kGpus);
  ASSERT_TRUE(finding.has_value());
  EXPECT_EQ(finding->reason, "outside_allocation");
  EXPECT_NE(finding->evidence.find("its /dev was given gpu0"), std::string::npos) << finding->evidence;
  EXPECT_NE(finding->evidence.find("inode 60 on device 0:7"), std::string::npos) << finding->evidence;
}

TEST(Allocation, ItsOwnGpuThroughANodeOfItsOwn) {
  EXPECT_EQ(reason(given_gpu0(), use_of(0, node(0, 60, kReady + 1))), "own_node");
}

// In the runtime's place, under the runtime's name, but later.
TEST(Allocation, ANodePutIntoDevLater) {
  ContainerFacts facts = given_gpu0();
  facts.nodes->push_back(node(1, 61, kReady + 1));
  EXPECT_EQ(reason(facts, use_of(1, node(1, 61, kReady + 1))), "outside_allocation");
  // At the very time of the runtime's last link it is the runtime's.
  (*facts.nodes)[1].ctime_ns = kReady;
  EXPECT_EQ(reason(facts, use_of(1, node(1, 61, kReady))), "");
}

TEST(Allocation, TheHostsNodeBoundIntoTheContainer) {
  ContainerFacts facts = given_gpu0();
  facts.nodes = std::vector<NodeFacts>{node(1, 101, kReady + 99, 6)};
  EXPECT_EQ(reason(facts, use_of(1, node(1, 101, 5, 6))), "");
  // The host's node in some other place than /dev was not given.
  facts.nodes->clear();
  EXPECT_EQ(reason(facts, use_of(1, node(1, 101, 5, 6))), "outside_allocation");
}

TEST(Allocation, VisibleDevicesDecideWhereTheyNameGpus) {
  ContainerFacts facts = given_gpu0();
  facts.nodes = std::vector<NodeFacts>{node(0, 100, 5, 6), node(1, 101, 5, 6)};  // privileged: all there is
  facts.visible_devices = "GPU-00000000-1111-2222-3333-444444444444";
  EXPECT_EQ(reason(facts, use_of(0, node(0, 100, 5, 6))), "");
  EXPECT_EQ(reason(facts, use_of(1, node(1, 101, 5, 6))), "outside_allocation");
  for (const char* value : {"all", "void", "none", "", "9", "GPU-ffffffff-1111"}) {
    facts.visible_devices = value;
    EXPECT_EQ(reason(facts, use_of(1, node(1, 101, 5, 6))), "") << value;
  }
}

TEST(Allocation, UnknownIsNoFinding) {
  const GpuUse use = use_of(1, node(1, 60, kReady + 1));
  EXPECT_EQ(reason({}, use), "");
  ContainerFacts facts = given_gpu0();
  facts.own_mounts = false;  // the host's
  EXPECT_EQ(reason(facts, use), "");
  facts = given_gpu0();
  facts.nodes.reset();
  EXPECT_EQ(reason(facts, use), "");
  facts = given_gpu0();
  facts.nodes->push_back(node(1, 60, kReady + 1));
  facts.dev_ready_ns = 0;  // nobody knows when the runtime was done
  EXPECT_EQ(reason(facts, use), "");
  GpuUse old = use_of(0, node(0, 60, kReady + 1));
  old.node.reset();  // a record of before schema 2
  EXPECT_EQ(reason(given_gpu0(), old), "");
  old = use_of(0, node(0, 60, kReady + 1));
  old.host_node.reset();
  EXPECT_EQ(reason(given_gpu0(), old), "");
  EXPECT_EQ(reason(given_gpu0(), use_of(-1, node(1, 60))), "");
}

TEST(Allocation, EvidenceNamesTheDeviceCgroup) {
  ContainerFacts facts = given_gpu0();
  facts.device_rules = {"c 195:* rw", "a *:* rwm"};
  EXPECT_NE(judge(facts, use_of(1, node(1, 60)), kGpus)->evidence.find("device cgroup: [c 195:* rw] [a *:* rwm]"),
            std::string::npos);
}

TEST(Allocation, EvidenceNamesTheDeviceFilter) {
  ContainerFacts facts = given_gpu0();
  const auto evidence = [&] { return judge(facts, use_of(1, node(1, 60)), kGpus)->evidence; };
  facts.device_programs = 1;
  facts.filter_allows = std::vector<std::int32_t>{0};
  EXPECT_NE(evidence().find("its device filter allows gpu0"), std::string::npos) << evidence();
  facts.filter_allows->clear();
  for (std::int32_t i = 0; i < kGpuMinorsMax; ++i) facts.filter_allows->push_back(i);
  EXPECT_NE(evidence().find("its device filter allows every GPU"), std::string::npos) << evidence();
  facts.filter_allows.reset();
  facts.filter_unread = "no right to";
  EXPECT_NE(evidence().find("its device filter is not readable: no right to"), std::string::npos) << evidence();
}

// By its own nodes nothing is known; the filter lets only GPU 0 through, so GPU
// 1 came some other way. A variable that names GPU 1 decides against it.
TEST(Allocation, WhatTheFilterKeepsOutWasNotGiven) {
  ContainerFacts facts;
  facts.own_mounts = true;
  facts.filter_allows = std::vector<std::int32_t>{0};
  EXPECT_EQ(reason(facts, use_of(0, node(0, 50))), "");
  EXPECT_EQ(reason(facts, use_of(1, node(1, 60))), "outside_allocation");
  EXPECT_TRUE(judge(facts, use_of(1, node(1, 60)), kGpus)->evidence.starts_with("its device filter allows gpu0"));
  EXPECT_EQ(reason(facts, use_of(kGpuMinorsMax, node(kGpuMinorsMax, 60))), "") << "not computed for that minor";
  facts.visible_devices = "GPU-5555";
  EXPECT_EQ(reason(facts, use_of(1, node(1, 60))), "");
}

TEST(Allocation, CdiDevicesDecideWhereNoVariableDoes) {
  ContainerFacts facts = given_gpu0();
  facts.nodes = std::vector<NodeFacts>{node(0, 100, 5, 6), node(1, 101, 5, 6)};
  facts.visible_devices = "void";            // what a runtime sets in CDI mode
  facts.cdi_devices = {"nvidia.com/gpu=1"};  // by address: minor 0
  EXPECT_EQ(reason(facts, use_of(0, node(0, 100, 5, 6))), "");
  const auto finding = judge(facts, use_of(1, node(1, 101, 5, 6)), kGpus);
  ASSERT_TRUE(finding.has_value());
  EXPECT_EQ(finding->reason, "outside_allocation");
  EXPECT_NE(finding->evidence.find("CDI gave nvidia.com/gpu=1, which is gpu0"), std::string::npos) << finding->evidence;
  facts.visible_devices = "GPU-5555";  // the variable names GPU 1
  EXPECT_EQ(reason(facts, use_of(1, node(1, 101, 5, 6))), "");
}

TEST(CdiMinors, FormsOfDevices) {
  using Minors = std::vector<std::int32_t>;
  const auto minors = [](std::vector<std::string> devices) { return cdi_minors(devices, kGpus).value_or(Minors{-1}); };
  EXPECT_EQ(minors({"nvidia.com/gpu=0"}), Minors{1});
  EXPECT_EQ(minors({"nvidia.com/gpu=0", "nvidia.com/gpu=1", "nvidia.com/gpu=1"}), (Minors{1, 0}));
  EXPECT_EQ(minors({"k8s.device-plugin.nvidia.com/gpu=GPU-55555555-6666-7777-8888-999999999999"}), Minors{1});
  EXPECT_EQ(minors({"nvidia.com/mig=0:1"}), Minors{1});
  EXPECT_EQ(minors({"vendor.com/nic=0", "nvidia.com/gpu=1"}), Minors{0});
  for (const char* device : {"nvidia.com/gpu=all", "nvidia.com/gpu=", "nvidia.com/gpu=7", "nvidia.com/gpu=0,1",
                             "vendor.com/gpu=0", "xnvidia.com/gpu=0", "nvidia.com/gds=0", "nvidia.com=0", "=0"})
    EXPECT_EQ(minors({device}), Minors{-1}) << device;
  EXPECT_EQ(minors({}), Minors{-1});
}

TEST(VisibleMinors, IndicesUuidsAndMig) {
  using Minors = std::vector<std::int32_t>;
  const auto minors = [](std::string_view value) { return visible_minors(value, kGpus).value_or(Minors{-1}); };
  EXPECT_EQ(minors("0"), Minors{1});
  EXPECT_EQ(minors("1,0"), (Minors{0, 1}));
  EXPECT_EQ(minors("0,0,"), Minors{1});
  EXPECT_EQ(minors("GPU-5555"), Minors{1});
  EXPECT_EQ(minors("MIG-aaaaaaaa-bbbb"), Minors{1});
  EXPECT_EQ(minors("0:1"), Minors{1});
  EXPECT_EQ(minors("nvidia.com/gpu=1"), Minors{0});
  EXPECT_EQ(minors("nvidia.com/gpu=all"), Minors{-1});
  for (const char* value : {"all", "GPU-", "GPU", "2", "-1", "0x", "0,all", ",", "99999999999999999999"})
    EXPECT_EQ(minors(value), Minors{-1}) << value;
  // Two GPUs begin like that; and without addresses nobody knows the order.
  model::GpuList twins = {{0, "", "GPU-aaaa1", "", {}}, {1, "", "GPU-aaaa2", "", {}}};
  EXPECT_FALSE(visible_minors("GPU-aaaa", twins).has_value());
  EXPECT_FALSE(visible_minors("0", twins).has_value());
  EXPECT_FALSE(visible_minors("0", {}).has_value());
}

// This process shares the mount namespace of whoever looks: nothing is decided.
TEST(AllocationFacts, OurOwnMountsAreNoContainer) {
  const std::string stat = *base::read_text_file("/proc/self/stat");
  std::size_t at = stat.rfind(')');
  for (int field = 2; field < 22; ++field) at = stat.find(' ', at + 1);
  const std::uint64_t start_ns = std::strtoull(stat.c_str() + at, nullptr, 10) * 10'000'000;
  const ContainerFacts facts = read_container_facts({{static_cast<std::uint32_t>(::getpid()), start_ns}});
  EXPECT_FALSE(facts.own_mounts);
  EXPECT_FALSE(facts.nodes.has_value());
  // A process that is not there, or another with its pid.
  EXPECT_FALSE(read_container_facts({{static_cast<std::uint32_t>(::getpid()), start_ns + 90'000'000}}).own_mounts);
}

TEST(AllocationWatch, LooksOncePerProcessAndNode) {
  AllocationWatch watch;
  gpuwatch_rec head = test::make_head(GPUWATCH_REC_OPEN);
  head.node_kind = GPUWATCH_NODE_GPU;
  head.rdev = 195u << 20;
  model::Process process;
  process.ns_level = 1;
  model::Actor actor;
  actor.process = &process;
  const test::Blob good = test::open_record(head), failed = test::open_record(head, -13);
  watch.opened(model::parse_record(failed).value(), actor, kGpus);
  for (int i = 0; i < 5; ++i) watch.opened(model::parse_record(good).value(), actor, kGpus);
  process.ns_level = 0;  // the host's own
  head.tgid = 12345;
  const test::Blob host = test::open_record(head);
  watch.opened(model::parse_record(host).value(), actor, kGpus);
  watch.settle(10'000'000'000);
  EXPECT_EQ(watch.counters().looks, 1U);
  EXPECT_EQ(watch.counters().unknown, 1U);
  std::vector<UnallocatedUse> found;
  watch.take(found);
  EXPECT_TRUE(found.empty());
}

}  // namespace
}  // namespace gpuwatch::attribute
