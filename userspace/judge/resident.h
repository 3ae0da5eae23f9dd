// SPDX-License-Identifier: Apache-2.0
// Is a function that a probe confirmed in GPU memory one that somebody vouched
// for? Pure, as judge.h: it reads only what the baselines hold.
//
//   denied        its form, or its K, is on a deny list
//   known         its form is stored for this driver and SM; or it is of a cubin
//                 whose K is in a baseline: a loader does not compile
//   other-driver  its form is stored, for other drivers only: the same bytes
//   unknown       none of these
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "judge/baseline.h"

namespace gpuwatch::judge {

enum class Familiarity : std::uint8_t { kKnown, kOtherDriver, kUnknown, kDenied };
inline constexpr std::size_t kFamiliarities = 4;

constexpr std::string_view familiarity_name(Familiarity familiarity) {
  constexpr std::string_view kNames[kFamiliarities] = {"known", "other-driver", "unknown", "denied"};
  return kNames[static_cast<std::size_t>(familiarity)];
}

struct ConfirmedCode {
  std::string name;    // mangled
  std::string driver;  // empty: not known, so that none is this one
  std::uint32_t sm = 0;
  bool compiled = false;  // by the driver, of PTX
  model::Digest form{};
  std::optional<model::Digest> k;
};

struct ResidentJudgement {
  Familiarity familiarity = Familiarity::kUnknown;
  std::string why;
  std::string baseline;  // label of the one that decided
};

base::Result<ResidentJudgement> judge_resident(const ConfirmedCode& code, std::span<Baseline* const> baselines);

}  // namespace gpuwatch::judge
