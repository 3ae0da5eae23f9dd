// SPDX-License-Identifier: Apache-2.0
// Timeline: when each process had its contexts, channels and memory, how often
// it called, and what was refused, collected from calls and story events for a
// picture (timeline_svg.h). Bounded: curves and strips get coarser with length,
// lists end at a limit, and what is left out is counted. Draws nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/call.h"
#include "model/story.h"
#include "report/summary.h"

namespace gpuwatch::report {

struct TimelineLimits {
  std::size_t processes = 256;
  std::size_t contexts = 32;   // of a process
  std::size_t channels = 128;  // of a process
  std::size_t marks = 512;     // of a process
  std::size_t points = 4096;   // of a curve, before it gets coarser
  std::size_t bins = 1024;     // of a strip of calls
};

inline constexpr std::uint64_t kOpenEnd = ~std::uint64_t{0};

struct Lifeline {
  std::uint64_t id = 0;  // of a context its id, of a channel client << 32 | handle
  std::uint64_t from_ns = 0;
  std::uint64_t to_ns = kOpenEnd;  // kOpenEnd: not ended when the records did
};

struct ContextLine : Lifeline {
  std::uint32_t groups = 0;
  std::uint32_t channels = 0;
  std::int32_t gpu_minor = -1;
};

enum class ChannelUse : std::uint8_t { kCompute, kCopy, kVideo, kOther };

struct ChannelLine : Lifeline {
  ChannelUse use = ChannelUse::kOther;
  std::string_view engine;  // static text; empty: not known
};

// Value over time, as steps. Where it had to get coarser a step is the largest
// value in it, so that a peak stays what it was.
struct Curve {
  struct Point {
    std::uint64_t time_ns = 0;
    std::uint64_t value = 0;
  };
  std::vector<Point> points;
  std::uint64_t peak = 0;
  std::uint64_t peak_ns = 0;
  std::uint64_t last = 0;

  void add(std::uint64_t time_ns, std::uint64_t value, std::size_t limit);
};

struct GpuCurve {
  std::int32_t minor = -1;
  std::int32_t device = -1;
  Curve memory;
};

// Calls per interval of width_ns since `from_ns`.
struct Strip {
  std::uint64_t from_ns = 0;
  std::uint64_t width_ns = 10'000;
  std::vector<std::uint32_t> bins;

  void add(std::uint64_t time_ns, std::size_t limit);
};

enum class MarkKind : std::uint8_t { kDenied, kRefused, kFault, kFinding, kShare };
inline constexpr std::size_t kMarkKinds = 5;

struct Mark {
  MarkKind kind = MarkKind::kDenied;
  std::uint64_t time_ns = 0;
  std::string text;  // our own words and numbers only
};

struct ProcessLine {
  Identity who;
  std::uint64_t from_ns = 0;  // begin of the first call
  std::uint64_t to_ns = 0;    // end of the last
  std::uint64_t calls = 0;
  std::uint64_t driver_ns = 0;
  std::vector<ContextLine> contexts;
  std::vector<ChannelLine> channels;
  std::vector<GpuCurve> gpus;
  std::uint64_t host_peak = 0;
  std::uint64_t pinned_peak = 0;
  Strip strip;
  std::vector<Mark> marks;
  std::uint64_t contexts_left_out = 0;
  std::uint64_t channels_left_out = 0;
  std::uint64_t marks_left_out = 0;
};

struct TimelineResult {
  std::uint64_t origin_ns = 0;  // begin of the first call
  std::uint64_t end_ns = 0;
  std::vector<ProcessLine> processes;  // by first call
  std::vector<GpuCurve> gpus;          // all processes together
  std::uint64_t processes_left_out = 0;
  std::uint64_t calls_left_out = 0;
};

class Timeline {
 public:
  Timeline(Summary::ActorLookup who, TimelineLimits limits = {});
  ~Timeline();
  Timeline(Timeline&&) noexcept;
  Timeline& operator=(Timeline&&) noexcept;

  void observe(const model::Call& call);
  void observe(const model::StoryEvent& event);
  TimelineResult result() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuwatch::report
