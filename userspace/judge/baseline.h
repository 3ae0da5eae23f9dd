// SPDX-License-Identifier: Apache-2.0
// Baseline: the modules and kernels that somebody vouched for, or, as a deny
// list, warned of. One SQLite file, readable while another program writes. It
// stores and finds; what a find means is said by judge.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "judge/lookup.h"
#include "model/fingerprint.h"

namespace gpuwatch::judge {

class Database;

struct BaselineInfo {
  Stance stance = Stance::kKnown;
  std::string label;
  std::int64_t created_unix = 0;
  bool operator==(const BaselineInfo&) const = default;
};

struct BaselineCounts {
  std::uint64_t modules = 0;
  std::uint64_t kernels = 0;
  std::uint64_t names = 0;
  std::uint64_t files = 0;
  std::uint64_t residents = 0;
};

// What is stored of a resident function's form, or of others of its name.
struct ResidentPlace {
  std::string driver;
  model::Digest form{};
  std::int64_t module = 0;
};

// A signature over the digest of all contents, see sign.h.
struct StoredSignature {
  std::string public_key;  // 64 hexadecimal digits
  std::string value;       // 128
};

class Baseline final : public Lookup {
 public:
  enum class Access { kRead, kWrite };
  static base::Result<Baseline> open(const std::string& path, Access access);
  // Opens it for writing, and makes it first where there is none. An existing
  // one must have the same stance.
  static base::Result<Baseline> open_or_make(const std::string& path, const BaselineInfo& info);
  Baseline(Baseline&&) noexcept;
  Baseline& operator=(Baseline&&) noexcept;
  ~Baseline() override;

  const BaselineInfo& info() const;
  const std::string& path() const;
  base::Result<BaselineCounts> counts();

  // All or nothing. A module that is there gets the new sources and residents. A
  // signature is dropped: it was over other contents. Gives the number of new modules.
  base::Result<std::uint64_t> add(std::span<const Entry> entries);

  // Every entry, in the one order that contents have: by R; its kernels by
  // name and K, its sources and residents by all their fields.
  base::Status for_each(const std::function<base::Status(const Entry&)>& visit);

  // At most a hundred; under any driver.
  base::Result<std::vector<ResidentPlace>> residents_of_form(const model::Digest& form, std::uint32_t sm);
  base::Result<std::vector<ResidentPlace>> residents_of_name(std::string_view name, std::uint32_t sm);

  base::Result<std::optional<StoredSignature>> signature();
  base::Status set_signature(const StoredSignature& signature);

  // Reads every page and checks that they fit together; slow.
  base::Status check_pages();

  // Lookup
  Stance stance() const override { return info().stance; }
  std::string_view label() const override { return info().label; }
  base::Result<std::optional<Entry>> by_r(const model::Digest& r) override;
  base::Result<std::optional<Entry>> by_m(const model::Digest& m) override;
  base::Result<std::optional<Entry>> by_p(const model::Digest& p) override;
  base::Result<bool> has_k(const model::Digest& k) override;
  base::Result<std::optional<KernelPlace>> place_of_k(const model::Digest& k) override;
  base::Result<std::vector<KernelPlace>> by_name(std::string_view name, std::uint32_t sm) override;
  base::Result<std::vector<std::string>> names_of(std::int64_t module) override;
  base::Result<std::optional<Entry>> by_id(std::int64_t module) override;

 private:
  struct State;
  explicit Baseline(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpuwatch::judge
