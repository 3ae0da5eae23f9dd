// SPDX-License-Identifier: Apache-2.0
// --private: nothing of a name, path or user comes out, and the stand-ins are
// stable under one key.
#include "cli/privacy.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "cli/view.h"
#include "model/definitions.h"
#include "unit/cli/hostile_recording.h"

namespace gpuwatch::cli {
namespace {

using test::Blob;

std::string shown(bool raw, bool json, Privacy* privacy, const std::string& filter = {},
                  std::vector<std::string> flags = {}) {
  flags.insert(flags.begin(), "tail");
  auto selection = Selection::from_flags(*parse_flags(flags).flags);
  EXPECT_TRUE(selection.ok());
  ViewOptions options;
  options.raw = raw;
  options.json = json;
  options.select_here = true;
  options.privacy = privacy;
  std::optional<Filter> compiled;
  if (!filter.empty()) compiled = std::move(*Filter::compile(filter));
  View view(options, {}, std::move(compiled), *selection);
  std::string out;
  for (const Blob& record : test::hostile_records()) view.observe(model::parse_record(record).value(), out);
  return out;
}

constexpr bool kBoth[] = {false, true};

TEST(Privacy, NoNamePathOrUserComesOut) {
  Privacy privacy("0123456789abcdef");
  for (const bool raw : kBoth)
    for (const bool json : kBoth) {
      const std::string open = shown(raw, json, nullptr);
      EXPECT_NE(open.find("SECRET"), std::string::npos) << "the recording shows nothing that could leak";
      const std::string out = shown(raw, json, &privacy);
      EXPECT_FALSE(out.empty());
      EXPECT_EQ(out.find("SECRET"), std::string::npos) << out;
      EXPECT_EQ(out.find("/home"), std::string::npos) << out;
      EXPECT_EQ(out.find("session-"), std::string::npos) << out;
      EXPECT_EQ(out.find("54321"), std::string::npos) << out;
      EXPECT_EQ(out.find("987654321"), std::string::npos) << out;
      EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), std::count(open.begin(), open.end(), '\n'));
    }
}

TEST(Privacy, HostileNamesReachNeitherTerminalNorJson) {
  Privacy privacy("0123456789abcdef");
  for (Privacy* with : {static_cast<Privacy*>(nullptr), &privacy})
    for (const bool raw : kBoth) {
      for (const unsigned char c : shown(raw, false, with)) ASSERT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f));
      std::istringstream lines(shown(raw, true, with));
      for (std::string line; std::getline(lines, line);) {
        EXPECT_TRUE(nlohmann::json::parse(line, nullptr, false).is_object()) << line;
        for (const unsigned char c : line) ASSERT_GE(c, 0x20);
      }
    }
}

TEST(Privacy, PseudonymsAreStableUnderOneKey) {
  Privacy one("0123456789abcdef");
  Privacy same("0123456789abcdef");
  Privacy other("0123456789abcdeg");
  EXPECT_EQ(one.pseudonym("exe", "/bin/a"), same.pseudonym("exe", "/bin/a"));
  EXPECT_NE(one.pseudonym("exe", "/bin/a"), other.pseudonym("exe", "/bin/a"));
  EXPECT_NE(one.pseudonym("exe", "/bin/a"), one.pseudonym("exe", "/bin/b"));
  EXPECT_NE(one.pseudonym("exe", "x").substr(4), one.pseudonym("unit", "x").substr(5));
  EXPECT_TRUE(std::regex_match(one.pseudonym("exe", "/bin/a"), std::regex("exe-[0-9a-f]{12}")));
  EXPECT_TRUE(one.pseudonym("exe", "").empty());
  EXPECT_EQ(one.user(0), same.user(0));
  EXPECT_NE(one.user(0), one.user(1));
  EXPECT_GE(one.user(0), 0x80000000U);
}

// HMAC-SHA-256 with key "Jefe" of kind "exe", a NUL, "/bin/a"; by openssl dgst.
TEST(Privacy, IsHmacSha256) {
  EXPECT_EQ(Privacy("Jefe").pseudonym("exe", "/bin/a"), "exe-6f5733bf3969");
}

