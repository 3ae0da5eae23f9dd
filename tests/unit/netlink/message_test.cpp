// SPDX-License-Identifier: Apache-2.0
// The parser: what a good message says, and that each wrong thing is refused.
#include "netlink/message.h"

#include <gtest/gtest.h>

#include "unit/netlink/wire.h"

namespace gpuwatch::netlink {
namespace {

using test::Wire;

TEST(Message, Event) {
  auto parsed = parse_message(test::open_event(5).bytes());
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  const auto& event = std::get<Event>(*parsed);
  EXPECT_EQ(event.stamp.seq, 5U);
  EXPECT_EQ(event.stamp.instance, 7U);
  EXPECT_EQ(event.kind, EventKind::kOpen);
  EXPECT_EQ(event.pid, 42U);
  EXPECT_EQ(event.comm, "python3");
  EXPECT_EQ(event.gpu_minor, 3U);
  EXPECT_FALSE(event.image_id);
  EXPECT_FALSE(event.result);
}

TEST(Message, LossInEvents) {
  const Wire nest = Wire(0)
                        .u32(GPUWATCH_A_LOSS_CAUSE, GPUWATCH_CAUSE_RING_FULL)
                        .u64(GPUWATCH_A_LOSS_COUNT, 3)
                        .u64(GPUWATCH_A_LOSS_TOTAL, 10);
  auto parsed = parse_message(Wire(GPUWATCH_CMD_EVENT)
                                  .stamp(1)
                                  .u32(GPUWATCH_A_EVENT, GPUWATCH_EVENT_LOSS)
                                  .nest(GPUWATCH_A_LOSS, nest)
                                  .nest(GPUWATCH_A_LOSS, nest)
                                  .bytes());
  ASSERT_TRUE(parsed.ok());
  const auto& losses = std::get<Event>(*parsed).losses;
  ASSERT_EQ(losses.size(), 2U);
  EXPECT_EQ(losses[1].count, 3U);
  EXPECT_EQ(losses[1].total, 10U);
}

TEST(Message, Verdict) {
  std::array<std::byte, 32> digest{};
  digest[31] = std::byte{0xab};
  auto parsed = parse_message(test::verdict(9).put(GPUWATCH_A_DIGEST, digest.data(), digest.size()).bytes());
  ASSERT_TRUE(parsed.ok());
  const auto& verdict = std::get<Verdict>(*parsed);
  EXPECT_EQ(verdict.submitter_pid, 99U);
  EXPECT_EQ(verdict.said.verdict, VerdictKind::kUnknown);
  EXPECT_EQ(verdict.said.severity, Severity::kError);
  EXPECT_EQ(verdict.said.rule, "unknown-module");
  EXPECT_EQ(verdict.said.digest, digest);
  EXPECT_FALSE(verdict.said.pid);
}

TEST(Message, UnknownAttributesAreSkipped) {
  EXPECT_TRUE(parse_message(test::open_event(1).u32(GPUWATCH_A_MAX + 1, 1).u32(900, 1).bytes()).ok());
  // And numbers of enums that this program does not know.
  auto parsed = parse_message(Wire(GPUWATCH_CMD_EVENT).stamp(1).u32(GPUWATCH_A_EVENT, 77).bytes());
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(static_cast<std::uint32_t>(std::get<Event>(*parsed).kind), 77U);
}

struct Wrong {
  const char* name;
  std::vector<std::byte> bytes;
};

std::vector<Wrong> wrong_messages() {
  const auto cut = [](std::vector<std::byte> bytes, std::size_t size) {
    bytes.resize(size);
    return bytes;
  };
  auto longer = test::open_event(1).bytes();
  longer[0] = std::byte{0xff};
  auto overrunning = test::open_event(1).bytes();
  overrunning[NLMSG_HDRLEN + GENL_HDRLEN] = std::byte{0xff};  // the first attribute's length
  return {
      {"empty", {}},
      {"headers only in part", cut(test::open_event(1).bytes(), NLMSG_HDRLEN + 2)},
      {"longer than what came", longer},
      {"cut", cut(test::open_event(1).bytes(), 40)},
      {"no stamp", Wire(GPUWATCH_CMD_EVENT).u32(GPUWATCH_A_EVENT, 1).bytes()},
      {"first attribute too long", overrunning},
      {"number too short", Wire(GPUWATCH_CMD_EVENT).stamp(1).put(GPUWATCH_A_EVENT, "x", 2).bytes()},
      {"number too long", Wire(GPUWATCH_CMD_EVENT).stamp(1).u64(GPUWATCH_A_EVENT, 1).bytes()},
      {"text without end", test::open_event(1).put(GPUWATCH_A_MODULE, "abcd", 4).bytes()},
      {"text too long", test::open_event(1).text(GPUWATCH_A_COMM, std::string(40, 'x').c_str()).bytes()},
      {"digest too short", test::verdict(1).put(GPUWATCH_A_DIGEST, "abcdefgh", 8).bytes()},
      {"damaged nest", test::open_event(1).put(GPUWATCH_A_LOSS | NLA_F_NESTED, "\x08\0\x02\0\x01\0", 6).bytes()},
      {"verdict without severity", Wire(GPUWATCH_CMD_VERDICT).stamp(1).u32(GPUWATCH_A_VERDICT, 1).bytes()},
      {"heartbeat of no group", Wire(GPUWATCH_CMD_HEARTBEAT).stamp(1).u32(GPUWATCH_A_GROUP, 9).bytes()},
      {"heartbeat without group", Wire(GPUWATCH_CMD_HEARTBEAT).stamp(1).bytes()},
  };
}

TEST(Message, WrongOnesAreRefused) {
  for (const Wrong& wrong : wrong_messages()) {
    // A copy of the exact size lets a sanitizer see reads behind its end.
    const std::vector<std::byte> copy(wrong.bytes);
    auto parsed = parse_message(copy);
    ASSERT_FALSE(parsed.ok()) << wrong.name;
    if (std::string(wrong.name) != "damaged nest") continue;
    EXPECT_EQ(parsed.error().code(), base::Code::kBadInput);
  }
}

TEST(Message, UnknownCommand) {
  auto parsed = parse_message(Wire(77).stamp(1).bytes());
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().code(), base::Code::kUnsupported);
}

TEST(Message, EveryCutOfEveryMessageIsSafe) {
  for (const auto& whole : {test::open_event(1).bytes(), test::verdict(1).bytes(), test::heartbeat(1).bytes()})
    for (std::size_t size = 0; size < whole.size(); ++size)
      EXPECT_FALSE(parse_message(std::vector<std::byte>(whole.begin(), whole.begin() + static_cast<long>(size))).ok());
}

TEST(Message, State) {
  const Wire hook = Wire(0)
                        .text(GPUWATCH_A_HOOK_MODULE, "nvidia")
                        .u32(GPUWATCH_A_HOOK_OP, 1)
                        .u32(GPUWATCH_A_HOOK_METHOD, 1)
                        .u32(GPUWATCH_A_HOOK_ERROR, static_cast<std::uint32_t>(-16))
                        .u64(GPUWATCH_A_HOOK_CALLS, 8)
                        .u64(GPUWATCH_A_HOOK_IN_FLIGHT, 1);
  const Wire stream =
      Wire(0).u32(GPUWATCH_A_STREAM_GROUP, 1).u64(GPUWATCH_A_STREAM_SEQ, 12).u32(GPUWATCH_A_STREAM_LISTENED, 1);
  const Wire rings = Wire(0).u64(GPUWATCH_A_RINGS_RECORDS, 100).u64(GPUWATCH_A_RINGS_OFFERED, 101);
  auto state = parse_state(Wire(GPUWATCH_CMD_GET)
                               .u64(GPUWATCH_A_INSTANCE, 3)
                               .u32(GPUWATCH_A_ABI_MAJOR, 1)
                               .u32(GPUWATCH_A_ATTACHED, 1)
                               .text(GPUWATCH_A_RELEASE, "0.1.0")
                               .nest(GPUWATCH_A_HOOK, hook)
                               .nest(GPUWATCH_A_HOOK, hook)
                               .nest(GPUWATCH_A_STREAM, stream)
                               .nest(GPUWATCH_A_RINGS, rings)
                               .bytes());
  ASSERT_TRUE(state.ok()) << state.error().message();
  EXPECT_TRUE(state->attached);
  EXPECT_EQ(state->release, "0.1.0");
  ASSERT_EQ(state->hooks.size(), 2U);
  EXPECT_EQ(state->hooks[1].error, -16);
  EXPECT_EQ(state->hooks[1].module, "nvidia");
  ASSERT_EQ(state->streams.size(), 1U);
  EXPECT_EQ(state->streams[0].group, Group::kVerdicts);
  EXPECT_EQ(state->records, 100U);
  EXPECT_FALSE(parse_state(test::open_event(1).bytes()).ok());
}

TEST(Message, SetAnswer) {
  auto answer = parse_set_answer(Wire(GPUWATCH_CMD_SET)
                                     .u32(GPUWATCH_A_RESULT, static_cast<std::uint32_t>(-16))
                                     .u32(GPUWATCH_A_IN_FLIGHT, 2)
                                     .bytes());
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->result, -16);
  EXPECT_EQ(answer->in_flight, 2U);
  EXPECT_FALSE(parse_set_answer(Wire(GPUWATCH_CMD_SET).bytes()).ok());
}

}  // namespace
}  // namespace gpuwatch::netlink
