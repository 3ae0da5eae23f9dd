// SPDX-License-Identifier: Apache-2.0
#include "report/timeline_lanes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "report/words.h"

namespace gpuwatch::report::lanes {

namespace {

constexpr double kRow = 16;      // of contexts
constexpr double kThread = 4;    // of channels
constexpr double kNear = 9;      // marks closer than this are one
constexpr double kColumn = 2;    // of a strip of calls
constexpr double kLetter = 6.6;  // of text at 11 px, on the safe side

void label(Svg& svg, double y, std::string_view text) {
  svg.text(kLeft - 8, y, text, "lab end", 22);
}

void peak(Svg& svg, double y, std::string_view text) {
  svg.text(kRight + 6, y, text, "lab", 17);
}

void move(std::string& data, char command, double a) {
  data += command;
  append_coordinate(data, a);
}

void move(std::string& data, char command, double a, double b) {
  move(data, command, a);
  data += ' ';
  append_coordinate(data, b);
}

std::string when(const Scale& scale, const Lifeline& line) {
  const auto after = [&](std::uint64_t ns) { return seconds(ns - std::min(ns, scale.origin_ns)); };
  return after(line.from_ns) + " to " + (line.to_ns == kOpenEnd ? "the end, still there" : after(line.to_ns));
}

// Which row each lifeline takes so that none overlap.
template <typename Line>
std::vector<std::size_t> rows_of(const std::vector<Line>& lines, std::size_t& count) {
  std::vector<std::size_t> rows;
  std::vector<std::uint64_t> ends;
  for (const Line& line : lines) {
    const auto free = std::find_if(ends.begin(), ends.end(), [&](std::uint64_t end) { return end <= line.from_ns; });
    rows.push_back(static_cast<std::size_t>(free - ends.begin()));
    if (free == ends.end())
      ends.push_back(line.to_ns);
    else
      *free = line.to_ns;
  }
  count = ends.size();
  return rows;
}

std::string_view use_class(ChannelUse use) {
  constexpr std::string_view kClasses[] = {"cmp", "cpy", "vid", "oth"};
  return kClasses[static_cast<std::size_t>(use)];
}

std::string_view use_name(ChannelUse use) {
  constexpr std::string_view kNames[] = {"compute", "copy", "video", "other"};
  return kNames[static_cast<std::size_t>(use)];
}

// The curve within the scale: for each column of a pixel its largest value and
// the one it ends with, so that no peak is lost and a path stays short.
std::string step_path(const Scale& scale, const Curve& curve, double bottom, double height, double& end_x) {
  const double unit = curve.peak == 0 ? 0 : height / static_cast<double>(curve.peak);
  std::uint64_t value = 0;
  std::size_t at = 0;
  while (at < curve.points.size() && curve.points[at].time_ns <= scale.from_ns) value = curve.points[at++].value;
  std::string data;
  double drawn = kLeft;
  if (value == 0 && at < curve.points.size()) drawn = scale.x(curve.points[at].time_ns);
  move(data, 'M', drawn, bottom);
  if (value > 0) move(data, 'V', bottom - static_cast<double>(value) * unit);
  while (at < curve.points.size() && curve.points[at].time_ns < scale.to_ns) {
    const double x = std::floor(scale.x(curve.points[at].time_ns) * 2) / 2;
    std::uint64_t largest = curve.points[at].value, last = largest;
    for (++at; at < curve.points.size() && curve.points[at].time_ns < scale.to_ns &&
               std::floor(scale.x(curve.points[at].time_ns) * 2) / 2 == x;
         ++at) {
      last = curve.points[at].value;
      largest = std::max(largest, last);
    }
    if (largest == value && last == value) continue;
    if (x != drawn) move(data, 'H', x);
    drawn = x;
    if (largest != value && largest != last) move(data, 'V', bottom - static_cast<double>(largest) * unit);
    move(data, 'V', bottom - static_cast<double>(last) * unit);
    value = last;
  }
  end_x = value > 0 ? kRight : std::max(drawn, kLeft);
  if (value > 0) move(data, 'H', kRight);
  return data;
}

}  // namespace

std::string gpu_label(const GpuCurve& gpu) {
  if (gpu.minor >= 0) return "GPU " + std::to_string(gpu.minor);
  return gpu.device >= 0 ? "device " + std::to_string(gpu.device) : "GPU";
}

void lifeline(Svg& svg, const Scale& scale, const ProcessLine& line, double y) {
  if (!scale.shows(line.from_ns, line.to_ns)) return;
  const double x = scale.x(line.from_ns);
  svg.rect(x, y, std::max(scale.x(line.to_ns) - x, 1.0), 3, "life", "first to last call");
}

void mark_sign(Svg& svg, MarkKind kind, double x, double y, std::string_view tip) {
  const auto at = [&](std::initializer_list<std::array<double, 2>> corners, bool close) {
    std::string data;
    for (const auto& corner : corners) move(data, data.empty() ? 'M' : 'L', x + corner[0], y + corner[1]);
    return close ? data + "Z" : data;
  };
  switch (kind) {
    case MarkKind::kDenied: {
      std::string data = at({{-4, -4}, {4, 4}}, false);
      data += at({{-4, 4}, {4, -4}}, false);
      svg.path(data, "mx", tip);
      return;
    }
    case MarkKind::kRefused:
      svg.path(at({{-4.5, -4}, {4.5, -4}, {0, 4}}, true), "mr", tip);
      return;
    case MarkKind::kFault:
      svg.path(at({{0, -5}, {5, 0}, {0, 5}, {-5, 0}}, true), "mf", tip);
      return;
    case MarkKind::kFinding:
      svg.path(at({{-4.5, 4}, {4.5, 4}, {0, -4}}, true), "ms", tip);
      return;
    case MarkKind::kShare:
      svg.path(at({{-4, -4}, {4, -4}, {4, 4}, {-4, 4}}, true), "mh", tip);
      return;
  }
}

double marks(Svg& svg, const Scale& scale, const ProcessLine& line, double y) {
  constexpr double kHeight = 16;
  if (line.marks.empty()) return 0;
  struct Placed {
    double x;
    std::size_t count;
    std::string tip;
  };
  std::array<std::vector<Placed>, kMarkKinds> placed;
  bool any = false;
  for (const Mark& mark : line.marks) {
    if (!scale.shows(mark.time_ns, mark.time_ns)) continue;
    any = true;
    auto& same = placed[static_cast<std::size_t>(mark.kind)];
    const double x = scale.x(mark.time_ns);
    if (!same.empty() && x - same.back().x < kNear) {
      if (++same.back().count <= 8) same.back().tip += "; " + mark.text;
    } else {
      same.push_back({x, 1, mark.text});
    }
  }
  if (!any) return 0;
  std::size_t rows = 0;
  for (std::size_t kind = 0; kind < kMarkKinds; ++kind) {
    if (placed[kind].empty()) continue;
    const double middle = y + static_cast<double>(rows++) * kHeight + kHeight / 2;
    constexpr std::string_view kLabels[kMarkKinds] = {"denied", "out of memory", "GPU fault", "finding", "shared"};
    label(svg, middle + 4, kLabels[kind]);
    std::size_t all = 0;
    for (std::size_t i = 0; i < placed[kind].size(); ++i) {
      const Placed& mark = placed[kind][i];
      all += mark.count;
      mark_sign(svg, static_cast<MarkKind>(kind), mark.x, middle, std::to_string(mark.count) + " × " + mark.tip);
      const std::string count = "×" + std::to_string(mark.count);
      const double next = i + 1 < placed[kind].size() ? placed[kind][i + 1].x : kRight;
      if (mark.count > 1 && next - mark.x > 14 + kLetter * static_cast<double>(count.size()))
        svg.text(mark.x + 7, middle + 4, count, "lab");
    }
    peak(svg, middle + 4, grouped(all));
  }
  return static_cast<double>(rows) * kHeight;
}

double contexts(Svg& svg, const Scale& scale, const ProcessLine& line, double y, bool labels) {
  std::vector<ContextLine> shown;
  for (const ContextLine& context : line.contexts)
    if (scale.shows(context.from_ns, context.to_ns)) shown.push_back(context);
  if (shown.empty()) return 0;
  std::size_t rows = 0;
  const std::vector<std::size_t> row = rows_of(shown, rows);
  const double step = labels ? kRow : 10;
  if (labels) label(svg, y + 12, plural(line.contexts.size() + line.contexts_left_out, "context", "contexts"));
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const ContextLine& context = shown[i];
    const double x = scale.x(context.from_ns), end = scale.x(context.to_ns);
    const double top = y + static_cast<double>(row[i]) * step;
    const double width = std::max(end - x, 1.0);
    std::string text =
        plural(context.groups, "group", "groups") + ", " + plural(context.channels, "channel", "channels");
    if (context.gpu_minor >= 0) text = "GPU " + std::to_string(context.gpu_minor) + ": " + text;
    svg.rect(x, top + 1, width, step - 3, context.to_ns == kOpenEnd ? "ctx open" : "ctx",
             "context, " + text + ", " + when(scale, context));
    if (labels && width > kLetter * static_cast<double>(text.size()) + 8) svg.text(x + 4, top + 12, text, "inv");
  }
  return static_cast<double>(rows) * step;
}

