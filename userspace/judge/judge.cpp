// SPDX-License-Identifier: Apache-2.0
#include "judge/judge.h"

#include <algorithm>
#include <map>

namespace gpuwatch::judge {

using base::Result;
using model::CodeKind;
using model::CodeOrigin;
using model::Difference;
using model::Judgement;
using model::KernelPrint;
using model::ModulePrint;
using model::Verdict;

namespace {

constexpr std::size_t kDifferencesMax = 1000;

std::string count_of(std::size_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

// "libcublas13 13.0.0-1 (dpkg)", else the file.
std::string source_text(const Entry& entry) {
  if (entry.sources.empty()) return {};
  const Source& source = entry.sources.front();
  if (source.package.empty()) return source.path;
  return source.package + (source.version.empty() ? "" : " " + source.version) + " (" + source.manager + ")";
}

std::string from(const Entry& entry) {
  const std::string text = source_text(entry);
  return text.empty() ? "" : ", from " + text;
}

// Labels are optional.
std::string named(const std::string& kind, const Lookup& list) {
  return list.label().empty() ? "the " + kind : kind + " '" + std::string(list.label()) + "'";
}

std::vector<std::string> entry_names(const ModulePrint& module) {
  std::vector<std::string> names;
  for (const KernelPrint& kernel : module.kernels)
    if (kernel.entry) names.push_back(kernel.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Judgement found(Verdict verdict, std::string why, const Lookup& baseline, std::string source) {
  Judgement judgement;
  judgement.verdict = verdict;
  judgement.why = std::move(why);
  judgement.baseline = std::string(baseline.label());
  judgement.source = std::move(source);
  return judgement;
}

using MaybeJudgement = Result<std::optional<Judgement>>;

MaybeJudgement judge_denied(const ModulePrint& module, Lookup& list) {
  auto entry = list.by_r(module.r);
  if (!entry) return std::move(entry.error());
  std::string how = "its bytes (R) are";
  if (!*entry && module.m) {
    entry = list.by_m(*module.m);
    how = "its module hash (M) is";
  }
  if (entry.ok() && !*entry && module.p) {
    entry = list.by_p(*module.p);
    how = "its PTX, normalised (P), is";
  }
  if (!entry) return std::move(entry.error());
  if (*entry)
    return std::optional(
        found(Verdict::kDenied, how + " on " + named("deny list", list) + from(**entry), list, source_text(**entry)));
  for (const KernelPrint& kernel : module.kernels) {
    auto place = list.place_of_k(kernel.k);
    if (!place) return std::move(place.error());
    if (!*place) continue;
    return std::optional(found(Verdict::kDenied,
                               "kernel " + kernel.name + " (K) is on " + named("deny list", list) +
                                   ((*place)->kernel.name == kernel.name ? "" : " as " + (*place)->kernel.name),
                               list, ""));
  }
  return std::optional<Judgement>();
}

MaybeJudgement judge_known(const ModulePrint& module, Lookup& baseline) {
  auto entry = baseline.by_r(module.r);
  if (!entry) return std::move(entry.error());
  if (!*entry) return std::optional<Judgement>();
  return std::optional(found(Verdict::kKnown, "these bytes (R) are in " + named("baseline", baseline) + from(**entry),
                             baseline, source_text(**entry)));
}

// The first baseline that has each kernel's K; nullptr: none has it.
Result<std::vector<Lookup*>> seen_kernels(const ModulePrint& module, std::span<Lookup* const> baselines) {
  std::vector<Lookup*> seen(module.kernels.size(), nullptr);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    for (Lookup* baseline : baselines) {
      auto has = baseline->has_k(module.kernels[i].k);
      if (!has) return std::move(has.error());
      if (!*has) continue;
      seen[i] = baseline;
      break;
    }
  }
  return seen;
}

MaybeJudgement judge_kernels(const ModulePrint& module, std::span<Lookup* const> baselines,
                             const std::vector<Lookup*>& seen) {
  for (Lookup* baseline : baselines) {
    std::optional<Entry> twin;
    if (module.m || module.p) {
      auto entry = module.m ? baseline->by_m(*module.m) : baseline->by_p(*module.p);
      if (!entry) return std::move(entry.error());
      twin = std::move(*entry);
    }
    if (twin)
      return std::optional(found(Verdict::kKnownKernels,
                                 std::string(module.m ? "same module (M) as in " : "same PTX (P) as in ") +
                                     named("baseline", *baseline) + from(*twin) + "; other bytes outside of " +
                                     (module.m ? "code and data" : "instructions"),
                                 *baseline, source_text(*twin)));
  }
  if (module.kernels.empty() || std::find(seen.begin(), seen.end(), nullptr) != seen.end())
    return std::optional<Judgement>();
  return std::optional(found(Verdict::kKnownKernels,
                             "new module, and each of its " + count_of(module.kernels.size(), "kernel") +
                                 " (K) is in a baseline; its data and their order are new",
                             *seen.front(), ""));
}

// The place among `places` that makes `kernel` a modified one.
Result<const KernelPlace*> modified_from(const std::vector<KernelPlace>& places, const KernelPrint& kernel,
                                         const std::vector<std::string>& names, Lookup& baseline,
                                         std::map<std::int64_t, Kinship>& known) {
  for (const KernelPlace& place : places) {
    if (place.origin != CodeOrigin::kFile || place.kernel.entry != kernel.entry) continue;
    auto at = known.find(place.module);
    if (at == known.end()) {
      auto theirs = baseline.names_of(place.module);
      if (!theirs) return std::move(theirs.error());
      at = known.emplace(place.module, kinship_of(names, *theirs)).first;
    }
    if (at->second != Kinship::kNone) return &place;
  }
  return static_cast<const KernelPlace*>(nullptr);
}

// `seen`: a kernel that some baseline has as it is was not modified, whatever
// other versions are known.
MaybeJudgement judge_modified(const ModulePrint& module, Lookup& baseline, const std::vector<Lookup*>& seen,
                              const JudgeOptions& options) {
  const std::vector<std::string> names = entry_names(module);
  std::map<std::int64_t, Kinship> known;
  std::optional<Judgement> judgement;
  std::size_t changed = 0;
  std::int64_t their_module = 0;
  for (std::size_t i = 0; i < module.kernels.size(); ++i) {
    const KernelPrint& kernel = module.kernels[i];
    if (seen[i] != nullptr) continue;
    auto places = baseline.by_name(kernel.name, module.sm);
    if (!places) return std::move(places.error());
    auto place = modified_from(*places, kernel, names, baseline, known);
    if (!place) return std::move(place.error());
    if (*place == nullptr) continue;
    ++changed;
    if (!judgement) {
      their_module = (*place)->module;
      judgement = found(Verdict::kModified, kernel.name, baseline, "");
    }
    if (options.explain && judgement->differences.size() < kDifferencesMax)
      for (Difference& difference : differences_of((*place)->kernel, kernel))
        judgement->differences.push_back(std::move(difference));
  }
  if (!judgement) return std::optional<Judgement>();
  auto theirs = baseline.by_id(their_module);
  if (!theirs) return std::move(theirs.error());
  judgement->source = *theirs ? source_text(**theirs) : "";
  judgement->why = "kernel " + judgement->why + (changed > 1 ? " and " + count_of(changed - 1, "other") : "") +
                   ": known by name in " + named("baseline", baseline) + (*theirs ? from(**theirs) : "") +
                   ", with other code (K)";
  if (options.explain && *theirs && module.d && (*theirs)->module.d && *module.d != *(*theirs)->module.d)
    judgement->differences.push_back({"", ".nv.constant*, .nv.global*", "module data (D)",
                                      model::hex_of(*(*theirs)->module.d), model::hex_of(*module.d)});
  return judgement;
}

std::optional<Judgement> judge_jit(const ModulePrint& module, const model::Actor& actor, const Policy& policy) {
  if (module.kind != CodeKind::kPtx && module.origin != CodeOrigin::kMemory) return std::nullopt;
  const std::string what = module.kind == CodeKind::kPtx ? "PTX, compiled by the driver at load"
                                                         : "made at run time: its bytes lie in no file";
  Judgement judgement;
  judgement.verdict = Verdict::kJit;
  judgement.why = what;
  const JitRule* rule = policy.rule_for(actor);
  if (rule == nullptr) return judgement;
  const std::string place = "line " + std::to_string(rule->line) + " of the policy";
  if (rule->action == JitAction::kDeny) {
    judgement.verdict = Verdict::kDenied;
    judgement.why += "; refused by " + place;
  } else if (rule->action == JitAction::kAllow) {
    judgement.allowed = true;
    judgement.why += "; allowed by " + place;
  }
  return judgement;
}

void add_difference(std::vector<Difference>& out, const std::string& kernel, const std::string& section,
                    const std::string& what, std::uint64_t baseline, std::uint64_t seen) {
  if (baseline != seen) out.push_back({kernel, section, what, std::to_string(baseline), std::to_string(seen)});
}

}  // namespace

Kinship kinship_of(std::span<const std::string> a, std::span<const std::string> b) {
  if (a.empty() || b.empty()) return Kinship::kNone;
  if (std::equal(a.begin(), a.end(), b.begin(), b.end())) return Kinship::kSame;
  std::size_t common = 0;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    if (*i < *j) {
      ++i;
    } else if (*j < *i) {
      ++j;
    } else {
      ++common;
      ++i;
      ++j;
    }
  }
  return 2 * common >= std::max(a.size(), b.size()) ? Kinship::kSibling : Kinship::kNone;
}

std::vector<Difference> differences_of(const KernelPrint& baseline, const KernelPrint& seen) {
  std::vector<Difference> out;
  if (baseline.k == seen.k) return out;
  const std::string text = ".text." + seen.name;
  const std::string info = ".nv.info." + seen.name;
  if (baseline.t != seen.t) out.push_back({seen.name, text, "code", model::hex_of(baseline.t), model::hex_of(seen.t)});
  add_difference(out, seen.name, text, "code bytes", baseline.code_bytes, seen.code_bytes);
  add_difference(out, seen.name, info, "registers", baseline.registers, seen.registers);
  add_difference(out, seen.name, ".nv.shared." + seen.name, "shared bytes", baseline.shared_bytes, seen.shared_bytes);
  add_difference(out, seen.name, info, "barriers", baseline.barriers, seen.barriers);
  if (out.empty())
    out.push_back({seen.name, info + ", .nv.constant*." + seen.name + ", relocations",
                   "attributes, constants or relocations: the code is the same", model::hex_of(baseline.k),
                   model::hex_of(seen.k)});
  return out;
}

Result<Judgement> judge(const ModulePrint& module, const model::Actor& actor, std::span<Lookup* const> baselines,
                        const Policy& policy, const JudgeOptions& options) {
  std::vector<Lookup*> known;
  for (Lookup* baseline : baselines) {
    if (baseline->stance() == Stance::kKnown) {
      known.push_back(baseline);
      continue;
    }
    auto denied = judge_denied(module, *baseline);
    if (!denied) return std::move(denied.error());
    if (*denied) return std::move(**denied);
  }
  for (Lookup* baseline : known) {
    auto same = judge_known(module, *baseline);
    if (!same) return std::move(same.error());
    if (*same) return std::move(**same);
  }
  auto seen = seen_kernels(module, known);
  if (!seen) return std::move(seen.error());
  auto kernels = judge_kernels(module, known, *seen);
  if (!kernels) return std::move(kernels.error());
  if (*kernels) return std::move(**kernels);
  for (Lookup* baseline : known) {
    auto modified = judge_modified(module, *baseline, *seen, options);
    if (!modified) return std::move(modified.error());
    if (*modified) return std::move(**modified);
  }
  if (auto jit = judge_jit(module, actor, policy)) return std::move(*jit);
  Judgement unknown;
  unknown.why = known.empty() ? "no baseline to compare with" : "neither its bytes nor its kernels are in a baseline";
  return unknown;
}

Judgement unverified(std::string reason) {
  Judgement judgement;
  judgement.verdict = Verdict::kUnverified;
  judgement.why = "not verified: " + std::move(reason);
  return judgement;
}

const Judgement* worst_of(std::span<const Judgement> judgements) {
  const auto worst = std::max_element(judgements.begin(), judgements.end(),
                                      [](const Judgement& a, const Judgement& b) { return a.verdict < b.verdict; });
  return worst == judgements.end() ? nullptr : &*worst;
}

}  // namespace gpuwatch::judge
