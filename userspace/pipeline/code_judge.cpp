// SPDX-License-Identifier: Apache-2.0
#include "pipeline/code_judge.h"

#include <algorithm>

namespace gpuwatch::pipeline {

using model::CodeKind;
using model::Judgement;
using model::Verdict;

namespace {

bool is_for(const model::ModulePrint& print, std::uint32_t sm) {
  return print.kind == CodeKind::kElf && print.sm == sm;
}

// What the driver takes of an image: cubins for exactly this device, else any
// cubins, else PTX. Without `sm` the device is not known: all cubins.
std::vector<std::size_t> candidates_of(const std::vector<CodeModule>& modules, std::optional<std::uint32_t> sm) {
  std::vector<std::size_t> exact, elf, all;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    all.push_back(i);
    if (modules[i].print.kind == CodeKind::kElf) elf.push_back(i);
    if (sm && is_for(modules[i].print, *sm)) exact.push_back(i);
  }
  return !exact.empty() ? exact : !elf.empty() ? elf : all;
}

std::string name_of(const CodeLoad& load, std::size_t deciding) {
  if (deciding < load.modules.size()) {
    const CodeModule& module = load.modules[deciding];
    if (!module.identifier.empty()) return module.identifier;
    for (const model::KernelPrint& kernel : module.print.kernels)
      if (kernel.entry) return kernel.name;
    if (!module.print.kernels.empty()) return module.print.kernels.front().name;
  }
  return load.path.substr(load.path.rfind('/') + 1);
}

}  // namespace

model::Actor CodeActor::view() const {
  model::Actor actor;
  actor.exe = exe;
  actor.image = image;
  actor.cgroup_path = cgroup_path;
  return actor;
}

bool is_fine(const Judgement& judgement) {
  return judgement.verdict == Verdict::kKnown || judgement.verdict == Verdict::kKnownKernels ||
         (judgement.verdict == Verdict::kJit && judgement.allowed);
}

Judgement CodeJudge::judge_module(const CodeModule& module, const model::Actor& actor) {
  if (!module.error.empty()) return judge::unverified("damaged code: " + module.error);
  auto judged = judge::judge(module.print, actor, baselines_.lookups(), policy_, {.explain = options_.explain});
  if (judged) return std::move(*judged);
  trouble_ = judged.error().message();
  return judge::unverified("a baseline cannot be read");
}

CodeVerdict CodeJudge::judge(const CodeLoad& load, const CodeActor& actor) {
  CodeVerdict verdict;
  verdict.judged = judges();
  const model::Actor view = actor.view();
  std::vector<Judgement> judgements(load.modules.size());
  for (std::size_t i = 0; i < load.modules.size(); ++i) {
    if (verdict.judged) judgements[i] = judge_module(load.modules[i], view);
    const model::ModulePrint& print = load.modules[i].print;
    verdict.lines.push_back(
        {print.kind, print.sm, print.sm_suffix, print.kernels.size(), print.r, print.m, judgements[i].verdict});
  }
  const std::vector<std::size_t> candidates = candidates_of(load.modules, options_.sm);
  if (candidates.empty()) {
    verdict.judgement = judge::unverified(load.problem.empty() ? "no GPU code in the image" : load.problem);
  } else {
    verdict.deciding = *std::max_element(candidates.begin(), candidates.end(), [&](std::size_t a, std::size_t b) {
      return judgements[a].verdict < judgements[b].verdict;
    });
    verdict.judgement = std::move(judgements[verdict.deciding]);
    // Something of the image was not seen: what was seen cannot vouch for it.
    if (verdict.judged && !load.problem.empty() && verdict.judgement.verdict < Verdict::kUnverified)
      verdict.judgement = judge::unverified(load.problem);
  }
  if (load.read_file && load.problem.empty())
    verdict.judgement.why += " (the file as it was read a moment after the call)";
  verdict.name = name_of(load, verdict.deciding);
  return verdict;
}

}  // namespace gpuwatch::pipeline
