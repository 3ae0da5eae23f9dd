// SPDX-License-Identifier: Apache-2.0
#include "report/timeline.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "model/definitions.h"
#include "report/identity.h"

namespace gpuwatch::report {

namespace {

using model::Call;
using model::CallKind;
using model::StoryEvent;
using model::StoryKind;

bool is_call(const Call& call) {
  return call.kind == CallKind::kOpen || call.kind == CallKind::kIoctl || call.kind == CallKind::kMmap ||
         call.kind == CallKind::kRelease;
}

ChannelUse use_of(const model::ChannelBody& channel) {
  const std::string_view engine = channel.engine_name;
  if (engine.starts_with("GR")) return ChannelUse::kCompute;
  if (engine.starts_with("COPY") || engine.starts_with("CE")) return ChannelUse::kCopy;
  if (engine.starts_with("NV") || engine.starts_with("OFA")) return ChannelUse::kVideo;
  return ChannelUse::kOther;
}

std::string mark_text(const StoryEvent& event) {
  std::string text(model::story_kind_info(event.kind).name);
  const auto add = [&text](std::string_view what) {
    if (!what.empty()) text.append(": ").append(what);
  };
  if (const auto* denial = std::get_if<model::DenialBody>(&event.body)) {
    add(denial->detail.empty() ? denial->name : denial->detail);
    add(denial->status_name);
  } else if (const auto* finding = std::get_if<model::FindingBody>(&event.body)) {
    add(finding->reason);
    add(finding->name);
  } else if (const auto* fault = std::get_if<model::FaultBody>(&event.body)) {
    add(fault->name);
  } else if (const auto* memory = std::get_if<model::MemoryBody>(&event.body)) {
    add(memory->class_name);
    add(memory->status_name);
  } else if (const auto* share = std::get_if<model::ShareBody>(&event.body)) {
    add(model::mechanism_name(share->mechanism));
    add(share->name);
  }
  return text;
}

// Nothing where the event is no mark.
bool mark_kind(StoryKind kind, MarkKind& out) {
  switch (kind) {
    case StoryKind::kCallDenied:
    case StoryKind::kOpenFailed:
      out = MarkKind::kDenied;
      return true;
    case StoryKind::kMemoryRefused:
      out = MarkKind::kRefused;
      return true;
    case StoryKind::kGpuFault:
      out = MarkKind::kFault;
      return true;
    case StoryKind::kSecurityFinding:
      out = MarkKind::kFinding;
      return true;
    case StoryKind::kShareGranted:
    case StoryKind::kShareExported:
    case StoryKind::kShareImported:
    case StoryKind::kShareDuplicated:
    case StoryKind::kPeerEnabled:
    case StoryKind::kMemoryInherited:
      out = MarkKind::kShare;
      return true;
    default:
      return false;
  }
}

GpuCurve& curve_for(std::vector<GpuCurve>& curves, const StoryEvent& event) {
  const auto at = std::find_if(curves.begin(), curves.end(), [&](const GpuCurve& curve) {
    return event.gpu_device >= 0 ? curve.device == event.gpu_device
                                 : curve.device < 0 && curve.minor == event.gpu_minor;
  });
  GpuCurve& curve = at != curves.end() ? *at : curves.emplace_back(GpuCurve{event.gpu_minor, event.gpu_device, {}});
  if (curve.minor < 0) curve.minor = event.gpu_minor;
  return curve;
}

template <typename Line>
Line* open_line(std::vector<Line>& lines, std::uint64_t id) {
  const auto at = std::find_if(lines.rbegin(), lines.rend(),
                               [id](const Line& line) { return line.id == id && line.to_ns == kOpenEnd; });
  return at == lines.rend() ? nullptr : &*at;
}

}  // namespace

void Curve::add(std::uint64_t time_ns, std::uint64_t value, std::size_t limit) {
  if (value > peak) {
    peak = value;
    peak_ns = time_ns;
  }
  last = value;
  if (!points.empty() && points.back().time_ns >= time_ns) {
    points.back().value = value;
    return;
  }
  points.push_back({time_ns, value});
  if (points.size() < std::max<std::size_t>(limit, 4)) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i + 1 < points.size(); i += 2)
    points[kept++] = {points[i].time_ns, std::max(points[i].value, points[i + 1].value)};
  if (points.size() % 2 == 1) points[kept++] = points.back();
  // The last pair's value is what holds from here on, not its larger one.
  points.resize(kept);
  if (points.back().value != value && points.back().time_ns < time_ns) points.push_back({time_ns, value});
}

