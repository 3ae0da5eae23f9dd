// SPDX-License-Identifier: Apache-2.0
// Datagrams to items: order, loss where it is, and damage that harms nothing else.
#include "netlink/group_stream.h"

#include <gtest/gtest.h>

#include "unit/netlink/wire.h"

namespace gpuwatch::netlink {
namespace {

using Bytes = std::vector<std::byte>;

Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes out;
  for (const Bytes& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

struct Fed {
  GroupStream stream{Group::kEvents};
  std::vector<Item> items;
  void feed(const Bytes& bytes) { stream.datagram(bytes, test::kFamily, items); }
};

TEST(GroupStream, SeveralMessagesInOneDatagram) {
  Fed fed;
  fed.feed(joined({test::open_event(1).bytes(), test::open_event(2).bytes(), test::heartbeat(2).bytes()}));
  ASSERT_EQ(fed.items.size(), 3U);
  EXPECT_EQ(std::get<Event>(fed.items[1]).stamp.seq, 2U);
  EXPECT_TRUE(std::holds_alternative<Heartbeat>(fed.items[2]));
  EXPECT_EQ(fed.stream.totals().messages, 2U);
  EXPECT_FALSE(fed.stream.totals().any_loss());
}

TEST(GroupStream, OverrunThenItsCount) {
  Fed fed;
  fed.feed(test::open_event(1).bytes());
  fed.stream.overrun(fed.items);
  EXPECT_TRUE(fed.stream.totals().uncounted);
  fed.feed(test::heartbeat(21).bytes());
  ASSERT_EQ(fed.items.size(), 4U);
  const auto& overrun = std::get<Loss>(fed.items[1]);
  EXPECT_EQ(overrun.reason, LossReason::kOverrun);
  EXPECT_FALSE(overrun.count);
  const auto& missing = std::get<Loss>(fed.items[2]);
  EXPECT_EQ(missing.reason, LossReason::kMissing);
  EXPECT_EQ(missing.count, 20U);
  EXPECT_FALSE(fed.stream.totals().uncounted);
  EXPECT_EQ(fed.stream.totals().lost, 20U);
  EXPECT_EQ(fed.stream.totals().overruns, 1U);
}

TEST(GroupStream, ReloadIsALossOfItsOwn) {
  Fed fed;
  fed.stream.start(7, 50);
  fed.stream.membership(false, fed.items);
  fed.stream.membership(true, fed.items);
  fed.feed(test::heartbeat(3, GPUWATCH_GROUP_EVENTS, 8).bytes());
  ASSERT_EQ(fed.items.size(), 4U);
  EXPECT_FALSE(std::get<Membership>(fed.items[0]).joined);
  EXPECT_EQ(std::get<Loss>(fed.items[2]).reason, LossReason::kReload);
  EXPECT_EQ(std::get<Loss>(fed.items[2]).count, 3U);
}

TEST(GroupStream, DamageIsCountedAndTheNextMessageStands) {
  Fed fed;
  auto bad = test::open_event(2).bytes();
  bad[NLMSG_HDRLEN + GENL_HDRLEN] = std::byte{0xff};
  fed.feed(joined({test::open_event(1).bytes(), bad, test::open_event(3).bytes()}));
  ASSERT_EQ(fed.items.size(), 4U);
  EXPECT_EQ(std::get<Loss>(fed.items[1]).reason, LossReason::kDamaged);
  EXPECT_EQ(std::get<Loss>(fed.items[2]).count, 1U);  // its number never came
  EXPECT_EQ(std::get<Event>(fed.items[3]).stamp.seq, 3U);
  EXPECT_EQ(fed.stream.totals().damaged, 1U);
}

TEST(GroupStream, MessageThatRunsOverTheDatagram) {
  Fed fed;
  auto bytes = test::open_event(1).bytes();
  bytes[0] = std::byte{0xf0};
  fed.feed(bytes);
  ASSERT_EQ(fed.items.size(), 1U);
  EXPECT_EQ(std::get<Loss>(fed.items[0]).reason, LossReason::kDamaged);
}

TEST(GroupStream, OtherFamiliesAndUnknownCommandsAreNothing) {
  Fed fed;
  fed.feed(test::Wire(GPUWATCH_CMD_EVENT, 0x33).stamp(5).bytes());
  fed.feed(test::Wire(60).stamp(5).bytes());
  EXPECT_TRUE(fed.items.empty());
}

TEST(GroupStream, MessagesOfTheOtherGroupAreDamage) {
  Fed fed;
  fed.feed(test::verdict(1).bytes());
  fed.feed(test::heartbeat(1, GPUWATCH_GROUP_VERDICTS).bytes());
  EXPECT_EQ(fed.stream.totals().damaged, 2U);
}

}  // namespace
}  // namespace gpuwatch::netlink
