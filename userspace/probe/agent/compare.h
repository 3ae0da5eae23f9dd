// SPDX-License-Identifier: Apache-2.0
// One GPU of a living process: what is resident there is read by the way that it
// is given, compared with images, and printed. It knows neither agent nor driver.
#pragma once

#include <memory>
#include <vector>

#include "probe/agent/live.h"
#include "probe/agent/sources.h"

namespace gpuwatch::probe::agent {

// Memory that may be code heap: blocks up to this size, the likeliest with these
// flags of their allocation.
inline constexpr std::uint64_t kHeapBlockMax = 64ull << 20;
inline constexpr std::uint32_t kHeapFlags = 0x1c101;

// How the GPU memory of a process is reached.
class Way {
 public:
  virtual ~Way() = default;
  // Access to one GPU as long as it lives, and what may be code heap there now,
  // the likeliest first.
  virtual Failure open(std::uint32_t device, std::unique_ptr<CodeAccess>& access, std::vector<Span>& heap) = 0;
  // A debugger or profiler at work in the process, "" where there is none.
  virtual std::string tool() const = 0;
};

// `sms`: what the GPU may be, one where that is known. Sets `finding` where code
// differs.
Failure compare_device(const LiveOptions& options, Way& way, std::uint32_t device,
                       const std::vector<std::uint32_t>& sms, const std::vector<Source>& sources, Report& report,
                       bool& finding);

}  // namespace gpuwatch::probe::agent
