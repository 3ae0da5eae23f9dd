// SPDX-License-Identifier: Apache-2.0
// Prints a SummaryResult: a page for people, JSON lines for programs (one per
// group, then the total; keys in man/gpuwatch-json.5.md). Appends to a buffer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/summary.h"

namespace gpuwatch::report {

// What the source says about itself; untrusted bytes.
struct Origin {
  std::string recorder;  // "kmod", "preload", ...
  std::string driver_version;
  struct Gpu {
    std::uint32_t minor = 0;
    std::string name;
  };
  std::vector<Gpu> gpus;
  std::uint64_t lost = 0;  // records
};

struct SummaryTextOptions {
  std::size_t groups = 20;  // shown at most; the rest in one line
  std::size_t names = 15;   // of each
};

void append_summary_text(std::string& out, const SummaryResult& result, const Origin& origin,
                         const SummaryTextOptions& options = {});
void append_summary_json(std::string& out, const SummaryResult& result, const Origin& origin);

}  // namespace gpuwatch::report
