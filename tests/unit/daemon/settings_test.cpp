// SPDX-License-Identifier: Apache-2.0
// Unit tests of the configuration: what is taken, each error with its place and
// remedy, hostile files, and that the manual has every key.
#include "daemon/settings.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/io.h"
#include "daemon/yaml.h"

namespace gpuwatch::daemon {
namespace {

class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest() {
    directory_ = ::testing::TempDir() + "settings-" + std::to_string(::getpid());
    ::mkdir(directory_.c_str(), 0700);
    ::mkdir((directory_ + "/conf.d").c_str(), 0700);
    file_ = directory_ + "/gw.yaml";
  }
  ~SettingsTest() override {
    for (const char* name : {"/conf.d/10-a.yaml", "/conf.d/20-b.yaml", "/gw.yaml"})
      ::unlink((directory_ + name).c_str());
  }

  void put(const std::string& text, const std::string& name = "/gw.yaml") {
    std::ofstream(directory_ + name, std::ios::binary) << text;
  }
  Settings read(std::vector<std::string> overrides = {}) {
    errors_.clear();
    return Settings::read(file_, overrides, errors_);
  }

  std::string directory_, file_;
  std::vector<std::string> errors_;
};

TEST_F(SettingsTest, ValuesOfEachType) {
  put("ring_bytes: 2MiB\ncode:\n  baselines: [/a, \"/b c\"]\n  scan: true\n  unverified_after: 3m\n"
      "control: {path: /run/x.sock}\nloss: {action: log}\nsinks:\n  queue_items: 100\n");
  const Settings settings = read();
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  EXPECT_EQ(settings.number(Key::kRingBytes), 2u << 20);
  EXPECT_EQ(settings.texts(Key::kBaselines), (std::vector<std::string>{"/a", "/b c"}));
  EXPECT_TRUE(settings.flag(Key::kScan));
  EXPECT_EQ(settings.duration(Key::kUnverifiedAfter), std::chrono::minutes(3));
  EXPECT_EQ(settings.text(Key::kControlPath), "/run/x.sock");
  EXPECT_EQ(settings.text(Key::kLossAction), "log");
  EXPECT_EQ(settings.number(Key::kSinkItems), 100u);
  EXPECT_EQ(settings.number(Key::kQueueBytes), 64u << 20) << "not named: its default";
}

TEST_F(SettingsTest, LaterFilesAndTheCommandLineReplaceValues) {
  put("queue_bytes: 2MiB\nevents: all\n");
  put("queue_bytes: 3MiB\nrules:\n- {name: a, when: {event: loss}}\n", "/conf.d/10-a.yaml");
  put("queue_bytes: 4MiB\nrules:\n- {name: b, when: {event: loss}}\n", "/conf.d/20-b.yaml");
  const Settings settings = read({"queue_bytes=5MiB", "code.baselines=/x,/y"});
  ASSERT_TRUE(errors_.empty()) << errors_.front();
  EXPECT_EQ(settings.number(Key::kQueueBytes), 5u << 20);
  EXPECT_EQ(settings.text(Key::kEvents), "all");
  EXPECT_EQ(settings.texts(Key::kBaselines).size(), 2u);
  ASSERT_EQ(settings.rules().size(), 2u);
  EXPECT_EQ(settings.files().size(), 3u);
}

// What is wrong, where it is, and a word of the remedy.
TEST_F(SettingsTest, EachErrorHasItsPlaceAndRemedy) {
  const struct {
    const char *text, *place, *word;
  } kCases[] = {
      {"rin_bytes: 1", ":1:1: unknown key \"rin_bytes\"", "did you mean \"ring_bytes\""},
      {"code:\n  scam: true", ":2:3: unknown key \"code.scam\"", "did you mean \"code.scan\""},
      {"names: yes", ":1:8: \"names\" wants true or false", "it has \"yes\""},
      {"names: [true]", ":1:8: \"names\" wants true or false", "no single value"},
      {"ring_bytes: 3MiB", ":1:13: \"ring_bytes\" is no power of two", "take 1MiB"},
      {"ring_bytes: 1TiB", ":1:13: \"ring_bytes\" is out of range", "it wants 0 to"},
      {"ring_bytes: 5 apples", ":1:13: \"ring_bytes\" wants a size", "5 apples"},
      {"queue_bytes: 99999999999999999999999999", ":1:14: \"queue_bytes\" wants a size", "it has"},
      {"queue_bytes: -1", ":1:14: \"queue_bytes\" wants a size", "it has"},
      {"code: {unverified_after: 10}", ":1:26: \"code.unverified_after\" wants a time", "10s"},
      {"stop_time: 1ms", ":1:12: \"stop_time\" is out of range", "100ms to 300s"},
      {"sinks: {queue_items: many}", ":1:22: \"sinks.queue_items\" wants a number", "many"},
      {"loss: {action: panic}", ":1:16: \"loss.action\" cannot be \"panic\"", "there are ignore"},
      {"events: al", ":1:9: \"events\" cannot be \"al\"", "did you mean \"all\""},
      {"state: here", ":1:8: \"state\" wants keys of its own", "indent"},
      {"control: {path: [a]}", ":1:17: \"control.path\" wants one text", "list"},
      {"code: {baselines: {a: b}}", ":1:19: \"code.baselines\" wants a text or a list", "[a, b]"},
      {"names: true\nnames: false", ":2:1: \"names\" comes twice", "keep one"},
      {"- a", ":1:1: the file has no keys", "key: value"},
      {"a: [", ":1:", "well-formed"},
      {"a: *x", ":1:4: anchors, aliases and tags are not read", "quotes"},
      {"a: &x 1", ":1:4: anchors", "quotes"},
      {"a: !!binary x", ":1:4: anchors", "quotes"},
      {"rules: {a: b}", ":1:8: \"rules\" wants a list", "- name"},
      {"rules:\n- when: {event: loss}", ":2:3: a rule without name", "name"},
      {"rules:\n- name: a", ":2:3: a rule that does not say of which events", "when"},
      {"rules:\n- {name: A, when: {event: loss}}", ":2:10: a rule's name has other characters", "choose one"},
      {"rules:\n- {name: a, when: {event: lose}}", ":2:27: \"event\" cannot be \"lose\"", "did you mean \"loss\""},
      {"rules:\n- {name: a, when: {event: loss, verdict: bad}}", ":2:42: \"verdict\" cannot be \"bad\"",
       "there are known"},
      {"rules:\n- {name: a, when: {event: loss, evnt: loss}}", ":2:33: unknown condition \"evnt\"",
       "did you mean \"event\""},
      {"rules:\n- {name: a, when: {event: []}}", ":2:27: \"event\" has an empty list", "name 1 to"},
      {"rules:\n- {name: a, when: {event: loss, gpu: one}}", ":2:38: \"gpu\" wants numbers", "one"},
      {"rules:\n- {name: a, when: {event: loss, mutates: 1}}", ":2:42: \"mutates\" wants true or false", "\"1\""},
      {"rules:\n- {name: a, when: {event: loss}, severity: bad}", ":2:44: \"severity\" cannot be", "there are info"},
      {"rules:\n- {name: a, when: {event: loss}, attack: X1}", ":2:42: \"attack\" wants", "T1496"},
      {"rules:\n- {name: a, when: {event: loss}, actions: [shout]}", ":2:43: \"actions\" cannot have \"shout\"",
       "there are alert"},
      {"rules:\n- {name: a, when: {event: loss}, actions: webhook}", ":2:3: rule \"a\" has the action webhook",
       "sinks.webhook.url"},
      {"rules:\n- {name: a, when: {event: loss}, actions: exec}", ":2:3: rule \"a\" has the action exec",
       "sinks.exec.command"},
      {"rules:\n- {name: a, when: {event: loss}, rate: {count: 3}}", ":2:40: \"rate\" wants both count and per",
       "per: 1m"},
      {"rules:\n- {name: a, when: {event: loss}, rate: {count: 0, per: 1m}}", ":2:48: \"rate.count\" is out of range",
       "1 to"},
      {"rules:\n- {name: a, when: {event: loss}, limit: {count: 1, per: 1m, by: moon}}",
       ":2:65: \"limit.by\" cannot be \"moon\"", "there are rule"},
      {"rules:\n- {name: a, when: {event: loss}, wehn: {}}", ":2:34: unknown key \"wehn\" in a rule",
       "did you mean \"when\""},
      {"rules:\n- {name: a, when: {event: loss}}\n- {name: a, when: {event: loss}}", ":3:3: a second rule \"a\"",
       "rename"},
  };
  for (const auto& one : kCases) {
    put(one.text);
    (void)read();
    EXPECT_EQ(errors_.size(), 1u) << one.text
                                  << (errors_.empty() ? "" : "\n" + errors_.front() + "\n" + errors_.back());
    if (errors_.empty()) continue;
    EXPECT_TRUE(errors_.front().starts_with(file_ + one.place)) << one.text << "\n" << errors_.front();
    EXPECT_NE(errors_.front().find(one.word), std::string::npos) << one.text << "\n" << errors_.front();
  }
}

TEST_F(SettingsTest, AllErrorsAreNamedAtOnce) {
  put("names: 1\nevents: 2\nfoo: 3\nrules:\n- {name: a}\n- 7\n");
  (void)read({"x=1", "names", "events=maybe"});
  EXPECT_GE(errors_.size(), 8u);
}

TEST_F(SettingsTest, HostileFilesCostLittle) {
  const std::string deep(100'000, '[');
  std::string dashes = "a: ";
  for (int i = 0; i < 10'000; ++i) dashes += "- ";
  std::string staircase;
  for (int i = 0; i < 2000; ++i) staircase += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  for (const std::string& text :
       {deep, "a: " + deep, dashes, staircase, std::string(kYamlMax + 10, 'a'), std::string("a: b\0c", 6),
        std::string("\xff\xfe\x00\x01", 4), std::string("a: \"\x1b[2J\" \n? ? ?"), std::string("&a [*a,*a]"),
        std::string("? [a]\n: b"), std::string("{a: {b: {c: {d: {e: {f: {g: {h: {i: {j: {k: {l: {m: n}}}}}}}}}}}}}")}) {
    put(text);
    (void)read();
    EXPECT_FALSE(errors_.empty()) << text.substr(0, 40);
    for (const std::string& error : errors_)
      for (const char c : error) EXPECT_GE(static_cast<unsigned char>(c), 0x20u) << error;
  }
}

TEST_F(SettingsTest, WhatIsNoFileIsAnError) {
  file_ = directory_ + "/none.yaml";
  (void)read();
  ASSERT_EQ(errors_.size(), 1u);
  EXPECT_NE(errors_.front().find("none.yaml"), std::string::npos);
}

TEST_F(SettingsTest, TheStarterRulesAreGood) {
  errors_.clear();
  const Settings settings = Settings::read(GPUWATCH_ETC "/gpuwatch.yaml", {}, errors_);
  EXPECT_TRUE(errors_.empty()) << errors_.front();
  EXPECT_GE(settings.rules().size(), 10u);
  for (const Rule& rule : settings.rules()) {
    EXPECT_FALSE(rule.message.empty()) << rule.name;
    EXPECT_FALSE(rule.attack.empty()) << rule.name;
  }
}

TEST_F(SettingsTest, DefaultsAreWithinTheirOwnBounds) {
  for (std::size_t i = 0; i < kKeys; ++i) {
    const KeyInfo& info = key_info(static_cast<Key>(i));
    if (info.type == KeyType::kTexts || info.fallback.empty()) continue;
    put("");
    (void)read({std::string(info.path) + "=" + std::string(info.fallback)});
    EXPECT_TRUE(errors_.empty()) << errors_.front();
  }
}

// Each key, condition and option of the tables.
TEST_F(SettingsTest, TheManualsHaveTheTables) {
  auto page = base::read_text_file(GPUWATCH_YAML_PAGE, 1 << 20);
  ASSERT_TRUE(page.ok()) << page.error().message();
  EXPECT_NE(page->find(keys_as_manual()), std::string::npos) << "make it again: userspace/man/generate";
  EXPECT_NE(page->find(rule_keys_as_manual()), std::string::npos) << "make it again: userspace/man/generate";
  auto daemon = base::read_text_file(GPUWATCHD_PAGE, 1 << 20);
  ASSERT_TRUE(daemon.ok()) << daemon.error().message();
#define OPTION(name, value, meaning) options.emplace_back(name);
  std::vector<std::string> options;
#include "daemon/options.def"
#undef OPTION
  for (const std::string& option : options) {
    std::string written = "--" + option;
    for (std::size_t at = 0; (at = written.find('-', at)) != std::string::npos; at += 2) written.insert(at, "\\");
    EXPECT_NE(daemon->find(written), std::string::npos) << option;
  }
}

}  // namespace
}  // namespace gpuwatch::daemon
