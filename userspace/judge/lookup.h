// SPDX-License-Identifier: Apache-2.0
// What a verdict asks of a baseline. An interface, so that judging can be
// tested against tables in memory; baseline.h answers it from a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "model/fingerprint.h"

namespace gpuwatch::judge {

// What being in a baseline says of a module.
enum class Stance : std::uint8_t { kKnown, kDenied };

constexpr std::string_view stance_name(Stance stance) {
  return stance == Stance::kKnown ? "known" : "denied";
}

// Where a module was found when it was added.
struct Source {
  std::string path;
  std::string manager;  // "dpkg", "rpm", "pip"; empty: no package is known
  std::string package;
  std::string version;
  std::string label;
  std::int64_t added_unix = 0;
  std::uint64_t container_offset = 0;
  std::uint32_t entry = 0;

  auto key() const { return std::tie(path, manager, package, version, label); }
  bool operator==(const Source&) const = default;
};

// What a function of a module was on a GPU: confirmed there byte for byte by a
// probe, under a driver, for an SM. `form` does not depend on where it lay.
struct Resident {
  std::string name;  // mangled
  std::string driver;
  std::uint32_t sm = 0;
  model::Digest form{};
  std::uint64_t bytes = 0;
  // Of what the driver's compiler made of PTX; a cubin's are its module's.
  std::optional<model::Digest> k, t;

  auto key() const { return std::tie(name, driver, sm, form); }
  bool operator==(const Resident&) const = default;
};

struct Entry {
  model::ModulePrint module;
  std::vector<Source> sources;
  std::vector<Resident> residents;  // mostly none
  bool operator==(const Entry&) const = default;
};

struct KernelPlace {
  std::int64_t module = 0;
  model::CodeOrigin origin = model::CodeOrigin::kFile;
  std::uint32_t sm = 0;
  model::KernelPrint kernel;
};

class Lookup {
 public:
  virtual ~Lookup() = default;
  virtual Stance stance() const = 0;
  virtual std::string_view label() const = 0;
  virtual base::Result<std::optional<Entry>> by_r(const model::Digest& r) = 0;
  virtual base::Result<std::optional<Entry>> by_m(const model::Digest& m) = 0;
  virtual base::Result<std::optional<Entry>> by_p(const model::Digest& p) = 0;
  virtual base::Result<bool> has_k(const model::Digest& k) = 0;
  virtual base::Result<std::optional<KernelPlace>> place_of_k(const model::Digest& k) = 0;
  // Kernels of that name for that SM, at most a hundred.
  virtual base::Result<std::vector<KernelPlace>> by_name(std::string_view name, std::uint32_t sm) = 0;
  // Names of a module's entry functions, sorted, each once.
  virtual base::Result<std::vector<std::string>> names_of(std::int64_t module) = 0;
  virtual base::Result<std::optional<Entry>> by_id(std::int64_t module) = 0;
};

}  // namespace gpuwatch::judge
