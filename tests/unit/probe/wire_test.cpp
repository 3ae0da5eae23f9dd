// SPDX-License-Identifier: Apache-2.0
// Frames between the agent and its requester: each form there and back, and
// every bound from its wrong side.
#include "probe/agent/wire.h"

#include <gtest/gtest.h>

#include "probe/agent/ask.h"

namespace gpuwatch::probe::agent {
namespace {

identify::Bytes payload_of(const Frame& frame) {
  return identify::Bytes(frame).subspan(kHeadBytes);
}

TEST(AgentWire, HeadsAndTheirBounds) {
  Frame frame = make(AskRead{3, {0x1000, 32}});
  const auto head = parse_head(frame, kRequestMax);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->version, kVersion);
  EXPECT_EQ(head->type, static_cast<std::uint16_t>(Type::kAskRead));
  EXPECT_EQ(head->bytes, frame.size() - kHeadBytes);
  EXPECT_FALSE(parse_head(frame, head->bytes - 1)) << "longer than may be";
  EXPECT_FALSE(parse_head(identify::Bytes(frame).first(15), kRequestMax));
  frame[0] ^= 1;
  EXPECT_FALSE(parse_head(frame, kRequestMax)) << "not ours";
  frame[0] ^= 1;
  frame[12] = 1;
  EXPECT_FALSE(parse_head(frame, kRequestMax)) << "what is to be zero";
}

TEST(AgentWire, ReadingsThereAndBack) {
  const auto ask = parse_ask_read(payload_of(make(AskRead{3, {0x7f0000001000, kReadMax}})));
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->device, 3u);
  EXPECT_EQ(ask->span.address, 0x7f0000001000u);
  EXPECT_EQ(ask->span.bytes, kReadMax);
  for (const AskRead& wrong :
       {AskRead{kDevicesMax, {0x1000, 16}}, AskRead{0, {0x1000, 0}}, AskRead{0, {0x1008, 16}}, AskRead{0, {0x1000, 24}},
        AskRead{0, {0x1000, kReadMax + 16}}, AskRead{0, {~std::uint64_t{15}, 32}}})
    EXPECT_FALSE(parse_ask_read(payload_of(make(wrong)))) << wrong.span.address << " " << wrong.span.bytes;
  Frame frame = make(AskRead{0, {0x1000, 16}});
  frame.push_back(0);
  EXPECT_FALSE(parse_ask_read(payload_of(frame)));
}

TEST(AgentWire, HashesThereAndBack) {
  AskHash ask;
  ask.device = 1;
  ask.refresh = true;
  ask.nonce.fill(9);
  ask.spans = {{0x1000, 100}, {0x9000, 1}};
  const auto back = parse_ask_hash(payload_of(make(ask)));
  ASSERT_TRUE(back);
  EXPECT_TRUE(back->refresh);
  EXPECT_EQ(back->nonce, ask.nonce);
  ASSERT_EQ(back->spans.size(), 2u);
  EXPECT_EQ(back->spans[1].address, 0x9000u);
  AskHash many = ask;
  many.spans.assign(kHashSpansMax, {0x1000, 16});
  EXPECT_TRUE(parse_ask_hash(payload_of(make(many))));
  EXPECT_LE(make(many).size(), kHeadBytes + kRequestMax);
  many.spans.push_back({0x1000, 16});
  EXPECT_FALSE(parse_ask_hash(payload_of(make(many)))) << "too many";
  AskHash large = ask;
  large.spans = {{0x1000, kHashBytesMax}};
  EXPECT_TRUE(parse_ask_hash(payload_of(make(large))));
  large.spans.push_back({0x1000, 1});
  EXPECT_FALSE(parse_ask_hash(payload_of(make(large)))) << "too much";
  AskHash none = ask;
  none.spans.clear();
  EXPECT_FALSE(parse_ask_hash(payload_of(make(none))));
  AskHash around = ask;
  around.spans = {{~std::uint64_t{0}, 2}};
  EXPECT_FALSE(parse_ask_hash(payload_of(make(around)))) << "around the end of all addresses";
}

