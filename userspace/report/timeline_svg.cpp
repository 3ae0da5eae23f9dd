// SPDX-License-Identifier: Apache-2.0
// The page around the lanes: head, time axis, one block a process, legend.
#include "report/timeline_svg.h"

#include <algorithm>
#include <array>

#include "publish/format.h"
#include "report/timeline_lanes.h"
#include "report/words.h"

namespace gpuwatch::report {

namespace {

using lanes::kLeft;
using lanes::kRight;
using lanes::kWidth;
using lanes::Scale;

constexpr std::string_view kStyle =
    "text{font-family:system-ui,'DejaVu Sans',Arial,sans-serif;fill:#1f2933}"
    ".title{font-size:17px;font-weight:600}.sub{font-size:12px;fill:#52606d}.who{font-size:13px;font-weight:600}"
    ".det{font-size:11.5px;fill:#52606d}.lab{font-size:11px;fill:#3e4c59}.end{text-anchor:end}"
    ".mid{text-anchor:middle}.inv{font-size:11px;fill:#fff}"
    ".back{fill:#fff}.block{fill:#f7f9fa}.grid{stroke:#dde3e8}.base{stroke:#9aa5b1}"
    ".lim{stroke:#9aa5b1;stroke-dasharray:2 4}.life{fill:#9aa5b1}"
    ".ctx{fill:#0b5fa5}.open{stroke:#0b5fa5;stroke-dasharray:3 2;fill-opacity:.75}"
    ".cmp{fill:#3d9be0}.cpy{fill:#e69f00}.vid{fill:#b5579b}.oth{fill:#7b8794}"
    ".area{fill:#0a8f63;fill-opacity:.22}.curve{fill:none;stroke:#0a8f63;stroke-width:1.4}.calls{fill:#52606d}"
    ".mx{fill:none;stroke:#c8281e;stroke-width:2}.mr{fill:#c8281e}.mf{fill:#111}.ms{fill:#7b2fa6}.mh{fill:#0b7285}";

constexpr double kBlockGap = 10;
constexpr std::size_t kFull = 3;    // processes drawn with all lanes
constexpr std::size_t kMiddle = 8;  // with fewer; beyond, as rows

// The distance of ticks: 1, 2 or 5 times a power of ten, about eight on the axis.
std::uint64_t tick_ns(std::uint64_t span_ns) {
  for (std::uint64_t step = 1;; step *= 10)
    for (const std::uint64_t factor : {1, 2, 5})
      if (step * factor >= span_ns / 8) return step * factor;
}

std::string tick_text(std::uint64_t ns, std::uint64_t step_ns) {
  const auto in_unit = [ns, step_ns](std::uint64_t unit, const char* name) {
    int digits = 0;
    for (std::uint64_t rest = step_ns; rest % unit != 0 && digits < 3; rest *= 10) ++digits;
    return decimal(static_cast<double>(ns) / static_cast<double>(unit), digits) + " " + name;
  };
  if (step_ns >= 100'000'000) return in_unit(1'000'000'000, "s");
  if (step_ns >= 100'000) return in_unit(1'000'000, "ms");
  return in_unit(1'000, "µs");
}

// Nanoseconds after the first call of each tick. Times come from the recording
// and may be anything: nothing here may overflow into an endless walk.
std::vector<std::uint64_t> ticks(const Scale& scale, std::uint64_t step) {
  const std::uint64_t from = scale.from_ns - scale.origin_ns;
  const std::uint64_t to = scale.to_ns - scale.origin_ns;
  std::vector<std::uint64_t> found;
  for (std::uint64_t after = from / step * step; after <= to; after += step) {
    if (after >= from) found.push_back(after);
    if (to - after < step) break;
  }
  return found;
}

void axis(Svg& svg, const Scale& scale, double y) {
  const std::uint64_t step = tick_ns(scale.span_ns());
  for (const std::uint64_t after : ticks(scale, step))
    svg.text(scale.x(scale.origin_ns + after), y, tick_text(after, step), "lab mid");
}

void grid(Svg& svg, const Scale& scale, double top, double bottom) {
  for (const std::uint64_t after : ticks(scale, tick_ns(scale.span_ns()))) {
    const double x = scale.x(scale.origin_ns + after);
    svg.line(x, top, x, bottom, "grid");
  }
}

std::string container_of(const Identity& who) {
  if (who.container_id.empty()) return {};
  std::string text = who.runtime + " " + who.container_id.substr(0, 12);
  if (!who.container_name.empty()) text += " " + who.container_name;
  if (!who.pod_name.empty()) text += ", pod " + who.pod_name;
  return text;
}

std::string detail_of(const ProcessLine& line) {
  std::string text = line.who.exe;
  if (const std::string container = container_of(line.who); !container.empty())
    text += (text.empty() ? "" : " · ") + container;
  text += (text.empty() ? "" : " · ") + plural(line.calls, "call", "calls") + ", " + duration(line.driver_ns) +
          " in the driver";
  if (line.host_peak > 0) text += " · host memory up to " + bytes_text(line.host_peak);
  if (line.pinned_peak > 0) text += " · pinned up to " + bytes_text(line.pinned_peak);
  const std::uint64_t beyond = line.contexts_left_out + line.channels_left_out + line.marks_left_out;
  if (beyond > 0) text += " · " + grouped(beyond) + " lifelines and marks left out";
  return text;
}

std::string name_of(const Identity& who) {
  return who.comm + "/" + std::to_string(who.pid);
}

double process_block(Svg& svg, const Scale& scale, const ProcessLine& line, double y, bool full) {
  const double top = y;
  const std::string name = name_of(line.who);
  svg.text(kLeft - 134, y + 15, name, "who", 30);
  const double after = 24 + 8.2 * static_cast<double>(std::min<std::size_t>(name.size(), 30));
  svg.text(kLeft - 134 + after, y + 15, detail_of(line), "det", static_cast<std::size_t>((1164 - after) / 6.4));
  y += 22;
  lanes::lifeline(svg, scale, line, y);
  y += 6;
  y += lanes::marks(svg, scale, line, y);
  if (const double height = lanes::contexts(svg, scale, line, y, true); height > 0) y += height + 3;
  if (full) y += lanes::channels(svg, scale, line, y);
  for (const GpuCurve& gpu : line.gpus)
    if (const double height = lanes::memory(svg, scale, gpu, y, full ? 66 : 36, true); height > 0) y += height + 5;
  y += lanes::calls(svg, scale, line.strip, y, full ? 34 : 20);
  return y - top + 4;
}

// One row: name, lifeline, contexts, memory, marks on top.
double process_row(Svg& svg, const Scale& scale, const ProcessLine& line, double y) {
  svg.text(kLeft - 8, y + 19, name_of(line.who), "lab end", 22);
  lanes::lifeline(svg, scale, line, y + 3);
  const double contexts = lanes::contexts(svg, scale, line, y + 6, false);
  double below = y + 6 + std::max(contexts, 4.0);
  for (const GpuCurve& gpu : line.gpus) below += lanes::memory(svg, scale, gpu, below, 16, false);
  for (const Mark& mark : line.marks)
    if (scale.shows(mark.time_ns, mark.time_ns))
      lanes::mark_sign(svg, mark.kind, scale.x(mark.time_ns), y + 11, mark.text);
  return std::max(below - y + 3, 24.0);
}

// The processes to draw: those that used most, in the order they came.
std::vector<const ProcessLine*> choose(const TimelineResult& result, const Scale& scale) {
  std::vector<const ProcessLine*> chosen;
  for (const ProcessLine& line : result.processes)
    if (scale.shows(line.from_ns, line.to_ns) || !line.gpus.empty() || !line.contexts.empty()) chosen.push_back(&line);
  const auto weight = [](const ProcessLine* line) {
    std::uint64_t bytes = 0;
    for (const GpuCurve& gpu : line->gpus) bytes += gpu.memory.peak;
    return std::pair(bytes > 0 || !line->marks.empty(), std::max(bytes >> 10, line->driver_ns >> 10));
  };
  if (chosen.size() > TimelineSvgOptions::kShown) {
    std::stable_sort(chosen.begin(), chosen.end(),
                     [&](const ProcessLine* a, const ProcessLine* b) { return weight(a) > weight(b); });
    chosen.resize(TimelineSvgOptions::kShown);
  }
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const ProcessLine* a, const ProcessLine* b) { return a->from_ns < b->from_ns; });
  return chosen;
}

std::string span_text(std::uint64_t ns) {
  if (ns >= 1'000'000'000) return decimal(static_cast<double>(ns) / 1e9, ns >= 10'000'000'000 ? 1 : 2) + " s";
  if (ns >= 10'000'000) return decimal(static_cast<double>(ns) / 1e6, 0) + " ms";
  return decimal(static_cast<double>(ns) / 1e3, 0) + " µs";
}

std::string subtitle(const TimelineResult& result, const Origin& origin, const TimelineSvgOptions& options,
                     const Scale& scale) {
  std::uint64_t calls = result.calls_left_out;
  for (const ProcessLine& line : result.processes) calls += line.calls;
  std::string text = span_text(scale.to_ns - scale.from_ns);
  if (options.realtime_offset_ns != 0) {
    text += " from ";
    publish::format::append_time(text, scale.from_ns, options.realtime_offset_ns, 0, 3);
    text += " UTC";
  }
  text += " · " + plural(calls, "call", "calls") + " of " +
          plural(result.processes.size() + result.processes_left_out, "process", "processes");
  if (!origin.driver_version.empty()) text += " · driver " + origin.driver_version;
  for (const Origin::Gpu& gpu : origin.gpus) text += " · GPU " + std::to_string(gpu.minor) + " " + gpu.name;
  if (origin.recorder == "preload") text += " · recorded by LD_PRELOAD";
  if (origin.lost > 0) text += " · " + plural(origin.lost, "record", "records") + " lost";
  return text;
}

double legend(Svg& svg, const std::vector<const ProcessLine*>& shown, bool rows, double y) {
  double x = kLeft;
  const auto next = [&x](std::string_view text) { x += 22 + 6.6 * static_cast<double>(text.size()) + 14; };
  const auto swatch = [&](std::string_view css_class, std::string_view text) {
    svg.rect(x, y - 8, 16, 9, css_class);
    svg.text(x + 21, y, text, "lab");
    next(text);
  };
  swatch("life", "first to last call");
  const auto any = [&](auto has) { return std::any_of(shown.begin(), shown.end(), has); };
  if (any([](const ProcessLine* line) { return !line->contexts.empty(); })) swatch("ctx", "context");
  if (!rows) {
    bool uses[4] = {};
    for (const ProcessLine* line : shown)
      for (const ChannelLine& channel : line->channels) uses[static_cast<std::size_t>(channel.use)] = true;
    constexpr std::array<std::array<std::string_view, 2>, 4> kUses = {
        {{"cmp", "compute channel"}, {"cpy", "copy channel"}, {"vid", "video channel"}, {"oth", "other channel"}}};
    for (std::size_t i = 0; i < kUses.size(); ++i)
      if (uses[i] && shown.size() <= kFull) swatch(kUses[i][0], kUses[i][1]);
  }
  if (any([](const ProcessLine* line) { return !line->gpus.empty(); })) swatch("area", "GPU memory held");
  if (!rows) swatch("calls", "calls");
  bool kinds[kMarkKinds] = {};
  for (const ProcessLine* line : shown)
    for (const Mark& mark : line->marks) kinds[static_cast<std::size_t>(mark.kind)] = true;
  constexpr std::string_view kNames[kMarkKinds] = {"denied call", "memory refused", "GPU fault", "security finding",
                                                   "shared with others"};
  for (std::size_t i = 0; i < kMarkKinds; ++i) {
    if (!kinds[i]) continue;
    if (x > kRight - 120) {
      x = kLeft;
      y += 18;
    }
    lanes::mark_sign(svg, static_cast<MarkKind>(i), x + 8, y - 4, kNames[i]);
    svg.text(x + 21, y, kNames[i], "lab");
    next(kNames[i]);
  }
  return y + 8;
}

}  // namespace

std::string timeline_svg(const TimelineResult& result, const Origin& origin, const TimelineSvgOptions& options) {
  Scale scale;
  scale.origin_ns = result.origin_ns;
  const std::uint64_t length = result.end_ns - std::min(result.origin_ns, result.end_ns);
  scale.from_ns = result.origin_ns + std::min(options.since_ns, length);
  scale.to_ns = result.origin_ns + std::min(options.until_ns, length);
  constexpr std::uint64_t kLeast = 1000;
  if (scale.to_ns - scale.from_ns < kLeast || scale.to_ns < scale.from_ns) {
    scale.from_ns = std::min(scale.from_ns, ~std::uint64_t{0} - kLeast);
    scale.origin_ns = std::min(scale.origin_ns, scale.from_ns);
    scale.to_ns = scale.from_ns + kLeast;
  }
  const std::vector<const ProcessLine*> shown = choose(result, scale);
  const bool rows = shown.size() > kMiddle;

  Svg body;
  double y = 78;
  const double top = y;
  std::vector<std::array<double, 2>> blocks;
  if (shown.size() > 1)
    for (const GpuCurve& gpu : result.gpus) {
      if (gpu.memory.peak == 0 || blocks.size() >= 8) continue;
      body.text(kLeft - 134, y + 15, lanes::gpu_label(gpu), "who");
      body.text(kLeft - 80, y + 15, "memory of all processes recorded", "det");
      const double height = lanes::memory(body, scale, gpu, y + 22, 66, true);
      blocks.push_back({y, height + 28});
      y += height + 28 + kBlockGap;
    }
  if (rows) {
    const double begin = y;
    y += 4;
    for (const ProcessLine* line : shown) y += process_row(body, scale, *line, y);
    blocks.push_back({begin, y - begin});
    y += kBlockGap;
  } else {
    for (const ProcessLine* line : shown) {
      const double height = process_block(body, scale, *line, y, shown.size() <= kFull);
      blocks.push_back({y, height});
      y += height + kBlockGap;
    }
  }
  if (shown.empty()) {
    body.text(kLeft, y + 16, "nobody called the driver in this time", "sub");
    y += 30;
  }
  const double bottom = y - kBlockGap + 4;
  if (bottom - top > 300) axis(body, scale, bottom + 12);
  y = bottom + (bottom - top > 300 ? 34 : 22);
  y = legend(body, shown, rows, y);
  const std::uint64_t left_out = result.processes.size() - shown.size() + result.processes_left_out;
  if (left_out > 0) {
    std::uint64_t calls = result.calls_left_out;
    for (const ProcessLine& line : result.processes)
      if (std::find(shown.begin(), shown.end(), &line) == shown.end()) calls += line.calls;
    body.text(kLeft, y + 12,
              "left out: " + plural(left_out, "process", "processes") + " with " + plural(calls, "call", "calls"),
              "sub");
    y += 20;
  }
  y += 8;

  Svg page;
  std::string size = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1200\" height=\"";
  append_coordinate(size, y);
  size += "\" viewBox=\"0 0 1200 ";
  append_coordinate(size, y);
  page.raw("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + size + "\">\n<title>");
  std::string title;
  append_xml(title, options.title, 120);
  page.raw(title + "</title>\n<style>" + std::string(kStyle) + "</style>\n");
  page.rect(0, 0, kWidth, y, "back");
  page.text(16, 26, options.title, "title", 110);
  page.text(16, 46, subtitle(result, origin, options, scale), "sub", 180);
  axis(page, scale, top - 8);
  for (const auto& block : blocks) page.rect(8, block[0], kWidth - 16, block[1], "block");
  grid(page, scale, top - 2, bottom);
  page.raw(body.take());
  page.raw("</svg>\n");
  return page.take();
}

}  // namespace gpuwatch::report
