// SPDX-License-Identifier: Apache-2.0
// What to make of code that was compiled at run time: rules by who ran it. One
// rule a line, the first that fits decides, none means "report":
//
//   # comment
//   jit allow  exe=/usr/bin/python3*  image=registry.example/train*
//   jit deny   cgroup=/kubepods.slice/*
//   jit report
//
// Keys: exe (path of the executable), image (name of the container's image),
// cgroup (its path). `*` stands for any characters, `?` for one; every key of a
// rule must fit, and a value that is not known fits none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/actor.h"

namespace gpuwatch::judge {

enum class JitAction { kReport, kAllow, kDeny };

struct JitRule {
  JitAction action = JitAction::kReport;
  std::string exe;  // patterns; empty: anything
  std::string image;
  std::string cgroup;
  std::size_t line = 0;
};

class Policy {
 public:
  // Errors name the line; `name` is the file's.
  static base::Result<Policy> parse(std::string_view text, const std::string& name);

  bool empty() const { return rules_.empty(); }

  // The rule that decides for this actor, or nullptr.
  const JitRule* rule_for(const model::Actor& actor) const;

 private:
  std::vector<JitRule> rules_;
};

// Shell-like, over the whole text; linear in the product of the lengths.
bool pattern_fits(std::string_view pattern, std::string_view text);

}  // namespace gpuwatch::judge
