// SPDX-License-Identifier: Apache-2.0
#include "judge/resident.h"

#include <algorithm>
#include <set>

namespace gpuwatch::judge {

using base::Result;

namespace {

constexpr std::size_t kDriversNamed = 4;

std::string named(const Baseline& baseline, const char* kind) {
  return std::string(kind) + (baseline.label().empty() ? "" : " '" + std::string(baseline.label()) + "'");
}

std::string drivers_of(const std::vector<ResidentPlace>& places) {
  std::set<std::string> drivers;
  for (const ResidentPlace& place : places) drivers.insert(place.driver);
  std::string text = drivers.size() == 1 ? "driver " : "drivers ";
  std::size_t count = 0;
  for (const std::string& driver : drivers) {
    if (count++ == kDriversNamed) return text + " and others";
    text += (count == 1 ? "" : ", ") + driver;
  }
  return text;
}

bool has_driver(const std::vector<ResidentPlace>& places, const std::string& driver) {
  return !driver.empty() &&
         std::any_of(places.begin(), places.end(), [&](const ResidentPlace& place) { return place.driver == driver; });
}

}  // namespace

Result<ResidentJudgement> judge_resident(const ConfirmedCode& code, std::span<Baseline* const> baselines) {
  const std::string gpu = "sm_" + std::to_string(code.sm);
  ResidentJudgement out{Familiarity::kUnknown, "neither its bytes nor its name are in a baseline for " + gpu, {}};
  bool decided = false;
  const auto decide = [&](Familiarity familiarity, std::string why, const Baseline& baseline) {
    out = {familiarity, std::move(why), std::string(baseline.label())};
  };
  for (Baseline* baseline : baselines) {
    const bool denies = baseline->stance() == Stance::kDenied;
    auto places = baseline->residents_of_form(code.form, code.sm);
    if (!places) return std::move(places.error());
    Result<bool> has_k = false;
    if (code.k && (denies || !code.compiled)) has_k = baseline->has_k(*code.k);
    if (!has_k) return std::move(has_k.error());
    if (denies) {
      if (places->empty() && !*has_k) continue;
      decide(Familiarity::kDenied,
             (places->empty() ? "its code (K) is on " : "its bytes are on ") + named(*baseline, "the deny list"),
             *baseline);
      return out;
    }
    if (decided) continue;
    if (has_driver(*places, code.driver)) {
      decided = true;
      decide(Familiarity::kKnown,
             "its bytes are in " + named(*baseline, "the baseline") + " for driver " + code.driver + " and " + gpu,
             *baseline);
    } else if (*has_k) {
      decided = true;
      decide(Familiarity::kKnown, "its code (K) is in " + named(*baseline, "the baseline"), *baseline);
    } else if (!places->empty()) {
      decide(
          Familiarity::kOtherDriver,
          "its bytes are in " + named(*baseline, "the baseline") + " for " + drivers_of(*places) + ", not for this one",
          *baseline);
    } else if (out.familiarity == Familiarity::kUnknown && out.baseline.empty()) {
      auto others = baseline->residents_of_name(code.name, code.sm);
      if (!others) return std::move(others.error());
      if (others->empty()) continue;
      decide(Familiarity::kUnknown,
             named(*baseline, "the baseline") + " has its name for " +
                 (has_driver(*others, code.driver) ? "this driver" : drivers_of(*others)) + ", with other bytes",
             *baseline);
    }
  }
  return out;
}

}  // namespace gpuwatch::judge
