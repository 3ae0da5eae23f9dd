// SPDX-License-Identifier: Apache-2.0
// Lines of gpuwatch-probe read back: whole, in pieces, and wrong in every way.
#include "probe/answer.h"

#include <gtest/gtest.h>

namespace gpuwatch::probe {
namespace {

using base::Status;
using nlohmann::json;

const std::string kForm(64, 'a');

// As it comes: whole numbers are unsigned when they were read.
json read(const json& line) {
  return json::parse(line.dump());
}

json kernel() {
  return read({{"type", "kernel"},
               {"gpu", 0},
               {"image", "i"},
               {"name", "f"},
               {"bytes", 128},
               {"verdict", "match"},
               {"form_sha256", kForm},
               {"source", "ptx"}});
}

TEST(Answer, LinesInPieces) {
  const std::string text = "{\"type\":\"gpu\",\"gpu\":0,\"sm\":90}\n" + kernel().dump() + "\n";
  for (std::size_t step = 1; step < text.size(); step += 7) {
    AnswerLines lines(1 << 20);
    std::vector<std::string> types;
    for (std::size_t at = 0; at < text.size(); at += step)
      ASSERT_TRUE(lines
                      .feed(std::string_view(text).substr(at, step),
                            [&](const json& line) {
                              types.push_back(answer_text(line, "type"));
                              return Status();
                            })
                      .ok());
    EXPECT_TRUE(lines.end().ok());
    EXPECT_EQ(types, (std::vector<std::string>{"gpu", "kernel"}));
  }
}

TEST(Answer, WhatIsNoLine) {
  for (const std::string& line :
       {std::string("nonsense"), std::string(""), std::string("[]"), std::string("{}"), std::string("{\"type\":7}"),
        std::string("{\"type\":\"\"}"), std::string("{\"type\":\"x\"} y"), std::string(100'000, '['),
        std::string("{\"type\":\"x\",\"a\":") + std::string(50, '[') + std::string(50, ']') + "}",
        std::string("{\"type\":\"") + std::string(1000, 't') + "\"}", std::string("{\"type\":\"x\",\"b\":\"\xff\"}"),
        std::string("\0{\"type\":\"x\"}", 13)})
    EXPECT_FALSE(parse_answer(line).ok()) << line.substr(0, 60);
}

TEST(Answer, NeverTooMuch) {
  const auto none = [](const json&) { return Status(); };
  AnswerLines lines(10 << 20);
  EXPECT_TRUE(lines.feed(std::string(kAnswerLineMax, 'x'), none).ok());
  EXPECT_FALSE(lines.feed("x", none).ok()) << "a line without an end";
  AnswerLines few(100);
  EXPECT_TRUE(few.feed(std::string("{\"type\":\"x\"}\n"), none).ok());
  EXPECT_FALSE(few.feed(std::string(100, '\n'), none).ok());
  AnswerLines half(100);
  EXPECT_TRUE(half.feed("{\"type\"", none).ok());
  EXPECT_FALSE(half.end().ok());
}

TEST(Answer, KernelsAndTheirTypes) {
  const auto good = kernel_answer(kernel());
  ASSERT_TRUE(good);
  EXPECT_TRUE(good->confirmed);
  EXPECT_TRUE(good->ptx);
  EXPECT_EQ(identify::to_hex(*good->form), kForm);
  EXPECT_FALSE(good->k);
  for (const char* key : {"gpu", "name", "bytes", "verdict", "form_sha256"}) {
    json line = kernel();
    line.erase(key);
    EXPECT_FALSE(kernel_answer(line)) << key;
    for (const json& value : {json(-1), json(1.5), json(nullptr), json::array(), json("AAAA"), json(1ull << 63)}) {
      line[key] = value;
      if (std::string(key) == "bytes" && value == json(1ull << 63)) continue;
      if (value.is_string() && (std::string(key) == "name" || std::string(key) == "verdict")) continue;
      EXPECT_FALSE(kernel_answer(read(line))) << key << " " << value;
    }
  }
  json differ = kernel();
  differ["verdict"] = "differ";
  differ["first_offset"] = 36;
  differ["reason"] = 7;
  const auto changed = kernel_answer(read(differ));
  ASSERT_TRUE(changed);
  EXPECT_FALSE(changed->confirmed);
  EXPECT_EQ(changed->first_offset, 36u);
  EXPECT_EQ(changed->reason, "");
  EXPECT_FALSE(changed->form) << "of what was not confirmed there is none";
  json upper = kernel();
  upper["form_sha256"] = std::string(64, 'A');
  EXPECT_FALSE(kernel_answer(upper));
}

}  // namespace
}  // namespace gpuwatch::probe
