// SPDX-License-Identifier: Apache-2.0
// Verdict: what judge makes of a module, worst last, with the reason in one
// line and the differences behind it. Passive; texts may hold names from the
// module and are escaped by whoever prints them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwatch::model {

enum class Verdict : std::uint8_t {
  kKnown,         // these very bytes are in a baseline
  kKnownKernels,  // new module, every kernel of it is in a baseline
  kJit,           // made at run time; the policy decides
  kUnverified,    // there is code, and its bytes were not seen
  kUnknown,       // nothing of it is in a baseline
  kModified,      // a known kernel of a known module, with other code
  kDenied,        // on a deny list, or refused by the policy
};
inline constexpr std::size_t kVerdicts = 7;

constexpr std::string_view verdict_name(Verdict verdict) {
  constexpr std::string_view kNames[kVerdicts] = {"known",   "known-kernels", "jit",   "unverified",
                                                  "unknown", "modified",      "denied"};
  return kNames[static_cast<std::size_t>(verdict)];
}

struct Difference {
  std::string kernel;   // mangled name; empty: of the module as a whole
  std::string section;  // ".text.NAME", ".nv.info", ...
  std::string what;     // "registers", "code", "module data", ...
  std::string baseline;
  std::string seen;
};

struct Judgement {
  Verdict verdict = Verdict::kUnknown;
  std::string why;
  std::string baseline;  // label of the baseline that decided; empty: none did
  std::string source;    // where the baseline has it from: package or file
  std::vector<Difference> differences;
  bool allowed = false;  // jit: the policy says so explicitly
};

}  // namespace gpuwatch::model