TEST(AgentWire, SurveysThereAndBack) {
  const AskSurvey ask{2, {{0x7f0000000000, kSurveyBytesMax / 2}, {0x7f8000000000, kSurveyBytesMax / 2}}};
  const auto back = parse_ask_survey(payload_of(make(ask)));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->device, 2u);
  ASSERT_EQ(back->spans.size(), 2u);
  EXPECT_EQ(back->spans[1].address, 0x7f8000000000u);
  for (const AskSurvey& wrong : {AskSurvey{0, {}}, AskSurvey{kDevicesMax, {{0x1000, 16}}}, AskSurvey{0, {{0x1008, 16}}},
                                 AskSurvey{0, {{0x1000, 24}}}, AskSurvey{0, {{0x1000, kSurveyBytesMax + 16}}},
                                 AskSurvey{0, {{0x1000, kSurveyBytesMax}, {0x7f8000000000, 16}}},
                                 AskSurvey{0, std::vector<Span>(kSurveySpansMax + 1, Span{0x1000, 16})}})
    EXPECT_FALSE(parse_ask_survey(payload_of(make(wrong))));
  EXPECT_EQ(parse_survey(payload_of(make_survey({{9, 0}, {8, 7}}))), (std::vector<SpanCount>{{9, 0}, {8, 7}}));
  Frame cut = make_survey({{9, 0}, {8, 7}});
  cut.pop_back();
  EXPECT_FALSE(parse_survey(payload_of(cut)));
}

TEST(AgentWire, FactsThereAndBack) {
  Facts facts;
  facts.sight = Sight::kImport;
  facts.cuda_version = 13000;
  facts.cut = true;
  facts.devices = {{Uuid{1, 2, 3}, 90, 132, true}, {Uuid{4}, 80, 108, false}};
  facts.ranges = {{{0x200000, 0x200000}, 0x40, 0x1c101, 1}, {{0x400000, 0x1000}, 0x3e, 0, 3}};
  const Frame frame = make(facts);
  const auto back = parse_facts(payload_of(frame));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->sight, Sight::kImport);
  EXPECT_TRUE(back->cut);
  ASSERT_EQ(back->devices.size(), 2u);
  EXPECT_EQ(back->devices[0].uuid, facts.devices[0].uuid);
  EXPECT_TRUE(back->devices[0].context);
  ASSERT_EQ(back->ranges.size(), 2u);
  EXPECT_EQ(back->ranges[1].memory_class, 0x3eu);
  EXPECT_EQ(make(*back), frame);
  for (std::size_t size = 0; size + 1 < payload_of(frame).size(); ++size)
    EXPECT_FALSE(parse_facts(payload_of(frame).first(size))) << size;
  std::swap(facts.ranges[0], facts.ranges[1]);
  EXPECT_FALSE(parse_facts(payload_of(make(facts)))) << "out of order";
}

TEST(AgentWire, RootsAndRefusals) {
  const std::vector<identify::Digest> roots{identify::Digest{1}, identify::Digest{2}};
  const auto back = parse_roots(payload_of(make_roots(roots)));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, roots);
  const auto refusal = parse_refusal(payload_of(make(Refusal{Reason::kUnproven, std::string(2000, 'x')})));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, Reason::kUnproven);
  EXPECT_EQ(refusal->text.size(), kTextMax);
  Frame frame = make(Refusal{Reason::kBusy, "x"});
  frame[kHeadBytes] = kReasons + 1;
  EXPECT_FALSE(parse_refusal(payload_of(frame)));
}

TEST(AgentWire, SocketsOfAProcess) {
  const std::string table =
      "Num       RefCount Protocol Flags    Type St Inode Path\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 41000 /run/dbus/system_bus_socket\n"
      "0000000000000000: 00000003 00000000 00000000 0001 03 41001\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 41002 /tmp/gpuwatch-agent.7.0badcafe.sock\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 41003 /tmp/a b/gpuwatch-agent.8.0badcafe.sock\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 41004 @gpuwatch-agent.9\n";
  EXPECT_EQ(socket_of(table, {41000, 41001, 41003}), "/tmp/a b/gpuwatch-agent.8.0badcafe.sock");
  EXPECT_EQ(socket_of(table, {41000, 41004}), "") << "another's, and one without a file";
  EXPECT_EQ(socket_of("nonsense\n\n  1 2", {1, 2}), "");
}

}  // namespace
}  // namespace gpuwatch::probe::agent
