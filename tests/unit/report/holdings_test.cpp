// SPDX-License-Identifier: Apache-2.0
// Holdings: what is held is right at every moment, ends when it ends, stays
// bounded, and survives the way through JSON; what is no holdings line is told.
#include "report/holdings.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "decode/decoder.h"
#include "decode/driver_seen.h"
#include "decode/story.h"
#include "source/replay_source.h"
#include "unit/report/events.h"

namespace gpuwatch::report {
namespace {

using model::StoryKind;
using model::Verdict;
using test::call_of;
using test::channel_of;
using test::context_of;
using test::event_of;
using test::head_of;
using test::memory_of;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kMiB = 1 << 20;

model::Actor in_container(const char* id) {
  model::Actor actor;
  actor.runtime = "docker";
  actor.container_id = id;
  return actor;
}

model::StoryEvent opened(std::uint32_t pid, std::uint64_t time_ns, std::int32_t minor = 0, bool opens = true) {
  auto event = event_of(opens ? StoryKind::kGpuOpened : StoryKind::kGpuClosed, pid, time_ns, model::GpuBody{});
  event.gpu_minor = minor;
  event.gpu_device = -1;
  return event;
}

model::StoryEvent load_of(std::uint32_t pid, std::uint64_t time_ns, Verdict verdict, bool judged = true) {
  model::ModuleBody body;
  body.judged = judged;
  body.verdict = verdict;
  return event_of(StoryKind::kModuleLoad, pid, time_ns, body);
}

const HeldProcess& only(const HoldingsSnapshot& snapshot) {
  EXPECT_EQ(snapshot.gpus.size(), 1U);
  EXPECT_EQ(snapshot.gpus.at(0).containers.size(), 1U);
  EXPECT_EQ(snapshot.gpus.at(0).containers.at(0).processes.size(), 1U);
  return snapshot.gpus.at(0).containers.at(0).processes.at(0);
}

TEST(Holdings, TellsWhatAProcessHolds) {
  Holdings holdings;
  holdings.observe(opened(7, kSecond), {});
  holdings.observe(memory_of(7, 2 * kSecond, 6 * kMiB, 6 * kMiB, 6 * kMiB), {});
  holdings.observe(channel_of(7, 2 * kSecond, 1, "GR0"), {});
  holdings.observe(channel_of(7, 2 * kSecond, 2, "COPY1"), {});
  holdings.observe(context_of(7, 3 * kSecond, 1), {});
  holdings.observe(memory_of(7, 4 * kSecond, 2 * kMiB, 4 * kMiB, 4 * kMiB, false), {});
  holdings.observe(channel_of(7, 4 * kSecond, 2, "COPY1", false), {});
  const HoldingsSnapshot snapshot = holdings.snapshot();
  const HeldProcess& process = only(snapshot);
  EXPECT_EQ(snapshot.gpus[0].minor, 0);
  EXPECT_EQ(process.who.pid, 7U);
  EXPECT_EQ(process.who.comm, "app");
  EXPECT_EQ(process.since_ns, kSecond);
  EXPECT_EQ(process.last_ns, 4 * kSecond);
  EXPECT_EQ(process.contexts, 1U);
  EXPECT_EQ(process.channels, 1U);
  EXPECT_EQ(process.memory.live, 4 * kMiB);
  EXPECT_EQ(process.memory.peak, 6 * kMiB);
  EXPECT_TRUE(process.open);
  EXPECT_EQ(process.ended_ns, 0U);
}

TEST(Holdings, AProcessThatHoldsNothingGoesAfterTheGrace) {
  Holdings holdings;
  holdings.observe(opened(7, kSecond), {});
  holdings.observe(context_of(7, kSecond, 1), {});
  holdings.observe(context_of(7, 2 * kSecond, 1, false), {});
  holdings.observe(opened(7, 2 * kSecond, 0, false), {});
  EXPECT_EQ(only(holdings.snapshot()).ended_ns, 2 * kSecond);
  holdings.advance(7 * kSecond);
  EXPECT_EQ(only(holdings.snapshot()).ended_ns, 2 * kSecond);
  holdings.advance(7 * kSecond + 1);
  EXPECT_TRUE(holdings.snapshot().gpus.empty());
  EXPECT_EQ(holdings.snapshot().overflow_processes, 0U);
}

TEST(Holdings, AProcessThatComesBackIsHeldAgain) {
  Holdings holdings;
  holdings.observe(opened(7, kSecond), {});
  holdings.observe(opened(7, 2 * kSecond, 0, false), {});
  holdings.observe(opened(7, 3 * kSecond), {});
  holdings.advance(60 * kSecond);
  EXPECT_EQ(only(holdings.snapshot()).ended_ns, 0U);
}

TEST(Holdings, GroupsByContainerAndByGpu) {
  Holdings holdings;
  holdings.observe(opened(1, kSecond), in_container("aaaa"));
  holdings.observe(opened(2, 2 * kSecond), in_container("bbbb"));
  holdings.observe(opened(3, 3 * kSecond), in_container("aaaa"));
  holdings.observe(opened(3, 4 * kSecond, 1), in_container("aaaa"));
  const HoldingsSnapshot snapshot = holdings.snapshot();
  ASSERT_EQ(snapshot.gpus.size(), 2U);
  ASSERT_EQ(snapshot.gpus[0].containers.size(), 2U);
  EXPECT_EQ(snapshot.gpus[0].containers[0].processes.size(), 2U);
  EXPECT_EQ(snapshot.gpus[0].containers[0].key, "c docker aaaa");
  EXPECT_EQ(snapshot.gpus[0].containers[1].processes[0].who.pid, 2U);
  EXPECT_EQ(snapshot.gpus[1].minor, 1);
  EXPECT_EQ(snapshot.gpus[1].containers.at(0).processes.at(0).who.pid, 3U);
}

TEST(Holdings, JoinsTheTwoNamesOfAGpu) {
  Holdings holdings;
  // Which card device 3 is, is not known yet: two cards are open.
  holdings.observe(opened(1, kSecond, 4), {});
  auto context = context_of(1, 2 * kSecond, 1);
  context.gpu_minor = -1;
  context.gpu_device = 3;
  holdings.observe(context, {});
  ASSERT_EQ(holdings.snapshot().gpus.size(), 2U);
  auto other = context_of(2, 3 * kSecond, 2);
  other.gpu_minor = 4;
  other.gpu_device = 3;
  holdings.observe(other, {});
  const HoldingsSnapshot snapshot = holdings.snapshot();
  ASSERT_EQ(snapshot.gpus.size(), 1U);
  EXPECT_EQ(snapshot.gpus[0].minor, 4);
  EXPECT_EQ(snapshot.gpus[0].device, 3);
  const HeldProcess& first = snapshot.gpus[0].containers.at(0).processes.at(0);
  EXPECT_EQ(first.who.pid, 1U);
  EXPECT_EQ(first.contexts, 1U);
  EXPECT_TRUE(first.open);
}

// A process that was there before: which card its memory is on is known after a
// while, and doubtful again when it opens a second one.
TEST(Holdings, MemoryStaysTogetherWhenItsCardBecomesKnown) {
  Holdings holdings;
  const auto memory = [](std::uint64_t time_ns, std::uint64_t live, std::int32_t minor) {
    auto event = memory_of(7, time_ns, 2 * kMiB, live, live);
    event.gpu_minor = minor;
    event.gpu_device = -1;
    return event;
  };
  holdings.observe(memory(kSecond, 100 * kMiB, -1), {});
  EXPECT_EQ(holdings.snapshot().gpus.at(0).minor, -1);
  holdings.observe(opened(7, 2 * kSecond), {});
  holdings.observe(memory(3 * kSecond, 102 * kMiB, 0), {});
  holdings.observe(opened(7, 4 * kSecond, 1), {});
  holdings.observe(memory(5 * kSecond, 104 * kMiB, -1), {});
  const HoldingsSnapshot snapshot = holdings.snapshot();
  ASSERT_EQ(snapshot.gpus.size(), 2U);
  EXPECT_EQ(snapshot.gpus[0].minor, 0);
  const HeldProcess& process = snapshot.gpus[0].containers.at(0).processes.at(0);
  EXPECT_EQ(process.memory.live, 104 * kMiB);
  EXPECT_EQ(process.since_ns, kSecond);
  EXPECT_TRUE(process.open);
  EXPECT_EQ(snapshot.gpus[1].containers.at(0).processes.at(0).memory.live, 0U);
}

TEST(Holdings, CountsCallsInTheLastSeconds) {
  Holdings holdings;
  holdings.observe(opened(7, kSecond), {});
  for (std::uint64_t i = 0; i < 200; ++i) {
    auto head = head_of(7, kSecond + i * (kSecond / 20));
    head.type = GPUWATCH_REC_IOCTL;
    holdings.count_call(head);
  }
  EXPECT_NEAR(only(holdings.snapshot()).calls_per_second, 20, 1);
  holdings.advance(16 * kSecond);
  EXPECT_NEAR(only(holdings.snapshot()).calls_per_second, 8, 1.5);
  holdings.advance(40 * kSecond);
  EXPECT_EQ(only(holdings.snapshot()).calls_per_second, 0);
  EXPECT_EQ(only(holdings.snapshot()).calls, 200U);
  // Definitions are no calls.
  auto head = head_of(7, 41 * kSecond);
  head.type = GPUWATCH_REC_TASK;
  holdings.count_call(head);
  EXPECT_EQ(only(holdings.snapshot()).calls, 200U);
}

TEST(Holdings, ACardOpenBeforeGpuwatchLookedIsSeenByItsCalls) {
  Holdings holdings;
  auto head = head_of(7, kSecond);
  head.type = GPUWATCH_REC_IOCTL;
  head.node_kind = GPUWATCH_NODE_GPU;
  head.rdev = (195U << 20) | 5;
  holdings.count_call(head);
  const HoldingsSnapshot snapshot = holdings.snapshot();
  EXPECT_TRUE(only(snapshot).partial);
  EXPECT_TRUE(only(snapshot).open);
  EXPECT_EQ(snapshot.gpus[0].minor, 5);
}

TEST(Holdings, TheWorstVerdictAndFindings) {
  Holdings holdings;
  holdings.observe(opened(7, kSecond), {});
  EXPECT_FALSE(only(holdings.snapshot()).code.worst());
  holdings.observe(load_of(7, kSecond, Verdict::kUnknown, false), {});
  EXPECT_FALSE(only(holdings.snapshot()).code.worst());
  EXPECT_EQ(only(holdings.snapshot()).code.unjudged, 1U);
  EXPECT_FALSE(only(holdings.snapshot()).code.finding());
  holdings.observe(load_of(7, kSecond, Verdict::kKnown), {});
  EXPECT_EQ(only(holdings.snapshot()).code.worst(), Verdict::kKnown);
  holdings.observe(load_of(7, kSecond, Verdict::kModified), {});
  holdings.observe(load_of(7, kSecond, Verdict::kJit), {});
  const HeldProcess process = only(holdings.snapshot());
  EXPECT_EQ(process.code.worst(), Verdict::kModified);
  EXPECT_TRUE(process.code.finding());
  EXPECT_EQ(process.code.loads, 4U);
  holdings.observe(event_of(StoryKind::kSecurityFinding, 7, kSecond, model::FindingBody{}), {});
  holdings.observe(event_of(StoryKind::kCallDenied, 7, kSecond, model::DenialBody{}), {});
  EXPECT_EQ(only(holdings.snapshot()).findings, 1U);
  EXPECT_EQ(only(holdings.snapshot()).denied, 1U);
}

TEST(Holdings, ChannelsWithoutALoadAreAFindingUntilALoadIsSeen) {
  Holdings holdings;
  holdings.observe(opened(7, kSecond), {});
  holdings.observe(event_of(StoryKind::kUnverified, 7, kSecond, model::UnverifiedBody{}), {});
  EXPECT_TRUE(only(holdings.snapshot()).code.finding());
  holdings.observe(load_of(7, kSecond, Verdict::kKnown), {});
  EXPECT_FALSE(only(holdings.snapshot()).code.finding());
}

TEST(Holdings, MemoryPassedOnLeavesWhoLetGo) {
  Holdings holdings;
  holdings.observe(memory_of(1, kSecond, 8 * kMiB, 8 * kMiB, 8 * kMiB), {});
  auto inherited = memory_of(2, 2 * kSecond, 8 * kMiB, 8 * kMiB, 8 * kMiB);
  inherited.kind = StoryKind::kMemoryInherited;
  std::get<model::MemoryBody>(inherited.body).from.process = {1001, 1};
  holdings.observe(inherited, {});
  const HoldingsSnapshot snapshot = holdings.snapshot();
  ASSERT_EQ(snapshot.gpus.at(0).containers.size(), 2U);
  EXPECT_EQ(snapshot.gpus[0].containers[0].processes.at(0).memory.live, 0U);
  EXPECT_EQ(snapshot.gpus[0].containers[0].processes.at(0).ended_ns, 2 * kSecond);
  EXPECT_EQ(snapshot.gpus[0].containers[1].processes.at(0).memory.live, 8 * kMiB);
}

TEST(Holdings, HostMemoryAndRefusalsAreNotOnTheGpu) {
  Holdings holdings;
  auto host = memory_of(1, kSecond, 8 * kMiB, 8 * kMiB, 0);
  std::get<model::MemoryBody>(host.body).location = model::Location::kHost;
  holdings.observe(host, {});
  auto refused = memory_of(1, kSecond, 8 * kMiB, 8 * kMiB, 0);
  refused.kind = StoryKind::kMemoryRefused;
  holdings.observe(refused, {});
  EXPECT_TRUE(holdings.snapshot().gpus.empty());
}

TEST(Holdings, ADriverThatGoesTakesAllWithIt) {
  Holdings holdings;
  holdings.observe(opened(7, kSecond), {});
  model::StateBody body;
  body.event = GPUWATCH_STATE_DRIVER_GOING;
  holdings.observe(event_of(StoryKind::kDriverState, 0, 2 * kSecond, body), {});
  EXPECT_EQ(only(holdings.snapshot()).ended_ns, 2 * kSecond);
}

TEST(Holdings, WhoeverSeesThatAProcessIsGoneCanSaySo) {
  Holdings holdings;
  holdings.observe(opened(7, kSecond), {});
  ASSERT_EQ(holdings.heads().size(), 1U);
  holdings.ended({holdings.heads()[0].start_ns, 7});
  EXPECT_EQ(only(holdings.snapshot()).ended_ns, kSecond);
  holdings.ended({1, 2});
}

TEST(Holdings, NamesThatComeLateAreTaken) {
  Holdings holdings;
  holdings.observe(opened(7, kSecond), in_container("aaaa"));
  holdings.refresh([](const gpuwatch_rec&) {
    model::Actor actor = in_container("aaaa");
    actor.container_name = "trainer";
    return actor;
  });
  EXPECT_EQ(only(holdings.snapshot()).who.container_name, "trainer");
}

TEST(Holdings, IsBoundedAndCountsWhatIsLeftOut) {
  HoldingsLimits limits;
  limits.processes = 4;
  limits.gpus = 2;
  limits.text = 8;
  Holdings holdings(limits);
  for (std::uint32_t pid = 1; pid <= 10; ++pid) holdings.observe(opened(pid, kSecond * pid), {});
  std::size_t seen = 0;
  for (const HeldGpu& gpu : holdings.snapshot().gpus)
    for (const HeldContainer& container : gpu.containers) seen += container.processes.size();
  EXPECT_EQ(seen, 4U);
  EXPECT_EQ(holdings.snapshot().overflow_processes, 6U);
  for (std::int32_t minor = 1; minor < 5; ++minor) holdings.observe(opened(10, 11 * kSecond, minor), {});
  EXPECT_EQ(holdings.snapshot().overflow_gpus, 3U);
  const std::string longer(100, 'x');
  model::Actor actor;
  actor.exe = longer;
  for (int i = 0; i < 3; ++i) holdings.observe(opened(10, 12 * kSecond), actor);
  EXPECT_EQ(holdings.snapshot().cut_strings, 1U);
}

HoldingsSnapshot rich() {
  Holdings holdings;
  model::Actor actor = in_container("aaaa");
  actor.exe = "/usr/bin/\x1b[31mpython";
  actor.container_name = "tr\xff";
  actor.slurm_job = 12;
  holdings.observe(opened(7, kSecond), actor);
  holdings.observe(memory_of(7, 2 * kSecond, 6 * kMiB, 6 * kMiB, 6 * kMiB), actor);
  holdings.observe(load_of(7, kSecond, Verdict::kJit), actor);
  holdings.observe(opened(8, kSecond, 1), {});
  HoldingsSnapshot snapshot = holdings.snapshot({{0, "0000:41:00.0", "GPU-1", "NVIDIA H200", {}}});
  snapshot.source = "rings";
  snapshot.records = 12;
  snapshot.lost = {{"ring_full", 3}, {"too_big", 4}};
  snapshot.realtime_offset_ns = -5;
  return snapshot;
}

TEST(HoldingsJson, ComesBackAsItWas) {
  const std::string line = holdings_json(rich());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(line).is_object());
  auto back = holdings_from_json(line);
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(back->lost_total(), 7U);
  EXPECT_EQ(back->gpus.at(0).name, "NVIDIA H200");
  EXPECT_EQ(back->gpus.at(0).containers.at(0).key, "c docker aaaa");
  EXPECT_EQ(back->gpus[0].containers[0].processes.at(0).code.worst(), Verdict::kJit);
  EXPECT_EQ(holdings_json(*back), line);
}

TEST(HoldingsJson, WhatIsNoHoldingsLineIsTold) {
  const std::pair<const char*, const char*> kWrong[] = {
      {"", "no JSON object"},
      {"[]", "no JSON object"},
      {"{", "no JSON object"},
      {"{\"type\":\"status\"}", "type"},
      {"{\"type\":5}", "type"},
      {"{\"type\":\"holdings\",\"schema\":99}", "schema 99"},
      {"{\"type\":\"holdings\",\"time_ns\":-1}", "time_ns"},
      {"{\"type\":\"holdings\",\"time_ns\":\"x\"}", "time_ns"},
      {"{\"type\":\"holdings\",\"gpus\":{}}", "gpus"},
      {"{\"type\":\"holdings\",\"gpus\":[5]}", "gpus"},
      {"{\"type\":\"holdings\",\"gpus\":[{\"gpu_minor\":5000000000}]}", "gpu_minor"},
      {"{\"type\":\"holdings\",\"gpus\":[{\"containers\":[1]}]}", "containers"},
      {"{\"type\":\"holdings\",\"gpus\":[{\"containers\":[{\"processes\":[null]}]}]}", "processes"},
      {"{\"type\":\"holdings\",\"gpus\":[{\"containers\":[{\"processes\":[{\"pid\":99999999999}]}]}]}", "pid"},
      {"{\"type\":\"holdings\",\"lost_by_reason\":{\"a\":-3}}", "a"},
  };
  for (const auto& [text, named] : kWrong) {
    auto got = holdings_from_json(text);
    ASSERT_FALSE(got.ok()) << text;
    EXPECT_NE(got.error().message().find(named), std::string::npos) << text << ": " << got.error().message();
  }
  EXPECT_FALSE(holdings_from_json(std::string(200'000, '[')).ok());
  EXPECT_FALSE(holdings_from_json("{\"type\":\"holdings\",\"gpus\":" + std::string(100'000, '[') +
                                  std::string(100'000, ']') + "}")
                   .ok());
  // Many cuts of a good line: an error, never a crash.
  const std::string line = holdings_json(rich());
  for (std::size_t at = 0; at < line.size(); at += 7) EXPECT_FALSE(holdings_from_json(line.substr(0, at)).ok());
}

TEST(HoldingsJson, TooManyProcessesAreCut) {
  std::string text = "{\"type\":\"holdings\",\"gpus\":[{\"gpu_minor\":0,\"containers\":[{\"processes\":[{}";
  for (int i = 1; i < 70'000; ++i) text += ",{}";
  auto got = holdings_from_json(text + "]}]}]}");
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->gpus.at(0).containers.at(0).processes.size(), 65536U);
  EXPECT_EQ(got->overflow_processes, 70'000U - 65536U);
}

// What a whole recording comes to, at its busiest and at its end.
struct Replayed {
  std::uint64_t most_memory = 0;
  std::uint64_t most_contexts = 0;
  std::uint64_t most_channels = 0;
  std::size_t most_processes = 0;
  std::size_t left = 0;
  std::uint64_t calls = 0;
  std::string end;
};

Replayed replay(const std::string& name) {
  Replayed result;
  auto source = source::ReplaySource::open(std::string(GOLDEN_DIR) + "/580.159.04/" + name + ".gwcap");
  if (!source) return result;
  decode::Decoder decoder(
      model::parse_driver_version((*source)->header().driver_version).value_or(model::DriverVersion{}));
  decode::StoryBuilder story;
  Holdings holdings;
  std::vector<model::RawRecord> batch;
  std::vector<model::StoryEvent> events;
  const auto look = [&] {
    std::size_t processes = 0;
    for (const HeldGpu& gpu : holdings.snapshot().gpus)
      for (const HeldContainer& container : gpu.containers)
        for (const HeldProcess& process : container.processes) {
          processes += process.ended_ns == 0;
          result.most_memory = std::max(result.most_memory, process.memory.live);
          result.most_contexts = std::max(result.most_contexts, process.contexts);
          result.most_channels = std::max(result.most_channels, process.channels);
        }
    result.most_processes = std::max(result.most_processes, processes);
    return processes;
  };
  while ((*source)->next_batch(batch).ok() && !batch.empty())
    for (const model::RawRecord& record : batch) {
      events.clear();
      story.observe(decoder.decode(record), events);
      holdings.count_call(record.head);
      result.calls += record.head.type == GPUWATCH_REC_OPEN || record.head.type == GPUWATCH_REC_IOCTL ||
                      record.head.type == GPUWATCH_REC_MMAP || record.head.type == GPUWATCH_REC_RELEASE;
      for (const model::StoryEvent& event : events) holdings.observe(event, {});
      if (!events.empty()) (void)look();
    }
  events.clear();
  story.finish(events);
  for (const model::StoryEvent& event : events) holdings.observe(event, {});
  result.left = look();
  result.end = holdings_json(holdings.snapshot());
  return result;
}

TEST(Holdings, RecordingsOfRealPrograms) {
  const Replayed train = replay("train-loop");
  EXPECT_NEAR(static_cast<double>(train.most_memory), 6.1 * 1024 * kMiB, 100.0 * kMiB);
  EXPECT_EQ(train.most_contexts, 1U);
  EXPECT_EQ(train.most_channels, 20U);
  EXPECT_EQ(train.left, 0U);
  const Replayed ipc = replay("ipc");
  EXPECT_EQ(ipc.most_processes, 2U);
  EXPECT_EQ(ipc.left, 0U);
  const Replayed churn = replay("churn-8");
  // It ends while the last eight run.
  EXPECT_EQ(churn.left, 8U);
  EXPECT_GE(churn.most_processes, 8U);
  for (const char* name : {"alloc-async", "illegal-access", "nvidia-smi-loop", "out-of-memory", "torch-step"}) {
    const Replayed one = replay(name);
    EXPECT_GT(one.calls, 0U) << name;
    EXPECT_EQ(one.left, 0U) << name;
    EXPECT_EQ(replay(name).end, one.end) << name << ": not the same twice";
  }
}

}  // namespace
}  // namespace gpuwatch::report