double channels(Svg& svg, const Scale& scale, const ProcessLine& line, double y) {
  const double top = y;
  for (const ChannelUse use : {ChannelUse::kCompute, ChannelUse::kCopy, ChannelUse::kVideo, ChannelUse::kOther}) {
    std::vector<ChannelLine> shown;
    for (const ChannelLine& channel : line.channels)
      if (channel.use == use && scale.shows(channel.from_ns, channel.to_ns)) shown.push_back(channel);
    if (shown.empty()) continue;
    std::size_t rows = 0;
    const std::vector<std::size_t> row = rows_of(shown, rows);
    const double height = std::max(static_cast<double>(rows) * kThread, 13.0);
    const double first = y + (height - static_cast<double>(rows) * kThread) / 2;
    label(svg, y + height / 2 + 4,
          std::to_string(shown.size()) + " " + std::string(use_name(use)) +
              (shown.size() == 1 ? " channel" : " channels"));
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const double x = scale.x(shown[i].from_ns);
      std::string tip = "channel";
      if (!shown[i].engine.empty()) tip += " on " + std::string(shown[i].engine);
      svg.rect(x, first + static_cast<double>(row[i]) * kThread, std::max(scale.x(shown[i].to_ns) - x, 1.0),
               kThread - 1, use_class(use), tip + ", " + when(scale, shown[i]));
    }
    y += height + 3;
  }
  return y - top;
}

