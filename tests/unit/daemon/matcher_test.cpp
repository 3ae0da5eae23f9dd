// SPDX-License-Identifier: Apache-2.0
// Unit tests of rules applied: a table of conditions against subjects, rates and
// limits by group, and bounds of what is remembered.
#include "daemon/matcher.h"

#include <gtest/gtest.h>

#include <cstring>

namespace gpuwatch::daemon {
namespace {

using model::StoryEvent;
using model::StoryKind;

struct World {
  StoryEvent event;
  model::Actor actor;
  Subject subject() { return {&event, &actor, {}, event.head.time_ns}; }
};

World load(model::Verdict verdict) {
  World world;
  world.event.kind = StoryKind::kModuleLoad;
  world.event.head.tgid = 7;
  world.event.head.uid = 1000;
  world.event.head.time_ns = 1;
  std::memcpy(world.event.head.comm, "python3", 7);
  world.event.gpu_minor = 3;
  model::ModuleBody body;
  body.name = "gemm_kernel";
  body.source = "/opt/a.so";
  body.place = model::ImagePlace::kFile;
  body.judged = true;
  body.verdict = verdict;
  world.event.body = body;
  world.actor.exe = "/usr/bin/python3.11";
  world.actor.container_id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  world.actor.container_name = "train";
  world.actor.image = "registry.example/train:1";
  world.actor.pod_name = "train-0";
  world.actor.pod_uid = "6f1c2d34";
  world.actor.pod_namespace = "ml";
  world.actor.user_name = "ada";
  world.actor.cgroup_path = "/kubepods.slice/x";
  world.actor.unit = "kubelet.service";
  return world;
}

World finding() {
  World world;
  world.event.kind = StoryKind::kSecurityFinding;
  world.event.head.tgid = 7;
  model::FindingBody body;
  body.reason = "debugger";
  body.name = "GT200_DEBUGGER";
  body.mutates = true;
  body.target.process = {5, 9};
  world.event.body = body;
  return world;
}

Conditions when(std::initializer_list<std::pair<Field, std::vector<std::string>>> list) {
  Conditions conditions;
  for (const auto& [field, values] : list) conditions.values[static_cast<std::size_t>(field)] = values;
  return conditions;
}

TEST(Matcher, ConditionsByTable) {
  World world = load(model::Verdict::kUnknown);
  const struct {
    Field field;
    std::vector<std::string> values;
    bool fits;
  } kCases[] = {
      {Field::kEvent, {"module.load"}, true},
      {Field::kEvent, {"gpu.opened", "module.load"}, true},
      {Field::kEvent, {"gpu.opened"}, false},
      {Field::kVerdict, {"unknown"}, true},
      {Field::kVerdict, {"known", "denied"}, false},
      {Field::kModule, {"*gemm*"}, true},
      {Field::kModule, {"GEMM*"}, false},
      {Field::kFile, {"/opt/*"}, true},
      {Field::kPlace, {"file"}, true},
      {Field::kPlace, {"memory"}, false},
      {Field::kContainer, {"train"}, true},
      {Field::kContainer, {"0123456789ab"}, true},
      {Field::kContainer, {"0123*"}, true},
      {Field::kContainer, {""}, false},
      {Field::kImage, {"registry.example/*"}, true},
      {Field::kPod, {"train-?"}, true},
      {Field::kPod, {"6f1c2d34"}, true},
      {Field::kNamespace, {"ml"}, true},
      {Field::kUser, {"ada"}, true},
      {Field::kUser, {"1000"}, true},
      {Field::kUser, {"0", "root"}, false},
      {Field::kExe, {"/usr/bin/python3*"}, true},
      {Field::kExe, {"python3"}, false},
      {Field::kComm, {"python?"}, true},
      {Field::kCgroup, {"/kubepods.slice/*"}, true},
      {Field::kUnit, {"kubelet.service"}, true},
      {Field::kGpu, {"3"}, true},
      {Field::kGpu, {"0", "1"}, false},
      {Field::kReason, {"*"}, false},
      {Field::kMutates, {"true"}, false},
      {Field::kAllowed, {"false"}, true},
  };
  for (const auto& one : kCases) {
    const Conditions conditions = when({{one.field, one.values}});
    EXPECT_EQ(fits(conditions, {}, world.subject()), one.fits)
        << field_info(one.field).key << " " << one.values.front();
    // The same under `unless` says the opposite.
    EXPECT_EQ(fits({}, conditions, world.subject()), !one.fits) << field_info(one.field).key;
  }
}

TEST(Matcher, AllConditionsMustFit) {
  World world = load(model::Verdict::kUnknown);
  EXPECT_TRUE(fits(when({{Field::kUser, {"ada"}}, {Field::kGpu, {"3"}}}), {}, world.subject()));
  EXPECT_FALSE(fits(when({{Field::kUser, {"ada"}}, {Field::kGpu, {"4"}}}), {}, world.subject()));
  // Unless all of these, too.
  EXPECT_FALSE(fits({}, when({{Field::kUser, {"ada"}}, {Field::kGpu, {"3"}}}), world.subject()));
  EXPECT_TRUE(fits({}, when({{Field::kUser, {"ada"}}, {Field::kGpu, {"4"}}}), world.subject()));
}

TEST(Matcher, Findings) {
  World world = finding();
  EXPECT_TRUE(fits(when({{Field::kReason, {"debug*"}}, {Field::kForeign, {"true"}}, {Field::kMutates, {"true"}}}), {},
                   world.subject()));
  std::get<model::FindingBody>(world.event.body).target.process = world.event.process();
  EXPECT_TRUE(fits(when({{Field::kForeign, {"false"}}}), {}, world.subject())) << "its own";
  std::get<model::FindingBody>(world.event.body).target = {};
  EXPECT_TRUE(fits(when({{Field::kForeign, {"false"}}}), {}, world.subject())) << "nobody's";
}

TEST(Matcher, NotJudgedHasNoVerdict) {
  World world = load(model::Verdict::kUnknown);
  std::get<model::ModuleBody>(world.event.body).judged = false;
  EXPECT_FALSE(fits(when({{Field::kVerdict, {"unknown"}}}), {}, world.subject()));
}

TEST(Matcher, LossesHaveAReasonOnly) {
  const Subject subject{nullptr, nullptr, "ring_full", 1};
  EXPECT_TRUE(fits(when({{Field::kEvent, {"loss"}}, {Field::kReason, {"ring*"}}}), {}, subject));
  EXPECT_FALSE(fits(when({{Field::kEvent, {"module.load"}}}), {}, subject));
  EXPECT_FALSE(fits(when({{Field::kUser, {"*"}}}), {}, subject));
}

Rule rule_of(const char* event, Rate rate, Rate limit) {
  Rule rule;
  rule.name = "r";
  rule.when = when({{Field::kEvent, {event}}});
  rule.rate = rate;
  rule.limit = limit;
  return rule;
}

TEST(Matcher, RatesAreByGroupAndBeginAnew) {
  Matcher matcher({rule_of("module.load", {3, 1000, GroupBy::kProcess}, {})});
  World world = load(model::Verdict::kKnown);
  std::vector<Hit> hits;
  const auto at = [&](std::uint64_t now, std::uint32_t tgid) {
    world.event.head.time_ns = now;
    world.event.head.tgid = tgid;
    hits.clear();
    matcher.look(world.subject(), hits);
    return hits.size();
  };
  EXPECT_EQ(at(1, 1), 0u);
  EXPECT_EQ(at(2, 1), 0u);
  EXPECT_EQ(at(3, 2), 0u) << "another process";
  EXPECT_EQ(at(4, 1), 1u);
  EXPECT_EQ(at(5, 1), 0u) << "it begins anew";
  EXPECT_EQ(at(2000, 1), 0u);
  EXPECT_EQ(at(2001, 1), 0u) << "those before are too old";
  EXPECT_EQ(at(2002, 1), 1u);
}

TEST(Matcher, LimitsHoldBackAndTellHowMany) {
  Matcher matcher({rule_of("module.load", {}, {2, 1000, GroupBy::kContainer})});
  World world = load(model::Verdict::kKnown);
  std::vector<Hit> hits;
  for (std::uint64_t now = 1; now <= 10; ++now) {
    world.event.head.time_ns = now;
    matcher.look(world.subject(), hits);
  }
  EXPECT_EQ(hits.size(), 2u);
  EXPECT_EQ(matcher.suppressed(0), 8u);
  world.actor.container_id = "other";
  matcher.look(world.subject(), hits);
  ASSERT_EQ(hits.size(), 3u) << "another container has its own";
  EXPECT_EQ(hits.back().suppressed, 8u);
  world.event.head.time_ns = 1500;
  matcher.look(world.subject(), hits);
  ASSERT_EQ(hits.size(), 4u);
  EXPECT_EQ(hits.back().suppressed, 0u) << "told once";
}

TEST(Matcher, ManyGroupsAreForgotten) {
  RateCounter counter;
  const Rate rate{2, 1'000'000'000, GroupBy::kProcess};
  for (std::uint64_t i = 0; i < RateCounter::kGroupsMax + 100; ++i)
    EXPECT_FALSE(counter.reached(rate, std::to_string(i), i + 1));
  // The newest are still known, the oldest are not.
  EXPECT_TRUE(counter.reached(rate, std::to_string(RateCounter::kGroupsMax + 99), 10'000));
  EXPECT_FALSE(counter.reached(rate, "0", 10'000));
}

TEST(Matcher, RulesSwitchedOffDoNothing) {
  Rule rule = rule_of("module.load", {}, {});
  rule.enabled = false;
  Matcher matcher({rule});
  World world = load(model::Verdict::kKnown);
  std::vector<Hit> hits;
  matcher.look(world.subject(), hits);
  EXPECT_TRUE(hits.empty());
}

}  // namespace
}  // namespace gpuwatch::daemon
