// SPDX-License-Identifier: Apache-2.0
// Loads one module and says for each of its functions whether the bytes in the
// code heap are the ones that file and relocations call for: hashed in place on
// the GPU, twice, with a refresh of instruction caches around and between.
#pragma once

#include <functional>
#include <memory>

#include "probe/banks.h"
#include "probe/code.h"
#include "probe/identity.h"
#include "probe/images.h"
#include "probe/session.h"

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
  std::size_t unchecked = 0;       // relocations whose value nothing tells
  identify::Digest resident{};     // SHA-256 of the expected bytes that the GPU confirmed; zero without a match
  identify::Digest form{};         // the same of the form that does not depend on the place, see form_of()
  std::shared_ptr<const ImageIdentity> image;
};

struct ModuleVerdict {
  std::vector<FunctionVerdict> functions;
  std::vector<FunctionVerdict> banks;  // constant banks 2 and 4, named as their sections
  std::uint64_t hashed_bytes = 0;
  float gpu_ms = 0;  // of one reading
};

// Fills in first_offset, different_bytes and differences.
void tell_differences(const std::vector<std::uint8_t>& expected, const std::vector<std::uint8_t>& resident,
                      FunctionVerdict& verdict);

// Makes the bytes expected of a function at its place: its relocations with
// `known` addresses of symbols and those that the resident bytes tell, and what
// the loader changes. What contradicts the image becomes the verdict's reason.
void settle_function(const Code& code, const Function& function, identify::Bytes resident,
                     const std::vector<Copy>& copies, const std::function<bool(std::uint64_t)>& mapped, Addresses known,
                     FunctionVerdict& verdict, std::vector<std::uint8_t>& expected);

class ImageProbe {
 public:
  using NonceSource = std::function<Nonce()>;
  ImageProbe(Session& session, NonceSource nonces) : session_(session), nonces_(std::move(nonces)) {}
  ~ImageProbe();
  ImageProbe(const ImageProbe&) = delete;
  ImageProbe& operator=(const ImageProbe&) = delete;

  // PTX is compiled by the driver first; what it makes of it is what is expected.
  Failure load(const LoadableImage& image);
  // Only the function `kernel`, if not empty.
  Failure check(const std::string& kernel, ModuleVerdict& out);
  // Overwrites the code that check() found, so that it can't be taken for code of
  // a later module, and unloads. The module is not to be run any more.
  Failure unload();

  CuModule module() const { return module_; }
  const Code& code() const { return code_; }

 private:
  Failure read_heap(std::vector<Copy>& out);
  Addresses globals_of(const std::vector<Relocation>& relocations) const;
  struct Wanted {
    FunctionVerdict verdict;
    std::vector<std::uint8_t> expected;
    bool bank = false;
  };
  void want_banks(const std::string& kernel, const std::vector<Copy>& copies, const std::vector<Place>& places,
                  std::vector<Wanted>& out);

  Session& session_;
  NonceSource nonces_;
  CuModule module_ = nullptr;
  Code code_;
  std::vector<Bank> banks_;
  std::shared_ptr<const ImageIdentity> identity_;
  std::vector<Copy> before_;  // the heap before the module was loaded
  std::vector<Span> found_;
};

}  // namespace gpuwatch::probe