double memory(Svg& svg, const Scale& scale, const GpuCurve& gpu, double y, double height, bool labels) {
  if (gpu.memory.peak == 0) return 0;
  const double bottom = y + height - 2;
  const double top = y + 3;
  double end_x = kLeft;
  const std::string curve = step_path(scale, gpu.memory, bottom, bottom - top, end_x);
  std::string area = curve;
  move(area, 'V', bottom);
  area += 'Z';
  svg.path(area, "area", gpu_label(gpu) + " memory, peak " + bytes_text(gpu.memory.peak));
  svg.path(curve, "curve");
  if (!labels) {
    peak(svg, bottom - 3, bytes_text(gpu.memory.peak));
    return height;
  }
  svg.line(kLeft, top, kRight, top, "lim");
  svg.line(kLeft, bottom, kRight, bottom, "base");
  label(svg, y + height / 2 + 4, gpu_label(gpu) + " memory");
  peak(svg, top + 7, bytes_text(gpu.memory.peak));
  if (height >= 34) {
    svg.line(kLeft, (top + bottom) / 2, kRight, (top + bottom) / 2, "lim");
    if (height >= 48) peak(svg, (top + bottom) / 2 + 4, bytes_text(gpu.memory.peak / 2));
    peak(svg, bottom + 1, "0");
  }
  return height;
}

double calls(Svg& svg, const Scale& scale, const Strip& strip, double y, double height) {
  const auto columns = static_cast<std::size_t>((kRight - kLeft) / kColumn);
  std::vector<double> counts(columns);
  const double column_ns = static_cast<double>(scale.span_ns()) / static_cast<double>(columns);
  for (std::size_t i = 0; i < strip.bins.size(); ++i) {
    const std::uint64_t from = strip.from_ns + i * strip.width_ns;
    const bool before = from < scale.from_ns && scale.from_ns - from >= strip.width_ns;
    if (strip.bins[i] == 0 || before || from >= scale.to_ns) continue;
    const double begin = (static_cast<double>(from) - static_cast<double>(scale.from_ns)) / column_ns;
    const double wide = static_cast<double>(strip.width_ns) / column_ns;
    const auto first = static_cast<std::size_t>(std::max(begin, 0.0));
    const auto last = static_cast<std::size_t>(std::max(std::ceil(begin + wide), begin + 1));
    const double share = static_cast<double>(strip.bins[i]) / std::max(wide, 1.0);
    if (wide <= 1)
      counts[std::min(first, columns - 1)] += strip.bins[i];
    else
      for (std::size_t column = first; column < std::min(last, columns); ++column) counts[column] += share;
  }
  const double most = *std::max_element(counts.begin(), counts.end());
  const double bottom = y + height - 2;
  svg.line(kLeft, bottom, kRight, bottom, "base");
  label(svg, y + height / 2 + 4, "calls per second");
  if (most <= 0) {
    peak(svg, bottom - 2, "no calls");
    return height;
  }
  std::string data;
  for (std::size_t i = 0; i < columns; ++i) {
    if (counts[i] <= 0) continue;
    // A single call must be seen beside a thousand.
    const double tall = std::max(counts[i] / most * (height - 4), 1.0);
    move(data, 'M', kLeft + static_cast<double>(i) * kColumn, bottom);
    move(data, 'v', -tall);
    move(data, 'h', kColumn);
    move(data, 'v', tall);
    data += 'Z';
  }
  const double per_second = most / (column_ns / 1e9);
  svg.path(data, "calls",
           "most: " + grouped(static_cast<std::uint64_t>(per_second)) + " calls per second, within " +
               duration(static_cast<std::uint64_t>(column_ns)));
  // Within microseconds a rate says nothing.
  if (column_ns < 10'000) {
    std::uint64_t all = 0;
    for (const std::uint32_t bin : strip.bins) all += bin;
    peak(svg, y + 11, plural(all, "call", "calls"));
  } else {
    peak(svg, y + 11, "max " + grouped(static_cast<std::uint64_t>(per_second)) + "/s");
  }
  return height;
}

}  // namespace gpuwatch::report::lanes
