// SPDX-License-Identifier: Apache-2.0
// Unit tests of the control socket's lines: what is taken, and each refusal.
#include "control/protocol.h"

#include <gtest/gtest.h>

namespace gpuwatch::control {
namespace {

TEST(Protocol, RequestsSurviveTheWay) {
  for (const Verb verb : {Verb::kStatus, Verb::kHoldings, Verb::kDump, Verb::kReload}) {
    auto request = parse_request(format_request({verb, ""}));
    ASSERT_TRUE(request.ok());
    EXPECT_EQ(request->verb, verb);
    EXPECT_EQ(request->path, "");
  }
  auto dump = parse_request(format_request({Verb::kDump, "/tmp/a \"b\"\n.gwcap"}));
  ASSERT_TRUE(dump.ok());
  EXPECT_EQ(dump->path, "/tmp/a \"b\"\n.gwcap");
}

TEST(Protocol, EachBadRequestIsRefusedWithItsReason) {
  const std::string deep = "{\"request\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  const std::string nested = "{\"request\":" + std::string(40, '[') + std::string(40, ']') + "}";
  const struct {
    std::string line, word;
  } kCases[] = {
      {"", "not one JSON object"},
      {"[]", "not one JSON object"},
      {"{\"request\":\"status\"", "not one JSON object"},
      {"{\"request\":\"status\"} {}", "not one JSON object"},
      {"{}", "names no"},
      {"{\"request\":7}", "wants a string"},
      {"{\"request\":\"stop\"}", "unknown request \"stop\""},
      {"{\"request\":\"status\",\"x\\u001b\":\"\"}", "unknown key"},
      {"{\"request\":\"status\",\"path\":\"/a\"}", "belongs to dump"},
      {"{\"request\":\"dump\",\"path\":\"a\"}", "absolute"},
      {"{\"request\":\"dump\",\"path\":\"/a\\u0000b\"}", "absolute"},
      {"{\"request\":\"" + std::string(kRequestMax, 'a') + "\"}", "more than"},
      {deep, "more than"},
      {nested, "deeper than"},
  };
  for (const auto& one : kCases) {
    auto request = parse_request(one.line);
    ASSERT_FALSE(request.ok()) << one.line.substr(0, 80);
    EXPECT_NE(request.error().message().find(one.word), std::string::npos) << request.error().message();
    EXPECT_EQ(request.error().message().find('\x1b'), std::string::npos);
  }
}

TEST(Protocol, AnswersSurviveTheWay) {
  auto body = parse_answer(format_answer(Verb::kStatus, "{\"a\":[1,2]}"), Verb::kStatus);
  ASSERT_TRUE(body.ok());
  EXPECT_EQ(*body, "{\"a\":[1,2]}");
  auto refusal = parse_answer(format_refusal("no \"room\"\n"), Verb::kDump);
  ASSERT_FALSE(refusal.ok());
  EXPECT_EQ(refusal.error().message(), "gpuwatchd: no \"room\"\n");
  EXPECT_FALSE(parse_answer(format_answer(Verb::kStatus, "1"), Verb::kDump).ok());
  EXPECT_FALSE(parse_answer("{\"status\":1}", Verb::kStatus).ok());
  EXPECT_FALSE(parse_answer("{\"ok\":1,\"status\":1}", Verb::kStatus).ok());
}

TEST(Protocol, BytesThatAreNoTextDoNotBreakAnAnswer) {
  const std::string line = format_refusal("name \xff\xfe");
  EXPECT_FALSE(parse_answer(line, Verb::kStatus).ok());
  EXPECT_EQ(line.find('\xff'), std::string::npos);
}

}  // namespace
}  // namespace gpuwatch::control
