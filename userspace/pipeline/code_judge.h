// SPDX-License-Identifier: Apache-2.0
// CodeJudge: what baselines and policy say of a load, as one verdict about the
// image: the worst of the modules that the driver could take. One thread at a
// time; it reads no image.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "judge/judge.h"
#include "model/actor.h"
#include "pipeline/code_prints.h"
#include "pipeline/code_watch.h"

namespace gpuwatch::pipeline {

// Of an actor what rules ask for, kept beyond the actor's own life.
struct CodeActor {
  CodeActor() = default;
  explicit CodeActor(const model::Actor& actor) : exe(actor.exe), image(actor.image), cgroup_path(actor.cgroup_path) {}
  model::Actor view() const;

  std::string exe;
  std::string image;
  std::string cgroup_path;
};

struct CodeVerdict {
  model::Judgement judgement;
  std::vector<model::ModuleLine> lines;
  std::size_t deciding = 0;
  bool judged = false;  // there was a baseline or a policy
  std::string name;     // of the image: as the compiler called it, else its first kernel, else the file
};

struct CodeJudgeOptions {
  std::optional<std::uint32_t> sm;  // of the device; absent: not known
  bool explain = false;
};

class CodeJudge {
 public:
  CodeJudge(CodeJudgeOptions options, Baselines baselines, judge::Policy policy)
      : options_(options), baselines_(std::move(baselines)), policy_(std::move(policy)) {}

  CodeVerdict judge(const CodeLoad& load, const CodeActor& actor);
  bool judges() const { return !baselines_.empty() || !policy_.empty(); }
  // Of a baseline that could not be read; empty: none.
  const std::string& trouble() const { return trouble_; }

 private:
  model::Judgement judge_module(const CodeModule& module, const model::Actor& actor);

  CodeJudgeOptions options_;
  Baselines baselines_;
  judge::Policy policy_;
  std::string trouble_;
};

// Nothing to look into: known, or made at run time and allowed by a rule.
bool is_fine(const model::Judgement& judgement);

}  // namespace gpuwatch::pipeline
