// SPDX-License-Identifier: Apache-2.0
// `gpuwatch doctor`: prints the checks of doctor.h, one line each.
#include "cli/doctor.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace gpuwatch::cli {

namespace {

std::string_view word_for(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kNote:
      return "note";
    default:
      return "problem";
  }
}

void print_text(std::string& out, const Check& check) {
  const std::string_view word = word_for(check.verdict);
  out += word;
  out.append(9 - word.size(), ' ');
  out += check.layer + " (" + check.checked + "): ";
  base::append_escaped(out, check.found);
  if (!check.remedy.empty()) {
    out += "; ";
    base::append_escaped(out, check.remedy);
  }
  out += '\n';
}

void print_json(std::string& out, const Check& check) {
  out += nlohmann::json{{"layer", check.layer},
                        {"checked", base::to_utf8(check.checked)},
                        {"found", base::to_utf8(check.found)},
                        {"verdict", word_for(check.verdict)},
                        {"remedy", base::to_utf8(check.remedy)}}
             .dump() +
         "\n";
}

}  // namespace

base::Result<int> run_doctor(const Flags& flags) {
  Output output;
  const std::vector<Check> checks = examine();
  for (const Check& check : checks) (flags.has("json") ? print_json : print_text)(output.buffer(), check);
  if (base::Status status = output.flush(); !status.ok()) return std::move(status.error());
  const bool problem =
      std::any_of(checks.begin(), checks.end(), [](const Check& check) { return check.verdict == Verdict::kProblem; });
  return problem ? kExitFinding : kExitOk;
}

}  // namespace gpuwatch::cli
