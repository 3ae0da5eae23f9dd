// SPDX-License-Identifier: Apache-2.0
// A baseline as text that other programs and version control can read: JSON,
// one object a line. The first line says what it is, then one line a module in
// order of R; a signature, if there is one, comes last. The same contents give
// the same bytes, so the digest of the lines before the signature is the
// digest of the contents: that is what is signed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "judge/baseline.h"

namespace gpuwatch::judge {

inline constexpr int kExchangeVersion = 1;

struct ExchangeLimits {
  std::size_t line_bytes = 64 << 20;
  std::uint64_t modules = 10'000'000;
  std::size_t kernels_per_module = 1'000'000;
  std::size_t sources_per_module = 100'000;
  std::size_t residents_per_module = 1'000'000;
  std::size_t text_bytes = 64 << 10;  // of a name or path
};

// One line each, without its newline.
std::string head_line(const BaselineInfo& info);
std::string entry_line(const Entry& entry);

// Every value checked, unknown keys refused; `place` is put before errors.
base::Result<BaselineInfo> parse_head(std::string_view line, const std::string& place);
base::Result<Entry> parse_entry(std::string_view line, const std::string& place, const ExchangeLimits& limits = {});

// Writes all lines through `write`.
base::Status export_baseline(Baseline& baseline, const std::function<base::Status(std::string_view)>& write);

// SHA-256 over every line with its newline, the signature left out.
base::Result<model::Digest> contents_digest(Baseline& baseline);

// What a text holds, entry by entry, in batches. Stops at the first error.
struct Import {
  BaselineInfo info;
  std::optional<StoredSignature> signature;
  std::uint64_t modules = 0;
};
using TakeEntries = std::function<base::Status(const BaselineInfo&, std::span<const Entry>)>;
base::Result<Import> import_lines(const std::function<base::Result<std::size_t>(std::span<char>)>& read,
                                  const std::string& name, const TakeEntries& take, const ExchangeLimits& limits = {});

}  // namespace gpuwatch::judge
