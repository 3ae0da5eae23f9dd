// SPDX-License-Identifier: Apache-2.0
// The lanes of a timeline: each draws one thing of one process below `y` and
// says how high it was. Inner to timeline_svg.cpp.
#pragma once

#include <cstdint>
#include <string>

#include "report/svg.h"
#include "report/timeline.h"

namespace gpuwatch::report::lanes {

inline constexpr double kWidth = 1200;
inline constexpr double kLeft = 150;    // labels
inline constexpr double kRight = 1090;  // what is right of it belongs to peaks

// The part of time that is drawn, and where it lies.
struct Scale {
  std::uint64_t from_ns = 0;
  std::uint64_t to_ns = 1;
  std::uint64_t origin_ns = 0;  // what people count from: the first call

  std::uint64_t span_ns() const { return to_ns > from_ns ? to_ns - from_ns : 1; }
  double x(std::uint64_t time_ns) const {
    if (time_ns <= from_ns) return kLeft;
    if (time_ns >= to_ns) return kRight;
    return kLeft + static_cast<double>(time_ns - from_ns) / static_cast<double>(span_ns()) * (kRight - kLeft);
  }
  bool shows(std::uint64_t from, std::uint64_t to) const { return to >= from_ns && from <= to_ns; }
};

// Each returns the height it took, 0 when there is nothing to show.
double marks(Svg& svg, const Scale& scale, const ProcessLine& line, double y);
double contexts(Svg& svg, const Scale& scale, const ProcessLine& line, double y, bool labels);
double channels(Svg& svg, const Scale& scale, const ProcessLine& line, double y);
double memory(Svg& svg, const Scale& scale, const GpuCurve& gpu, double y, double height, bool labels);
double calls(Svg& svg, const Scale& scale, const Strip& strip, double y, double height);
void lifeline(Svg& svg, const Scale& scale, const ProcessLine& line, double y);

// A mark's sign, for the legend too.
void mark_sign(Svg& svg, MarkKind kind, double x, double y, std::string_view tip);

std::string gpu_label(const GpuCurve& gpu);

}  // namespace gpuwatch::report::lanes
