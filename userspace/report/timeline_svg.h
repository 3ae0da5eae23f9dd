// SPDX-License-Identifier: Apache-2.0
// Draws a TimelineResult as one SVG file that needs nothing else: no script,
// no font, no network. One block a process, on one time axis; in full up to
// three processes, as rows beyond, at most kShown; what is left out is said.
#pragma once

#include <cstdint>
#include <string>

#include "report/summary_print.h"
#include "report/timeline.h"

namespace gpuwatch::report {

struct TimelineSvgOptions {
  static constexpr std::size_t kShown = 24;

  std::string title;  // the recording's name; untrusted bytes
  std::int64_t realtime_offset_ns = 0;
  // The part to draw, nanoseconds after the first call.
  std::uint64_t since_ns = 0;
  std::uint64_t until_ns = ~std::uint64_t{0};
};

std::string timeline_svg(const TimelineResult& result, const Origin& origin, const TimelineSvgOptions& options);

}  // namespace gpuwatch::report