void Strip::add(std::uint64_t time_ns, std::size_t limit) {
  if (bins.empty()) from_ns = time_ns;
  const std::uint64_t after = time_ns > from_ns ? time_ns - from_ns : 0;
  while (after / width_ns >= limit) {
    for (std::size_t i = 0; i < bins.size(); i += 2) bins[i / 2] = bins[i] + (i + 1 < bins.size() ? bins[i + 1] : 0);
    bins.resize((bins.size() + 1) / 2);
    width_ns *= 2;
  }
  const std::size_t bin = static_cast<std::size_t>(after / width_ns);
  if (bin >= bins.size()) bins.resize(bin + 1);
  ++bins[bin];
}

struct Timeline::Impl {
  Impl(Summary::ActorLookup lookup, TimelineLimits set) : who(std::move(lookup)), limits(set) {}

  Summary::ActorLookup who;
  TimelineLimits limits;
  TimelineResult out;
  std::unordered_map<model::ProcessKey, std::size_t, ProcessHash> index;  // into out.processes
  std::unordered_set<model::ProcessKey, ProcessHash> left_out;

  ProcessLine* line_for(const gpuwatch_rec& head) {
    const model::ProcessKey key{head.start_ns, head.tgid};
    if (const auto at = index.find(key); at != index.end()) return &out.processes[at->second];
    if (out.processes.size() >= limits.processes) {
      if (left_out.size() < (std::size_t{1} << 20)) left_out.insert(key);
      return nullptr;
    }
    index.emplace(key, out.processes.size());
    ProcessLine& line = out.processes.emplace_back();
    line.who.pid = head.tgid;
    line.who.start_ns = head.start_ns;
    line.who.uid = head.uid;
    line.who.cgroup_id = head.cgroup_id;
    line.who.comm.assign(model::comm_of(head));
    fill_identity(line.who, who(head));
    return &line;
  }

  void observe(const Call& call) {
    const gpuwatch_rec& head = call.record.head;
    if (!is_call(call)) {
      if (call.kind != CallKind::kTask) return;
      const auto at = index.find({head.start_ns, head.tgid});
      if (at != index.end()) fill_identity(out.processes[at->second].who, who(head));
      return;
    }
    const std::uint64_t begin_ns = head.time_ns - std::min<std::uint64_t>(head.time_ns, call.duration_ns);
    if (out.origin_ns == 0 || begin_ns < out.origin_ns) out.origin_ns = begin_ns;
    out.end_ns = std::max<std::uint64_t>(out.end_ns, head.time_ns);
    ProcessLine* line = line_for(head);
    if (line == nullptr) {
      ++out.calls_left_out;
      return;
    }
    if (line->calls++ == 0) line->from_ns = begin_ns;
    line->from_ns = std::min(line->from_ns, begin_ns);
    line->to_ns = std::max<std::uint64_t>(line->to_ns, head.time_ns);
    line->driver_ns += call.duration_ns;
    line->strip.add(head.time_ns, limits.bins);
  }

  template <typename Line>
  static Line* begin(std::vector<Line>& lines, std::size_t limit, std::uint64_t& beyond, std::uint64_t id,
                     std::uint64_t time_ns) {
    if (lines.size() >= limit) {
      ++beyond;
      return nullptr;
    }
    Line& line = lines.emplace_back();
    line.id = id;
    line.from_ns = time_ns;
    return &line;
  }

