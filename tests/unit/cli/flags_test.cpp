// SPDX-License-Identifier: Apache-2.0
// Unit tests of the command line: every flag of the table parses, has help and
// a place in the manual; wrong values say what is wrong.
#include "cli/flags.h"

#include <gtest/gtest.h>

#include "unit/support.h"

namespace gpuwatch::cli {
namespace {

std::string sample_value(FlagKind kind) {
  switch (kind) {
    case FlagKind::kCount:
      return "7";
    case FlagKind::kBytes:
      return "64K";
    case FlagKind::kSeconds:
      return "0.5";
    default:
      return "x";
  }
}

TEST(Flags, EveryFlagOfTheTableParses) {
  for (const FlagSpec& flag : flag_table()) {
    for (const std::string& spelling : {"--" + std::string(flag.name), "-" + std::string(flag.short_name)}) {
      if (spelling == "-") continue;
      std::vector<std::string> args = {std::string(flag.command), spelling};
      if (flag.kind != FlagKind::kSwitch) args.push_back(sample_value(flag.kind));
      if (flag.command == "decode") args.push_back("file");
      if (flag.command == "cgroup" || flag.command == "hash") args.push_back("/path");
      if (flag.command == "baseline") args.push_back("show");
      const ParseOutcome outcome = parse_flags(args);
      ASSERT_TRUE(outcome.flags) << spelling << ": " << outcome.text;
      EXPECT_TRUE(outcome.flags->has(flag.name)) << spelling;
    }
  }
}

TEST(Flags, EveryFlagIsInHelpAndManual) {
  const std::string page = test::slurp(GPUWATCH_MAN_PAGE);
  ASSERT_FALSE(page.empty());
  for (const FlagSpec& flag : flag_table()) {
    const ParseOutcome help = parse_flags({std::string(flag.command), "--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_NE(help.text.find("--" + std::string(flag.name)), std::string::npos) << flag.name;
    EXPECT_FALSE(flag.help.empty()) << flag.name;
    std::string roff = "\\fB\\-\\-";
    for (char c : flag.name) roff += c == '-' ? std::string("\\-") : std::string(1, c);
    const std::size_t section = page.find(".SS gpuwatch " + std::string(flag.command));
    ASSERT_NE(section, std::string::npos) << flag.command;
    const std::size_t end = page.find("\n.S", section + 1);
    EXPECT_NE(page.substr(section, end - section).find(roff + "\\fR"), std::string::npos)
        << flag.command << " " << flag.name;
  }
}

TEST(Flags, HelpFitsEightyColumns) {
  for (const CommandSpec& command : command_table()) {
    const std::string text = parse_flags({std::string(command.name), "--help"}).text;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      EXPECT_LE(end - at, 80u) << text.substr(at, end - at);
      at = end + 1;
    }
  }
}

TEST(Flags, ValuesAndLists) {
  const ParseOutcome outcome = parse_flags(
      {"tail", "--replay", "f", "--node", "ctl", "--node", "gpu", "-n", "5", "--ring-bytes=2M", "--duration", "1.5"});
  ASSERT_TRUE(outcome.flags) << outcome.text;
  EXPECT_EQ(outcome.flags->text("replay"), "f");
  EXPECT_EQ(outcome.flags->list("node"), (std::vector<std::string>{"ctl", "gpu"}));
  EXPECT_EQ(outcome.flags->number("count"), 5u);
  EXPECT_EQ(outcome.flags->number("ring-bytes"), 2u << 20);
  EXPECT_EQ(outcome.flags->duration("duration"), std::chrono::milliseconds(1500));
  EXPECT_FALSE(outcome.flags->has("raw"));
  EXPECT_EQ(outcome.flags->text("filter"), "");
}

TEST(Flags, WhatFollowsTheDashesIsNotOurs) {
  const ParseOutcome outcome = parse_flags({"record", "-o", "f", "--", "ls", "--help", "-o", "--", "x"});
  ASSERT_TRUE(outcome.flags) << outcome.text;
  EXPECT_EQ(outcome.flags->rest(), (std::vector<std::string>{"ls", "--help", "-o", "--", "x"}));
  EXPECT_EQ(outcome.flags->text("output"), "f");
}

TEST(Flags, MistakesGiveTwoAndTheReason) {
  const auto text_of = [](std::vector<std::string> args) {
    const ParseOutcome outcome = parse_flags(std::move(args));
    EXPECT_FALSE(outcome.flags);
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.text;
  };
  EXPECT_NE(text_of({}).find("gpuwatch: "), std::string::npos);
  EXPECT_NE(text_of({"frobnicate"}).find("frobnicate"), std::string::npos);
  EXPECT_NE(text_of({"tail", "--nope"}).find("--nope"), std::string::npos);
  EXPECT_NE(text_of({"tail", "--count"}).find("--count"), std::string::npos);
  EXPECT_NE(text_of({"tail", "--count", "x"}).find("--count: 'x' is not a whole number"), std::string::npos);
  EXPECT_NE(text_of({"tail", "--count", "-1"}).find("count"), std::string::npos);
  EXPECT_NE(text_of({"tail", "--ring-bytes", "4Q"}).find("'4Q' is not a number of bytes"), std::string::npos);
  EXPECT_NE(text_of({"tail", "--duration", "soon"}).find("'soon' is not a number of seconds"), std::string::npos);
  EXPECT_NE(text_of({"decode", "a", "b"}).find("b"), std::string::npos);
  EXPECT_NE(text_of({"tail", "--", "ls"}).find("only record does"), std::string::npos);
}

TEST(Flags, VersionAndHelpAreNoTrouble) {
  EXPECT_EQ(parse_flags({"--version"}).exit_code, 0);
  EXPECT_NE(parse_flags({"--version"}).text.find("gpuwatch "), std::string::npos);
  const ParseOutcome help = parse_flags({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const CommandSpec& command : command_table()) EXPECT_NE(help.text.find(command.name), std::string::npos);
}

TEST(ParseBytes, UnitsAndBounds) {
  EXPECT_EQ(parse_bytes("0"), 0u);
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("1K"), 1024u);
  EXPECT_EQ(parse_bytes("3G"), 3ull << 30);
  for (const char* bad : {"", "K", "-1", "1k", "1.5K", "99999999999999999999", "18446744073709551615K", " 1"})
    EXPECT_FALSE(parse_bytes(bad)) << bad;
}

TEST(ParseSeconds, DecimalsAndBounds) {
  EXPECT_EQ(parse_seconds("2"), std::chrono::seconds(2));
  EXPECT_EQ(parse_seconds("0.25"), std::chrono::milliseconds(250));
  for (const char* bad : {"", "x", "1e9x", "-1", "nan", "inf", "1e3", "99999999999"})
    EXPECT_FALSE(parse_seconds(bad)) << bad;
}

}  // namespace
}  // namespace gpuwatch::cli
