// SPDX-License-Identifier: Apache-2.0
#include "judge/resident.h"

#include "make.h"

namespace gpuwatch::judge {
namespace {

ConfirmedCode code(const std::string& bytes, const std::string& driver, bool compiled = true) {
  ConfirmedCode out;
  out.name = "f";
  out.driver = driver;
  out.sm = 90;
  out.compiled = compiled;
  out.form = digest("f" + bytes);
  out.k = digest("k" + bytes);
  return out;
}

class Residents : public WithBaselines {
 protected:
  ResidentJudgement ask(const ConfirmedCode& of, std::vector<Baseline*> baselines) const {
    auto judged = judge_resident(of, baselines);
    EXPECT_TRUE(judged.ok()) << judged.error().message();
    return *judged;
  }
};

TEST_F(Residents, KnownForThisDriverOnly) {
  Baseline good = make("good", {with_resident(entry(ptx("p")), "580.1", "code")});
  const ResidentJudgement known = ask(code("code", "580.1"), {&good});
  EXPECT_EQ(known.familiarity, Familiarity::kKnown);
  EXPECT_EQ(known.baseline, "good");
  EXPECT_EQ(known.why, "its bytes are in the baseline 'good' for driver 580.1 and sm_90");
  const ResidentJudgement other = ask(code("code", "590.2"), {&good});
  EXPECT_EQ(other.familiarity, Familiarity::kOtherDriver);
  EXPECT_EQ(other.why, "its bytes are in the baseline 'good' for driver 580.1, not for this one");
  // A driver that is not known is none, not any.
  EXPECT_EQ(ask(code("code", ""), {&good}).familiarity, Familiarity::kOtherDriver);
}

TEST_F(Residents, UnknownSaysWhatIsKnownUnderItsName) {
  Baseline good = make("good", {with_resident(entry(ptx("p")), "580.1", "code")});
  EXPECT_EQ(ask(code("evil", "580.1"), {&good}).why,
            "the baseline 'good' has its name for this driver, with other bytes");
  EXPECT_EQ(ask(code("new", "590.2"), {&good}).why,
            "the baseline 'good' has its name for driver 580.1, with other bytes");
  ConfirmedCode stranger = code("code", "580.1");
  stranger.sm = 86;
  EXPECT_EQ(ask(stranger, {&good}).familiarity, Familiarity::kUnknown);
  EXPECT_EQ(ask(stranger, {&good}).why, "neither its bytes nor its name are in a baseline for sm_86");
  EXPECT_EQ(ask(code("code", "580.1"), {}).familiarity, Familiarity::kUnknown);
}

// A cubin is what the file has; what a compiler made is not, whatever its K.
TEST_F(Residents, KOfACubinIsEnough) {
  Baseline files = make("files", {entry(cubin("one", {kernel("f", "code")}))});
  EXPECT_EQ(ask(code("code", "580.1", false), {&files}).familiarity, Familiarity::kKnown);
  EXPECT_EQ(ask(code("code", "", false), {&files}).familiarity, Familiarity::kKnown);
  EXPECT_EQ(ask(code("code", "580.1", true), {&files}).familiarity, Familiarity::kUnknown);
  EXPECT_EQ(ask(code("evil", "580.1", false), {&files}).familiarity, Familiarity::kUnknown);
}

TEST_F(Residents, DenialDecidesWhereverItStands) {
  Baseline good = make("good", {with_resident(entry(ptx("p")), "580.1", "code")});
  Baseline bad = make("bad", {with_resident(entry(ptx("p")), "570.0", "code")}, Stance::kDenied);
  Baseline bad_k = make("bad k", {entry(cubin("one", {kernel("f", "code")}))}, Stance::kDenied);
  for (Baseline* list : {&bad, &bad_k}) {
    EXPECT_EQ(ask(code("code", "580.1"), {&good, list}).familiarity, Familiarity::kDenied);
    EXPECT_EQ(ask(code("code", "580.1"), {list, &good}).familiarity, Familiarity::kDenied);
    EXPECT_EQ(ask(code("fine", "580.1"), {list}).familiarity, Familiarity::kUnknown);
  }
}

TEST_F(Residents, TheBestOfSeveralDecides) {
  Baseline old = make("old", {with_resident(entry(ptx("p")), "570.0", "code")});
  Baseline good = make("good", {with_resident(entry(ptx("p")), "580.1", "code")});
  EXPECT_EQ(ask(code("code", "580.1"), {&old, &good}).familiarity, Familiarity::kKnown);
  EXPECT_EQ(ask(code("code", "580.1"), {&good, &old}).baseline, "good");
  EXPECT_EQ(ask(code("code", "599.9"), {&old, &good}).familiarity, Familiarity::kOtherDriver);
}

}  // namespace
}  // namespace gpuwatch::judge