TEST(Privacy, ManyNamesStayStable) {
  Privacy privacy("0123456789abcdef");
  const std::string first = privacy.pseudonym("exe", "/bin/a");
  for (int i = 0; i < 10'000; ++i) (void)privacy.pseudonym("exe", std::to_string(i));
  EXPECT_EQ(privacy.pseudonym("exe", "/bin/a"), first);
}

TEST(Privacy, KeysFromFiles) {
  test::ScratchDir dir;
  test::spill(dir.file("key"), "0123456789abcdef");
  test::spill(dir.file("short"), "0123456789abcde");
  auto key = Privacy::with_key_file(dir.file("key"));
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(key->pseudonym("exe", "a"), Privacy("0123456789abcdef").pseudonym("exe", "a"));
  EXPECT_NE(Privacy::with_key_file(dir.file("short")).error().message().find("at least 16"), std::string::npos);
  EXPECT_FALSE(Privacy::with_key_file(dir.file("absent")).ok());
  auto a = Privacy::with_key_file("");
  auto b = Privacy::with_key_file("");
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NE(a->pseudonym("exe", "a"), b->pseudonym("exe", "a"));
}

TEST(Privacy, TheFilterSeesNoNamesEither) {
  Privacy privacy("0123456789abcdef");
  EXPECT_FALSE(shown(true, false, nullptr, "comm~secret").empty());
  EXPECT_TRUE(shown(true, false, &privacy, "comm~secret || exe~secret || cgroup~secret").empty());
  EXPECT_FALSE(shown(true, false, &privacy, "comm~'comm-'").empty());
}

TEST(Privacy, RandomIdsStay) {
  Privacy privacy("0123456789abcdef");
  EXPECT_NE(shown(true, true, &privacy).find(std::string(64, 'd')), std::string::npos);
}

TEST(Selection, ByContainerUserAndGpu) {
  EXPECT_EQ(shown(true, false, nullptr, "class==open", {"--container", "dddd"}).size(),
            shown(true, false, nullptr, "class==open && container~dddd").size());
  EXPECT_TRUE(shown(true, false, nullptr, {}, {"--container", "ddd"}).empty());
  EXPECT_FALSE(shown(true, false, nullptr, {}, {"--container", "SECRETbox"}).empty());
  EXPECT_FALSE(shown(true, false, nullptr, {}, {"--user", "54321"}).empty());
  EXPECT_TRUE(shown(true, false, nullptr, {}, {"--user", "54322"}).empty());
  EXPECT_TRUE(shown(true, false, nullptr, {}, {"--pod", "x"}).empty());
  const std::string card = shown(true, false, nullptr, {}, {"--gpu", "1"});
  EXPECT_NE(card.find("nvidia1"), std::string::npos);
  EXPECT_EQ(card.find("nvidia0"), std::string::npos);
  EXPECT_EQ(card.find("nvidiactl"), std::string::npos);
  const std::string events = shown(false, false, nullptr, {}, {"--gpu", "gpu0"});
  EXPECT_NE(events.find("gpu0"), std::string::npos);
  EXPECT_EQ(events.find("gpu1"), std::string::npos);
  // The choice is made by real names; what is shown has none.
  Privacy privacy("0123456789abcdef");
  const std::string box = shown(true, false, &privacy, {}, {"--container", "SECRETbox"});
  EXPECT_FALSE(box.empty());
  EXPECT_EQ(box.find("SECRET"), std::string::npos);
}

TEST(Selection, PodsByUidNameAndNamespace) {
  const auto holds = [](const model::Actor& actor, const std::string& text) {
    ParseOutcome outcome = parse_flags({"tail", "--pod", text});
    return Selection::from_flags(*outcome.flags)->matches_names(test::make_head(GPUWATCH_REC_IOCTL), actor);
  };
  model::Actor actor;
  actor.pod_uid = "11111111-2222-3333-4444-555555555555";
  actor.pod_name = "web-0";
  actor.pod_namespace = "prod";
  EXPECT_TRUE(holds(actor, "web-0"));
  EXPECT_TRUE(holds(actor, "prod/web-0"));
  EXPECT_TRUE(holds(actor, "11111111-2222-3333-4444-555555555555"));
  EXPECT_FALSE(holds(actor, "test/web-0"));
  EXPECT_FALSE(holds(actor, "web"));
  const model::ContainerRef outer[] = {{"kubernetes", "a", "22222222-2222-3333-4444-555555555555"}};
  actor.chain = outer;
  EXPECT_TRUE(holds(actor, "22222222-2222-3333-4444-555555555555"));
}

TEST(Selection, BadUsersAndGpus) {
  for (const std::vector<std::string>& args : {std::vector<std::string>{"tail", "--user", "no such user"},
                                               {"tail", "--gpu", "x"},
                                               {"tail", "--gpu", "-1"},
                                               {"tail", "--container", ""},
                                               {"tail", "--pod", ""}}) {
    ParseOutcome outcome = parse_flags(args);
    ASSERT_TRUE(outcome.flags);
    EXPECT_FALSE(Selection::from_flags(*outcome.flags).ok()) << args[1] << args[2];
  }
}

}  // namespace
}  // namespace gpuwatch::cli
