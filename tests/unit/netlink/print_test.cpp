// SPDX-License-Identifier: Apache-2.0
// Lines: keys of the JSON, columns of the text, and hostile bytes made harmless.
#include "netlink/print.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "unit/netlink/wire.h"

namespace gpuwatch::netlink {
namespace {

Item item_of(const test::Wire& wire) {
  auto parsed = parse_message(wire.bytes());
  EXPECT_TRUE(parsed.ok());
  return std::visit([](auto&& one) { return Item(one); }, *parsed);
}

nlohmann::json json_of(const Item& item) {
  std::string out;
  append_json(out, item);
  EXPECT_EQ(out.back(), '\n');
  return nlohmann::json::parse(out);
}

std::string text_of(const Item& item) {
  std::string out;
  append_text(out, item);
  return out;
}

TEST(PrintJson, Event) {
  const auto json = json_of(item_of(test::open_event(5)));
  EXPECT_EQ(json["type"], "kernel_event");
  EXPECT_EQ(json["group"], "events");
  EXPECT_EQ(json["event"], "open");
  EXPECT_EQ(json["seq"], 5);
  EXPECT_EQ(json["pid"], 42);
  EXPECT_EQ(json["node_kind"], "gpu");
  EXPECT_EQ(json["gpu_minor"], 3);
  EXPECT_EQ(json["time_unix_ns"], 1'700'000'000'000'000'005);
}

TEST(PrintJson, Verdict) {
  const auto json = json_of(item_of(test::verdict(1)));
  EXPECT_EQ(json["type"], "kernel_verdict");
  EXPECT_EQ(json["verdict"], "unknown");
  EXPECT_EQ(json["severity"], "error");
  EXPECT_EQ(json["rule"], "unknown-module");
  EXPECT_EQ(json["submitter_pid"], 99);
}

TEST(PrintJson, LossWithAndWithoutCount) {
  EXPECT_EQ(json_of(Loss{Group::kEvents, LossReason::kMissing, 4, 1})["lost"], 4);
  const auto json = json_of(Loss{Group::kVerdicts, LossReason::kOverrun, std::nullopt, 1});
  EXPECT_EQ(json["type"], "loss");
  EXPECT_EQ(json["source"], "netlink");
  EXPECT_EQ(json["reason"], "overrun");
  EXPECT_EQ(json["group"], "verdicts");
  EXPECT_FALSE(json.contains("lost"));
}

TEST(PrintJson, NumbersWithoutNames) {
  const auto json = json_of(item_of(test::Wire(GPUWATCH_CMD_EVENT).stamp(1).u32(GPUWATCH_A_EVENT, 77)));
  EXPECT_EQ(json["event"], "number-77");
}

TEST(PrintText, Lines) {
  EXPECT_NE(text_of(item_of(test::open_event(5))).find("python3/42"), std::string::npos);
  EXPECT_NE(text_of(item_of(test::open_event(5))).find("open nvidia3"), std::string::npos);
  EXPECT_NE(text_of(item_of(test::verdict(1))).find("error: unknown rule=unknown-module"), std::string::npos);
  EXPECT_NE(text_of(Loss{Group::kEvents, LossReason::kMissing, 4, 1}).find("lost 4 of events: missing"),
            std::string::npos);
  EXPECT_EQ(text_of(item_of(test::heartbeat(3))).substr(0, 8), "22:13:20");  // UTC
}

TEST(Print, HostileBytes) {
  const Item item = item_of(test::Wire(GPUWATCH_CMD_EVENT)
                                .stamp(1)
                                .u32(GPUWATCH_A_EVENT, GPUWATCH_EVENT_OPEN)
                                .u32(GPUWATCH_A_PID, 1)
                                .text(GPUWATCH_A_COMM, "a\033[2J\n\xff"));
  for (const char c : text_of(item).substr(0, text_of(item).size() - 1))
    EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  const Item nobody = item_of(test::Wire(GPUWATCH_CMD_EVENT)
                                  .stamp(1)
                                  .u32(GPUWATCH_A_EVENT, GPUWATCH_EVENT_OPEN)
                                  .text(GPUWATCH_A_COMM, "a\033[2J"));
  EXPECT_EQ(text_of(nobody).find('\033'), std::string::npos);
  EXPECT_EQ(json_of(item)["comm"], "a\033[2J\n\xef\xbf\xbd");
}

TEST(Print, Summary) {
  Subscriber::Totals totals;
  totals.messages = 90;
  EXPECT_EQ(loss_summary(totals), "lost 0 of 90 messages");
  totals.lost = 10;
  totals.overruns = 2;
  EXPECT_EQ(loss_summary(totals), "lost 10 of 100 messages: buffer overrun 2 times");
}

}  // namespace
}  // namespace gpuwatch::netlink
