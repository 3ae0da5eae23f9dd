// SPDX-License-Identifier: Apache-2.0
#include "judge/policy.h"

#include <gtest/gtest.h>

namespace gpuwatch::judge {
namespace {

TEST(Pattern, Fits) {
  struct Case {
    const char* pattern;
    const char* text;
    bool fits;
  };
  const Case cases[] = {{"", "", true},           {"*", "", true},
                        {"a", "a", true},         {"a", "ab", false},
                        {"a*", "abc", true},      {"*c", "abc", true},
                        {"a*c", "abbbc", true},   {"a*c", "abbb", false},
                        {"a?c", "abc", true},     {"a?c", "ac", false},
                        {"**", "x", true},        {"*a*b*", "xaxbx", true},
                        {"*a*b*", "xbxa", false}, {"/usr/*/x", "/usr/a/b/x", true}};
  for (const Case& c : cases) EXPECT_EQ(pattern_fits(c.pattern, c.text), c.fits) << c.pattern << " " << c.text;
}

TEST(Pattern, ManyStarsAreNotSlow) {
  std::string pattern, text(100'000, 'a');
  for (int i = 0; i < 50; ++i) pattern += "*a";
  EXPECT_FALSE(pattern_fits(pattern + "b", text));
}

TEST(Policy, FirstRuleThatFits) {
  auto policy = Policy::parse("# who may\n\njit report exe=/a image=x*  # both\njit allow exe=/a\n  jit deny\n", "p");
  ASSERT_TRUE(policy.ok()) << policy.error().message();
  model::Actor actor;
  actor.exe = "/a";
  EXPECT_EQ(policy->rule_for(actor)->line, 4u);
  actor.image = "xyz";
  EXPECT_EQ(policy->rule_for(actor)->line, 3u);
  actor.exe = "/b";
  EXPECT_EQ(policy->rule_for(actor)->action, JitAction::kDeny);
  EXPECT_EQ(Policy::parse("", "p")->rule_for(actor), nullptr);
}

TEST(Policy, ErrorsNameTheLine) {
  struct Case {
    const char* text;
    const char* expect;
  };
  const Case cases[] = {{"jit", "p:1: what to do is allow, deny or report, not ''"},
                        {"\nallow", "p:2: a rule begins with jit, not 'allow'"},
                        {"jit permit", "not 'permit'"},
                        {"jit deny exe", "'exe': want exe=, image= or cgroup= with a pattern"},
                        {"jit deny exe=", "'exe=': want"},
                        {"jit deny user=0", "'user=0': want"},
                        {"jit deny exe=a exe=b", "exe= given twice"}};
  for (const Case& c : cases) {
    const auto policy = Policy::parse(c.text, "p");
    ASSERT_FALSE(policy.ok()) << c.text;
    EXPECT_NE(policy.error().message().find(c.expect), std::string::npos) << policy.error().message();
  }
}

}  // namespace
}  // namespace gpuwatch::judge
