// SPDX-License-Identifier: Apache-2.0
// What is said of code in GPU memory, and how the bytes that belong there are
// made. Of bytes alone: no driver, no GPU.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "identify/digest.h"
#include "probe/identity.h"
#include "probe/locate.h"

namespace gpuwatch::probe {

enum class Verdict { kMatch, kMatchRelocated, kDiffer, kNotResident, kNotProbed };
const char* to_string(Verdict verdict);

// An instruction from sm_70 on, or what stands in its place.
struct CodeDifference {
  std::uint64_t offset = 0;  // multiple of 16
  std::vector<std::uint8_t> expected;
  std::vector<std::uint8_t> resident;
};
inline constexpr std::size_t kDifferencesMax = 16;

struct FunctionVerdict {
  std::string name;
  Verdict verdict = Verdict::kNotProbed;
  std::string reason;
  std::uint64_t bytes = 0;
  std::uint64_t address = 0;
  // With kDiffer: how many bytes, and the first units of 16 that hold them.
  std::uint64_t first_offset = 0;
  std::uint64_t different_bytes = 0;
  std::vector<CodeDifference> differences;
  std::size_t relocations = 0;
  std::size_t loader_changes = 0;  // instructions, see accept_loader_changes()
  std::size_t unchecked = 0;       // relocations whose value nothing but the code itself tells
  identify::Digest resident{};     // SHA-256 of the expected bytes that the GPU confirmed; zero without a match
  identify::Digest form{};         // the same of the form that does not depend on the place, see form_of()
  std::shared_ptr<const ImageIdentity> image;
};

// What is said of one module.
struct ModuleVerdict {
  std::vector<FunctionVerdict> functions;
  std::vector<FunctionVerdict> banks;  // constant banks 2 and 4, named as their sections
  std::uint64_t hashed_bytes = 0;
};

// Fills in first_offset, different_bytes and differences.
void tell_differences(identify::Bytes expected, identify::Bytes resident, FunctionVerdict& verdict);

// Where the functions of a module lie, by their sections.
using FunctionPlaces = std::map<std::uint32_t, std::uint64_t>;

// Makes the bytes expected of a function at its place: its relocations with
// `known` addresses of symbols, with `places` and those that the resident bytes
// tell, and what the loader changes. What contradicts the image becomes the
// verdict's reason. Without `places` a function may be called wherever its code is.
void settle_function(const Code& code, const Function& function, identify::Bytes resident,
                     const std::vector<Copy>& copies, const std::function<bool(std::uint64_t)>& mapped, Addresses known,
                     FunctionVerdict& verdict, std::vector<std::uint8_t>& expected,
                     const FunctionPlaces* places = nullptr);

}  // namespace gpuwatch::probe
