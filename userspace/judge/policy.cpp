// SPDX-License-Identifier: Apache-2.0
#include "judge/policy.h"

namespace gpuwatch::judge {

using base::Code;
using base::Error;
using base::Result;

namespace {

constexpr std::size_t kLinesMax = 100'000;

std::string_view next_word(std::string_view& rest) {
  const std::size_t begin = rest.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) {
    rest = {};
    return {};
  }
  const std::size_t end = std::min(rest.find_first_of(" \t\r", begin), rest.size());
  const std::string_view word = rest.substr(begin, end - begin);
  rest = rest.substr(end);
  return word;
}

bool fits(const std::string& pattern, std::string_view value) {
  return pattern.empty() || (!value.empty() && pattern_fits(pattern, value));
}

}  // namespace

bool pattern_fits(std::string_view pattern, std::string_view text) {
  // The last star is the only place to come back to.
  std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Result<Policy> Policy::parse(std::string_view text, const std::string& name) {
  Policy policy;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view rest = text.substr(0, end);
    text = text.substr(std::min(end + 1, text.size()));
    const auto wrong = [&](const std::string& what) {
      return Error(Code::kBadInput, name + ":" + std::to_string(number) + ": " + what);
    };
    if (number > kLinesMax) return wrong("more than " + std::to_string(kLinesMax) + " lines");
    const std::string_view first = next_word(rest);
    if (first.empty() || first[0] == '#') continue;
    if (first != "jit") return wrong("a rule begins with jit, not '" + std::string(first) + "'");
    JitRule rule;
    rule.line = number;
    const std::string_view action = next_word(rest);
    if (action == "allow")
      rule.action = JitAction::kAllow;
    else if (action == "deny")
      rule.action = JitAction::kDeny;
    else if (action != "report")
      return wrong("what to do is allow, deny or report, not '" + std::string(action) + "'");
    for (std::string_view word = next_word(rest); !word.empty() && word[0] != '#'; word = next_word(rest)) {
      const std::size_t equals = word.find('=');
      const std::string_view key = word.substr(0, std::min(equals, word.size()));
      std::string* slot = key == "exe"      ? &rule.exe
                          : key == "image"  ? &rule.image
                          : key == "cgroup" ? &rule.cgroup
                                            : nullptr;
      if (slot == nullptr || equals == std::string_view::npos || equals + 1 == word.size())
        return wrong("'" + std::string(word) + "': want exe=, image= or cgroup= with a pattern");
      if (!slot->empty()) return wrong(std::string(key) + "= given twice");
      *slot = std::string(word.substr(equals + 1));
    }
    policy.rules_.push_back(std::move(rule));
  }
  return policy;
}

const JitRule* Policy::rule_for(const model::Actor& actor) const {
  for (const JitRule& rule : rules_)
    if (fits(rule.exe, actor.exe) && fits(rule.image, actor.image) && fits(rule.cgroup, actor.cgroup_path))
      return &rule;
  return nullptr;
}

}  // namespace gpuwatch::judge
