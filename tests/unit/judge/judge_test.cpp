// SPDX-License-Identifier: Apache-2.0
#include "judge/judge.h"

#include "make.h"

namespace gpuwatch::judge {
namespace {

using model::Verdict;

class Judging : public WithBaselines {
 protected:
  model::Judgement verdict_of(const model::ModulePrint& module, std::vector<Lookup*> baselines,
                              const std::string& policy = "", const model::Actor& actor = {}) {
    auto rules = Policy::parse(policy, "policy");
    EXPECT_TRUE(rules.ok()) << (rules.ok() ? "" : rules.error().message());
    auto judgement = judge(module, actor, baselines, *rules, {.explain = true});
    EXPECT_TRUE(judgement.ok()) << (judgement.ok() ? "" : judgement.error().message());
    return std::move(*judgement);
  }
};

const std::vector<model::KernelPrint> kThree = {kernel("a", "a"), kernel("b", "b"), kernel("c", "c")};

model::ModulePrint in_memory(model::ModulePrint module) {
  module.origin = model::CodeOrigin::kMemory;
  return module;
}

TEST_F(Judging, EachVerdict) {
  Baseline known = make("prod", {entry(cubin("lib", kThree)), entry(ptx("text"))});
  Baseline denied =
      make("miners", {entry(cubin("miner", {kernel("search", "dagger"), kernel("util", "u")}))}, Stance::kDenied);
  auto rebuilt = cubin("lib with -lineinfo", kThree);
  rebuilt.m = digest("mlib");
  auto renamed_miner = cubin("other", {kernel("innocent", "dagger")});
  auto miner_rebuilt = cubin("x", {});
  miner_rebuilt.m = digest("mminer");
  auto text_again = ptx("text, other comments");
  text_again.p = digest("ptext");
  struct Case {
    const char* what;
    model::ModulePrint module;
    Verdict verdict;
    const char* why;
  };
  const Case cases[] = {
      {"same bytes", cubin("lib", kThree), Verdict::kKnown,
       "these bytes (R) are in baseline 'prod', from libx 1.2-3 (dpkg)"},
      {"same PTX", ptx("text"), Verdict::kKnown, "(R)"},
      {"only notes differ", rebuilt, Verdict::kKnownKernels, "same module (M)"},
      {"only comments differ", text_again, Verdict::kKnownKernels, "same PTX (P)"},
      {"kernels in a new order", cubin("new", {kThree[2], kThree[0]}), Verdict::kKnownKernels,
       "each of its 2 kernels (K)"},
      {"one kernel edited", cubin("edit", {kThree[0], kThree[1], kernel("c", "evil")}), Verdict::kModified,
       "kernel c: known by name in baseline 'prod', from libx 1.2-3 (dpkg), with other code (K)"},
      {"edited, and unpacked into memory", in_memory(cubin("edit2", {kThree[0], kThree[1], kernel("c", "evil")})),
       Verdict::kModified, "kernel c"},
      {"two edited", cubin("edit3", {kernel("a", "x"), kThree[1], kernel("c", "evil")}), Verdict::kModified,
       "kernel a and 1 other"},
      {"a sibling: one name more", cubin("sib", {kThree[0], kThree[1], kernel("c", "evil"), kernel("d", "d")}),
       Verdict::kModified, "kernel c"},
      {"a common name in another module", cubin("far", {kernel("c", "q"), kernel("x", "x"), kernel("y", "y")}),
       Verdict::kUnknown, "neither its bytes nor its kernels"},
      {"a new kernel beside known ones", cubin("more", {kThree[0], kernel("z", "z")}), Verdict::kUnknown, "neither"},
      {"nothing of it", cubin("foreign", {kernel("z", "z")}), Verdict::kUnknown, "neither"},
      {"PTX", ptx("other"), Verdict::kJit, "PTX, compiled by the driver"},
      {"cubin in memory", in_memory(cubin("triton", {kernel("add", "add")})), Verdict::kJit, "lie in no file"},
      {"denied bytes", cubin("miner", {}), Verdict::kDenied, "its bytes (R) are on deny list 'miners'"},
      {"denied module", miner_rebuilt, Verdict::kDenied, "its module hash (M) is on deny list"},
      {"denied kernel under another name", renamed_miner, Verdict::kDenied,
       "kernel innocent (K) is on deny list 'miners' as search"},
  };
  for (const Case& c : cases) {
    for (const auto& order : {std::vector<Lookup*>{&known, &denied}, std::vector<Lookup*>{&denied, &known}}) {
      const auto judgement = verdict_of(c.module, order);
      EXPECT_EQ(model::verdict_name(judgement.verdict), model::verdict_name(c.verdict)) << c.what;
      EXPECT_NE(judgement.why.find(c.why), std::string::npos) << c.what << ": " << judgement.why;
      EXPECT_EQ(judgement.why.find('\n'), std::string::npos);
    }
  }
}

TEST_F(Judging, DenyListsWinOverKnown) {
  Baseline known = make("prod", {entry(cubin("lib", kThree))});
  Baseline denied = make("bad", {entry(cubin("lib", kThree))}, Stance::kDenied);
  EXPECT_EQ(verdict_of(cubin("lib", kThree), {&known, &denied}).verdict, Verdict::kDenied);
}

TEST_F(Judging, WithoutBaselines) {
  const auto judgement = verdict_of(cubin("lib", kThree), {});
  EXPECT_EQ(judgement.verdict, Verdict::kUnknown);
  EXPECT_EQ(judgement.why, "no baseline to compare with");
}

// Two versions of a library are known; a kernel that either has is not modified.
TEST_F(Judging, SeveralVersionsAreNoModification) {
  Baseline old = make("v1", {entry(cubin("v1", {kernel("a", "a1"), kernel("b", "b1")}))});
  Baseline fresh = make("v2", {entry(cubin("v2", {kernel("a", "a2"), kernel("b", "b2")}))});
  EXPECT_EQ(verdict_of(cubin("mix", {kernel("a", "a1"), kernel("b", "b2")}), {&old, &fresh}).verdict,
            Verdict::kKnownKernels);
  const auto half = verdict_of(cubin("half", {kernel("a", "a1"), kernel("b", "evil")}), {&old, &fresh});
  EXPECT_EQ(half.verdict, Verdict::kModified);
  EXPECT_NE(half.why.find("kernel b:"), std::string::npos);
}

TEST_F(Judging, GeneratedNamesAreNoLineage) {
  auto learned = in_memory(cubin("inductor", {kernel("triton_poi_fused_0", "first")}));
  Baseline known = make("learned", {entry(learned)});
  auto next = in_memory(cubin("inductor2", {kernel("triton_poi_fused_0", "second")}));
  EXPECT_EQ(verdict_of(next, {&known}).verdict, Verdict::kJit);
  EXPECT_EQ(verdict_of(learned, {&known}).verdict, Verdict::kKnown);
}

TEST_F(Judging, OtherSmIsAnotherBuild) {
  Baseline known = make("prod", {entry(cubin("lib", kThree))});
  auto other = cubin("lib for 80", {kernel("a", "a80"), kernel("b", "b80"), kernel("c", "c80")});
  other.sm = 80;
  EXPECT_EQ(verdict_of(other, {&known}).verdict, Verdict::kUnknown);
}

TEST_F(Judging, ExplainsWhatDiffers) {
  Baseline known = make("prod", {entry(cubin("lib", kThree))});
  auto changed = kernel("b", "b");
  changed.k = digest("other attributes");
  changed.registers = 40;
  auto recoded = kernel("c", "longer code");
  const auto judgement = verdict_of(cubin("x", {kThree[0], changed, recoded}), {&known});
  ASSERT_EQ(judgement.verdict, Verdict::kModified);
  std::vector<std::string> lines;
  for (const auto& d : judgement.differences) lines.push_back(d.kernel + "|" + d.section + "|" + d.what);
  EXPECT_EQ(lines, (std::vector<std::string>{"b|.nv.info.b|registers", "c|.text.c|code", "c|.text.c|code bytes",
                                             "|.nv.constant*, .nv.global*|module data (D)"}));
  EXPECT_EQ(judgement.differences[0].baseline, "16");
  EXPECT_EQ(judgement.differences[0].seen, "40");
}

TEST_F(Judging, PolicyDecidesAboutJit) {
  model::Actor actor;
  actor.exe = "/usr/bin/python3.11";
  actor.cgroup_path = "/kubepods/pod1";
  const std::string policy = "jit allow exe=/usr/bin/python3*\njit deny cgroup=/kubepods/*\n";
  const auto allowed = verdict_of(ptx("a"), {}, policy, actor);
  EXPECT_EQ(allowed.verdict, Verdict::kJit);
  EXPECT_TRUE(allowed.allowed);
  EXPECT_NE(allowed.why.find("allowed by line 1"), std::string::npos);
  actor.exe = "/tmp/x";
  const auto denied = verdict_of(ptx("a"), {}, policy, actor);
  EXPECT_EQ(denied.verdict, Verdict::kDenied);
  EXPECT_NE(denied.why.find("refused by line 2"), std::string::npos);
  actor.cgroup_path = {};
  const auto reported = verdict_of(ptx("a"), {}, policy, actor);
  EXPECT_EQ(reported.verdict, Verdict::kJit);
  EXPECT_FALSE(reported.allowed);
}

TEST(Kinship, BySetsOfNames) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(kinship_of(Names{"a", "b"}, Names{"a", "b"}), Kinship::kSame);
  EXPECT_EQ(kinship_of(Names{"a", "b"}, Names{"a", "b", "c", "d"}), Kinship::kSibling);
  EXPECT_EQ(kinship_of(Names{"a"}, Names{"a", "b", "c"}), Kinship::kNone);
  EXPECT_EQ(kinship_of(Names{}, Names{}), Kinship::kNone);
  EXPECT_EQ(kinship_of(Names{"a", "c", "e"}, Names{"b", "c", "e"}), Kinship::kSibling);
}

TEST(Verdicts, TheWorstDecides) {
  std::vector<model::Judgement> all(3);
  all[0].verdict = Verdict::kKnown;
  all[1].verdict = Verdict::kModified;
  all[2].verdict = Verdict::kJit;
  EXPECT_EQ(worst_of(all), &all[1]);
  EXPECT_EQ(worst_of({}), nullptr);
  EXPECT_EQ(unverified("over budget").why, "not verified: over budget");
}

}  // namespace
}  // namespace gpuwatch::judge
