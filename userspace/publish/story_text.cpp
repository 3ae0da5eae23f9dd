// SPDX-License-Identifier: Apache-2.0
// append_story_line: the default view, in words. Columns keep their width as
// long as the values fit; a longer value pushes the rest, nothing is cut.
#include "model/definitions.h"
#include "publish/colour.h"
#include "publish/format.h"
#include "publish/text.h"
#include "publish/words.h"

namespace gpuwatch::publish {

namespace {

using model::StoryEvent;
using model::StoryKind;

constexpr std::size_t kTimeWidth = 13;
constexpr std::size_t kContainerWidth = 24;
constexpr std::size_t kProcessWidth = 24;
constexpr std::size_t kGpuWidth = 6;

void append_container(std::string& out, const model::Actor& actor) {
  if (actor.container_id.empty()) {
    out += '-';
    return;
  }
  out += actor.runtime;
  out += ':';
  out += actor.container_short_id();
}

void append_gpu(std::string& out, const StoryEvent& event) {
  if (event.gpu_minor >= 0) {
    out += "gpu";
    format::append_signed(out, event.gpu_minor);
  } else if (event.gpu_device >= 0) {
    out += "dev";
    format::append_signed(out, event.gpu_device);
  } else {
    out += '-';
  }
}

void append_memory(std::string& out, const StoryEvent& event, char sign) {
  out += event.host_memory ? "host memory " : "GPU memory ";
  out += sign;
  append_bytes(out, event.bytes);
  out += ", now ";
  append_bytes(out, event.total_bytes);
}

void append_context(std::string& out, const StoryEvent& event) {
  out += "context: ";
  format::append_number(out, event.channels);
  out += event.channels == 1 ? " channel" : " channels";
  for (std::uint32_t i = 0; i < event.engine_count; ++i) {
    out += i == 0 ? " with " : ", ";
    out += event.engines[i];
  }
  out += " (group ";
  format::append_hex(out, event.object);
  out += ')';
}

void append_context_end(std::string& out, const StoryEvent& event) {
  if (event.contexts > 1) {
    format::append_number(out, event.contexts);
    out += " contexts closed";
    return;
  }
  out += "context closed (group ";
  format::append_hex(out, event.object);
  out += ')';
}

void append_status(std::string& out, const StoryEvent& event) {
  if (event.ret < 0)
    format::append_errno(out, event.ret);
  else if (!event.status_name.empty())
    out += event.status_name;
  else
    format::append_hex(out, event.status);
}

void append_denial(std::string& out, const StoryEvent& event) {
  out += "denied: ";
  if (event.name.empty())
    format::append_hex(out, event.number);
  else
    out += event.name;
  if (!event.detail.empty()) {
    out += ' ';
    out += event.detail;
  } else if (!event.name.empty() && event.number != 0) {
    out += ' ';
    format::append_hex(out, event.number);
  }
  out += ": ";
  append_status(out, event);
}

void append_state(std::string& out, const StoryEvent& event) {
  const std::string_view all(event.state_name.data(), event.state_name.size());
  const std::string_view module = all.substr(0, std::min(all.find('\0'), all.size()));
  switch (event.state_event) {
    case GPUWATCH_STATE_DRIVER_LIVE:
      out += "driver loaded: ";
      break;
    case GPUWATCH_STATE_DRIVER_GOING:
      out += "driver unloading: ";
      break;
    case GPUWATCH_STATE_HOOK_FAILED:
      out += "cannot watch a function of ";
      break;
    default:
      out += "gpuwatch ";
      out += format::state_name(event.state_event);
      if (!module.empty()) out += ": ";
  }
  append_word(out, module);
  if (event.state_error < 0) {
    out += ": ";
    format::append_errno(out, event.state_error);
  }
}

void append_handles(std::string& out, const StoryEvent& event) {
  out += " client ";
  format::append_hex(out, event.source_client);
  if (event.source_object == 0) return;
  out += " object ";
  format::append_hex(out, event.source_object);
}

void append_gpu_name(std::string& out, const StoryEvent& event, const TextOptions& options) {
  const model::Gpu* gpu = options.gpus == nullptr ? nullptr : model::find_gpu(*options.gpus, event.gpu_minor);
  if (gpu == nullptr || gpu->name.empty()) return;
  base::append_escaped(out += ": ", gpu->name);
}

void append_what(std::string& out, const StoryEvent& event, const TextOptions& options) {
  switch (event.kind) {
    case StoryKind::kGpuOpened:
      out += "GPU opened";
      append_gpu_name(out, event, options);
      break;
    case StoryKind::kGpuClosed:
      out += "GPU closed";
      break;
    case StoryKind::kOpenFailed:
      out += "open of ";
      out += event.name;
      if (event.gpu_minor >= 0) format::append_signed(out, event.gpu_minor);
      out += " refused: ";
      format::append_errno(out, event.ret);
      break;
    case StoryKind::kClientCreated:
      out += "RM client ";
      format::append_hex(out, event.client);
      break;
    case StoryKind::kClientClosed:
      out += "RM client ";
      format::append_hex(out, event.client);
      out += " closed";
      break;
    case StoryKind::kContextCreated:
      append_context(out, event);
      break;
    case StoryKind::kContextClosed:
      append_context_end(out, event);
      break;
    case StoryKind::kMemoryAllocated:
      append_memory(out, event, '+');
      break;
    case StoryKind::kMemoryFreed:
      append_memory(out, event, '-');
      break;
    case StoryKind::kMemoryRefused:
      out += event.host_memory ? "host memory " : "GPU memory ";
      append_bytes(out, event.bytes);
      out += " refused: ";
      append_status(out, event);
      break;
    case StoryKind::kMemoryMapped:
      out += "mapped ";
      append_bytes(out, event.bytes);
      out += " at ";
      format::append_hex(out, event.address);
      break;
    case StoryKind::kMemoryUnmapped:
      out += "unmapped ";
      append_bytes(out, event.bytes);
      out += " at ";
      format::append_hex(out, event.address);
      break;
    case StoryKind::kPeerEnabled:
      out += "peer access between GPUs on";
      break;
    case StoryKind::kPeerDisabled:
      out += "peer access between GPUs off";
      break;
    case StoryKind::kExported:
      out += "memory exported: ";
      out += event.name;
      break;
    case StoryKind::kImported:
      out += "memory imported: ";
      out += event.name;
      break;
    case StoryKind::kDuplicated:
      out += "object taken over from";
      append_handles(out, event);
      break;
    case StoryKind::kForeignMemory:
      out += "memory of another process: ";
      out += event.name;
      break;
    case StoryKind::kDebuggerAttached:
      out += "debugger attached to";
      append_handles(out, event);
      break;
    case StoryKind::kProfilerAttached:
      out += "profiler: ";
      out += event.name;
      break;
    case StoryKind::kDenied:
      append_denial(out, event);
      break;
    case StoryKind::kDriverState:
      append_state(out, event);
      break;
  }
}

std::string_view colour_of(StoryKind kind) {
  switch (kind) {
    case StoryKind::kDenied:
    case StoryKind::kOpenFailed:
    case StoryKind::kMemoryRefused:
    case StoryKind::kForeignMemory:
    case StoryKind::kDebuggerAttached:
      return colour::kRed;
    case StoryKind::kContextCreated:
    case StoryKind::kGpuOpened:
      return colour::kGreen;
    case StoryKind::kMemoryMapped:
    case StoryKind::kMemoryUnmapped:
    case StoryKind::kClientCreated:
    case StoryKind::kClientClosed:
      return colour::kDim;
    default:
      return {};
  }
}

void append_titles(std::string& out) {
  std::size_t from = out.size();
  out += "TIME";
  format::pad_to(out, from, kTimeWidth);
  from = out.size();
  out += "CONTAINER";
  format::pad_to(out, from, kContainerWidth);
  from = out.size();
  out += "PROCESS";
  format::pad_to(out, from, kProcessWidth);
  from = out.size();
  out += "GPU";
  format::pad_to(out, from, kGpuWidth);
  out += "WHAT";
}

}  // namespace

void append_story_header(std::string& out, const TextOptions& options) {
  {
    colour::Scope bold(out, options.colour, colour::kBold);
    append_titles(out);
  }
  out += '\n';
}

void append_story_line(std::string& out, const StoryEvent& event, const model::Actor& actor,
                       const TextOptions& options) {
  std::size_t from = out.size();
  format::append_time(out, event.head.time_ns, options.realtime_offset_ns, options.utc_offset_s, 3);
  format::pad_to(out, from, kTimeWidth);
  from = out.size();
  append_container(out, actor);
  format::pad_to(out, from, kContainerWidth);
  from = out.size();
  if (event.kind == StoryKind::kDriverState) {
    out += '-';
  } else {
    append_word(out, model::comm_of(event.head));
    out += '/';
    format::append_number(out, event.head.tgid);
  }
  format::pad_to(out, from, kProcessWidth);
  from = out.size();
  append_gpu(out, event);
  format::pad_to(out, from, kGpuWidth);
  const std::string_view code = colour_of(event.kind);
  {
    colour::Scope scope(out, options.colour && !code.empty(), code);
    append_what(out, event, options);
  }
  out += '\n';
}

void append_bytes(std::string& out, std::uint64_t bytes) {
  static constexpr std::string_view kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  std::size_t unit = 0;
  std::uint64_t whole = bytes;
  std::uint64_t rest = 0;
  while (whole >= 1024 && unit + 1 < std::size(kUnits)) {
    rest = whole % 1024;
    whole /= 1024;
    ++unit;
  }
  format::append_number(out, whole);
  if (unit != 0) {
    out += '.';
    format::append_number(out, rest * 10 / 1024);
  }
  out += kUnits[unit];
}

}  // namespace gpuwatch::publish