  void on_context(ProcessLine& line, const StoryEvent& event, const model::ContextBody& body) {
    ContextLine* context = open_line(line.contexts, body.id);
    if (event.kind == StoryKind::kContextDestroyed) {
      if (context != nullptr) context->to_ns = event.head.time_ns;
      return;
    }
    if (context == nullptr && event.kind == StoryKind::kContextCreated)
      context = begin(line.contexts, limits.contexts, line.contexts_left_out, body.id,
                      body.started_ns != 0 ? body.started_ns : event.head.time_ns);
    if (context == nullptr) return;
    context->groups = body.groups;
    context->channels = body.channels;
    context->gpu_minor = event.gpu_minor;
  }

  void on_channel(ProcessLine& line, const StoryEvent& event, const model::ChannelBody& body) {
    const std::uint64_t id = std::uint64_t{body.client} << 32 | body.object;
    if (event.kind == StoryKind::kChannelDestroyed) {
      if (ChannelLine* channel = open_line(line.channels, id)) channel->to_ns = event.head.time_ns;
      return;
    }
    if (ChannelLine* channel = begin(line.channels, limits.channels, line.channels_left_out, id, event.head.time_ns)) {
      channel->use = use_of(body);
      channel->engine = body.engine_name;
    }
  }

  void on_memory(ProcessLine& line, const StoryEvent& event, const model::MemoryBody& body) {
    if (event.kind == StoryKind::kMemoryRefused) return;
    const std::uint64_t time_ns = event.head.time_ns;
    if (body.location == model::Location::kHost) line.host_peak = std::max(line.host_peak, body.live_bytes);
    if (body.location == model::Location::kPinned) line.pinned_peak = std::max(line.pinned_peak, body.live_bytes);
    if (body.location != model::Location::kGpu) return;
    curve_for(line.gpus, event).memory.add(time_ns, body.live_bytes, limits.points);
    curve_for(out.gpus, event).memory.add(time_ns, body.gpu_live_bytes, limits.points);
  }

  void observe(const StoryEvent& event) {
    if (event.kind >= StoryKind::kCount || event.kind == StoryKind::kDriverState) return;
    ProcessLine* line = line_for(event.head);
    if (line == nullptr) return;
    fill_identity(line->who, who(event.head));
    if (const auto* context = std::get_if<model::ContextBody>(&event.body)) on_context(*line, event, *context);
    if (const auto* channel = std::get_if<model::ChannelBody>(&event.body)) on_channel(*line, event, *channel);
    if (const auto* memory = std::get_if<model::MemoryBody>(&event.body)) on_memory(*line, event, *memory);
    MarkKind kind{};
    if (!mark_kind(event.kind, kind)) return;
    if (line->marks.size() >= limits.marks)
      ++line->marks_left_out;
    else
      line->marks.push_back({kind, event.head.time_ns, mark_text(event)});
  }
};

Timeline::Timeline(Summary::ActorLookup who, TimelineLimits limits)
    : impl_(std::make_unique<Impl>(std::move(who), limits)) {}
Timeline::~Timeline() = default;
Timeline::Timeline(Timeline&&) noexcept = default;
Timeline& Timeline::operator=(Timeline&&) noexcept = default;

void Timeline::observe(const Call& call) {
  impl_->observe(call);
}

void Timeline::observe(const StoryEvent& event) {
  impl_->observe(event);
}

TimelineResult Timeline::result() const {
  TimelineResult result = impl_->out;
  result.processes_left_out = impl_->left_out.size();
  std::erase_if(result.processes, [](const ProcessLine& line) { return line.calls == 0; });
  std::stable_sort(result.processes.begin(), result.processes.end(),
                   [](const ProcessLine& a, const ProcessLine& b) { return a.from_ns < b.from_ns; });
  return result;
}

}  // namespace gpuwatch::report
