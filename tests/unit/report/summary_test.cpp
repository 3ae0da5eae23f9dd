// SPDX-License-Identifier: Apache-2.0
// Summary: what is counted to whom, over which time, and that nothing grows
// without bound or disappears uncounted.
#include "report/summary.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "report/summary_print.h"
#include "unit/report/events.h"

namespace gpuwatch::report {
namespace {

using model::StoryKind;
using test::call_of;
using test::context_of;
using test::memory_of;

model::Actor nobody(const gpuwatch_rec& head) {
  model::Actor actor;
  actor.tgid = head.tgid;
  actor.start_ns = head.start_ns;
  return actor;
}

// Odd pids run in one container, even ones in a unit.
model::Actor in_containers(const gpuwatch_rec& head) {
  static const std::string kId(64, 'a');
  model::Actor actor = nobody(head);
  if (head.tgid % 2 == 1) {
    actor.runtime = "docker";
    actor.container_id = kId;
    actor.container_name = "trainer";
  } else {
    actor.unit = "ssh.service";
  }
  return actor;
}

std::string text_of(const Summary& summary) {
  std::string out;
  append_summary_text(out, summary.result(), {});
  return out;
}

TEST(Summary, CountsCallsByNameWithTimes) {
  Summary summary({}, nobody);
  for (std::uint64_t i = 1; i <= 4; ++i) summary.observe(call_of(7, i * 1'000'000, 1000 * i));
  summary.observe(call_of(7, 9'000'000, 500, "NV_ESC_RM_FREE", ""));
  const SummaryResult result = summary.result();
  ASSERT_EQ(result.groups.size(), 1U);
  const Group& group = result.groups.front();
  EXPECT_EQ(group.calls, 5U);
  EXPECT_EQ(group.driver_ns, 10'500U);
  EXPECT_EQ(group.span_ns, 9'000'000U - 999'000U);
  ASSERT_EQ(group.names.size(), 2U);
  EXPECT_EQ(label_of(group.names[0]), "NV_ESC_RM_CONTROL GPU_GET_INFO");
  EXPECT_EQ(group.names[0].durations.count(), 4U);
  EXPECT_EQ(group.names[0].durations.max_ns(), 4000U);
  EXPECT_EQ(label_of(group.names[1]), "NV_ESC_RM_FREE");
}

TEST(Summary, NamelessCallsAreToldByNumber) {
  Summary summary({}, nobody);
  model::Call escape = call_of(7, 1000, 10, "", "");
  escape.number = 0x7f;
  model::Call control = call_of(7, 2000, 10, "NV_ESC_RM_CONTROL", "");
  control.set(model::Field::kControl, 0x20808a2c);
  summary.observe(escape);
  summary.observe(control);
  const std::string text = text_of(summary);
  EXPECT_NE(text.find("nvidiactl ioctl 0x7f"), std::string::npos) << text;
  EXPECT_NE(text.find("NV_ESC_RM_CONTROL 0x20808a2c"), std::string::npos) << text;
}

TEST(Summary, DeniedAndFailedAreToldApart) {
  Summary summary({}, nobody);
  model::Call denied = call_of(7, 1000);
  denied.failed = denied.denied = true;
  denied.status_name = "NV_ERR_INSUFFICIENT_PERMISSIONS";
  model::Call failed = call_of(7, 2000);
  failed.failed = true;
  summary.observe(denied);
  summary.observe(failed);
  summary.observe(call_of(7, 3000));
  const Group group = summary.result().groups.front();
  EXPECT_EQ(group.failed, 2U);
  EXPECT_EQ(group.denied, 1U);
  const std::string text = text_of(summary);
  EXPECT_NE(text.find("2 failed, 1 denied"), std::string::npos) << text;
}

TEST(Summary, WindowCountsOnlyWhatCompletedInIt) {
  SummaryOptions options;
  options.since_ns = 2'000'000;
  options.until_ns = 5'000'000;
  Summary summary(options, nobody);
  for (std::uint64_t i = 0; i < 10; ++i) summary.observe(call_of(7, 10'000'000 + i * 1'000'000, 0));
  summary.observe(memory_of(7, 10'500'000, 4096, 4096, 4096));
  const Group group = summary.result().groups.front();
  EXPECT_EQ(group.calls, 4U);  // at 2, 3, 4 and 5 ms
  EXPECT_EQ(group.span_ns, 3'000'000U);
  ASSERT_EQ(group.gpus.size(), 1U);  // held all the same
  EXPECT_EQ(group.gpus[0].memory.live, 4096U);
}

TEST(Summary, MemoryPeakStaysWhenItIsFreed) {
  Summary summary({}, nobody);
  summary.observe(call_of(7, 1000));
  summary.observe(memory_of(7, 1000, 100, 100, 100));
  summary.observe(memory_of(7, 2000, 200, 300, 300));
  summary.observe(memory_of(7, 3000, 300, 0, 0, false));
  const Group group = summary.result().groups.front();
  ASSERT_EQ(group.gpus.size(), 1U);
  EXPECT_EQ(group.gpus[0].memory.peak, 300U);
  EXPECT_EQ(group.gpus[0].memory.live, 0U);
}

TEST(Summary, ContextsAndChannelsLiveAndDie) {
  Summary summary({}, nobody);
  summary.observe(call_of(7, 1000));
  for (std::uint32_t i = 0; i < 3; ++i) summary.observe(test::channel_of(7, 1000, i, "GR0"));
  summary.observe(context_of(7, 2000, 1));
  summary.observe(test::channel_of(7, 3000, 0, "GR0", false));
  summary.observe(context_of(7, 4000, 1, false));
  const Group group = summary.result().groups.front();
  EXPECT_EQ(group.contexts_made, 1U);
  EXPECT_EQ(group.contexts.live, 0U);
  EXPECT_EQ(group.channels_made, 3U);
  EXPECT_EQ(group.channels.peak, 3U);
  EXPECT_EQ(group.channels.live, 2U);
}

TEST(Summary, ByContainerAddsUpProcessesAndTheirMemoryAtTheSameTime) {
  SummaryOptions options;
  options.by = GroupBy::kContainer;
  Summary summary(options, in_containers);
  for (const std::uint32_t pid : {1U, 2U, 3U}) summary.observe(call_of(pid, 1000 * pid));
  summary.observe(memory_of(1, 4000, 100, 100, 100));
  summary.observe(memory_of(3, 5000, 50, 50, 150));
  summary.observe(memory_of(1, 6000, 100, 0, 50, false));
  summary.observe(memory_of(3, 7000, 60, 110, 110));
  const SummaryResult result = summary.result();
  ASSERT_EQ(result.groups.size(), 2U);
  const Group& container = result.groups[0].who.container_id.empty() ? result.groups[1] : result.groups[0];
  EXPECT_EQ(container.processes, 2U);
  EXPECT_EQ(container.calls, 2U);
  ASSERT_EQ(container.gpus.size(), 1U);
  EXPECT_EQ(container.gpus[0].memory.peak, 150U);  // not 100 + 110
  EXPECT_EQ(container.gpus[0].memory.live, 110U);
  const std::string text = text_of(summary);
  EXPECT_NE(text.find("docker aaaaaaaaaaaa trainer  (2 processes)"), std::string::npos) << text;
  EXPECT_NE(text.find("no container: ssh.service  (1 process)"), std::string::npos) << text;
}

TEST(Summary, TheLongestIdleGroupsAreFoldedAndCounted) {
  SummaryOptions options;
  options.limits.groups = 4;
  Summary summary(options, nobody);
  for (std::uint32_t pid = 1; pid <= 100; ++pid) {
    summary.observe(call_of(pid, 1000 * pid));
    summary.observe(call_of(1, 1000 * pid + 1));  // keeps itself young
  }
  const SummaryResult result = summary.result();
  EXPECT_EQ(result.groups.size(), 4U);
  EXPECT_EQ(result.folded.groups, 96U);
  EXPECT_EQ(result.calls, 200U);
  EXPECT_EQ(result.processes, 100U);
  EXPECT_EQ(result.groups.front().who.pid, 1U);
  EXPECT_EQ(result.groups.front().calls, 101U);
  EXPECT_NE(text_of(summary).find("and 96 processes more: 96 calls"), std::string::npos);
}

TEST(Summary, NamesBeyondTheLimitAreStillCounted) {
  SummaryOptions options;
  options.limits.names = 3;
  Summary summary(options, nobody);
  for (std::uint32_t number = 1; number <= 10; ++number) {
    model::Call call = call_of(7, 1000 * number, 10, "", "");
    call.number = number;
    summary.observe(call);
  }
  const Group group = summary.result().groups.front();
  EXPECT_EQ(group.names.size(), 3U);
  EXPECT_EQ(group.unlisted, 7U);
  EXPECT_EQ(group.calls, 10U);
}

TEST(Summary, UntrustedNamesCannotLeaveTheirLine) {
  Summary summary({}, nobody);
  model::Call call = call_of(7, 1000);
  std::memcpy(call.record.head.comm, "a\nb\x1b[31m c", 10);
  summary.observe(call);
  const std::string text = text_of(summary);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("a\\x0ab\\x1b[31m\\x20c/7"), std::string::npos) << text;
}

TEST(Summary, JsonIsOneObjectALineAndAgreesWithTheText) {
  Summary summary({}, in_containers);
  for (std::uint32_t i = 0; i < 3; ++i) summary.observe(call_of(1, 1'000'000 * (i + 1), 100));
  summary.observe(memory_of(1, 2'500'000, 4096, 4096, 4096));
  std::string out;
  Origin origin;
  origin.driver_version = "580.159.04";
  origin.gpus.push_back({0, "NVIDIA H200\xff"});
  append_summary_json(out, summary.result(), origin);
  std::istringstream lines(out);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const auto group = nlohmann::json::parse(line);
  EXPECT_EQ(group["type"], "summary");
  EXPECT_EQ(group["calls"], 3);
  EXPECT_EQ(group["driver_ns"], 300);
  EXPECT_EQ(group["container_name"], "trainer");
  EXPECT_EQ(group["by_call"][0]["count"], 3);
  EXPECT_EQ(group["by_call"][0]["median_ns"], 100);
  EXPECT_EQ(group["gpu_memory"][0]["peak_bytes"], 4096);
  EXPECT_EQ(group["events"]["memory.allocated"], 1);
  ASSERT_TRUE(std::getline(lines, line));
  const auto total = nlohmann::json::parse(line);
  EXPECT_EQ(total["type"], "summary_total");
  EXPECT_EQ(total["calls"], 3);
  EXPECT_FALSE(std::getline(lines, line));
}

TEST(Summary, TimesMayBeAnything) {
  constexpr std::uint64_t kLast = ~std::uint64_t{0};
  for (const std::uint64_t since : {std::uint64_t{0}, kLast / 2}) {
    SummaryOptions options;
    options.since_ns = since;
    Summary summary(options, nobody);
    for (const std::uint64_t at : {kLast, std::uint64_t{0}, kLast / 2, std::uint64_t{1}})
      summary.observe(call_of(7, at, kLast / 3));
    EXPECT_LE(summary.result().calls, 4U);
    EXPECT_FALSE(text_of(summary).empty());
    std::string json;
    append_summary_json(json, summary.result(), {});
    EXPECT_FALSE(json.empty());
  }
}

TEST(Summary, NothingSeenIsNoTrouble) {
  Summary summary({}, nobody);
  EXPECT_TRUE(summary.result().groups.empty());
  EXPECT_NE(text_of(summary).find("0 calls of 0 processes"), std::string::npos);
}

}  // namespace
}  // namespace gpuwatch::report
