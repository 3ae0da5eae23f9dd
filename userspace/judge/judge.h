// SPDX-License-Identifier: Apache-2.0
// Judge: a module's fingerprint against baselines and a policy gives a verdict
// and the reason for it. Pure: the same input gives the same answer; it reads
// only what the baselines hold.
//
// Order, the first that holds:
//   denied         R, M, P or the K of a kernel is on a deny list
//   known          R is in a baseline
//   known-kernels  every kernel's K is in a baseline (PTX: its normal form is)
//   modified       a kernel has a known name and SM, another K, and the module
//                  belongs to the lineage of the module that has the name
//   jit            made at run time: PTX, or bytes that lie in no file; the
//                  policy may allow it, or turn it into denied
//   unknown        none of these
//
// Lineage. Modules are of one lineage when they are builds of the same source:
// for another SM, by another compiler, or changed. Names of entry functions
// are what survives all three, so: the same lineage has the same set of names;
// a sibling has at least half of the names of the larger set in common. A
// module with one kernel is therefore of the lineage of every module that has
// that kernel alone. Kernels that a baseline has from run-time compilation are
// left out: generators give the same name to different code all the time.
#pragma once

#include <span>

#include "judge/lookup.h"
#include "judge/policy.h"
#include "model/actor.h"
#include "model/verdict.h"

namespace gpuwatch::judge {

struct JudgeOptions {
  bool explain = false;  // fill in Judgement::differences
};

// `baselines` may hold known ones and deny lists in any order.
base::Result<model::Judgement> judge(const model::ModulePrint& module, const model::Actor& actor,
                                     std::span<Lookup* const> baselines, const Policy& policy,
                                     const JudgeOptions& options = {});

// Code whose bytes were not seen; `reason` completes "not verified: ".
model::Judgement unverified(std::string reason);

// The one that decides about several modules of one image: the worst.
const model::Judgement* worst_of(std::span<const model::Judgement> judgements);

enum class Kinship { kNone, kSibling, kSame };
// Of two sorted sets of names.
Kinship kinship_of(std::span<const std::string> a, std::span<const std::string> b);

// What tells two builds of a kernel apart, as far as fingerprints show it.
std::vector<model::Difference> differences_of(const model::KernelPrint& baseline, const model::KernelPrint& seen);

}  // namespace gpuwatch::judge
