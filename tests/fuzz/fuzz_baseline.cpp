// SPDX-License-Identifier: Apache-2.0
// Fuzz target: the text form of baselines, and policies. What is taken is
// written again as the same line; everything else is an error with its place.
#include <cstdlib>
#include <string>

#include "judge/exchange.h"
#include "judge/policy.h"

using namespace gpuwatch;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::string_view rest = text;
  judge::ExchangeLimits limits;
  limits.line_bytes = 1 << 20;
  auto import = judge::import_lines(
      [&](std::span<char> out) -> base::Result<std::size_t> {
        const std::size_t n = std::min(out.size(), rest.size());
        std::copy_n(rest.begin(), n, out.begin());
        rest.remove_prefix(n);
        return n;
      },
      "f",
      [&](const judge::BaselineInfo&, std::span<const judge::Entry> entries) -> base::Status {
        for (const judge::Entry& entry : entries) {
          // What was read means the same when it is written and read again.
          auto again = judge::parse_entry(judge::entry_line(entry), "again");
          if (!again.ok() || !(*again == entry)) std::abort();
        }
        return {};
      },
      limits);
  if (!import.ok() && import.error().message().find("f") != 0) std::abort();
  const auto policy = judge::Policy::parse(text, "p");
  if (!policy.ok() && policy.error().message().find("p:") != 0) std::abort();
  return 0;
}
