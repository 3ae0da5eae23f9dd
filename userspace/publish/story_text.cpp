// SPDX-License-Identifier: Apache-2.0
// append_story_line: the default view, in words. Columns keep their width as
// long as the values fit; a longer value pushes the rest, nothing is cut.
#include <algorithm>
#include <variant>

#include "model/definitions.h"
#include "publish/colour.h"
#include "publish/format.h"
#include "publish/text.h"
#include "publish/words.h"

namespace gpuwatch::publish {

namespace {

using model::StoryEvent;
using model::StoryKind;

constexpr std::size_t kNameShown = 80;
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

void append_count(std::string& out, std::uint64_t count, std::string_view what) {
  format::append_number(out, count);
  out += ' ';
  out += what;
  if (count != 1) out += 's';
}

void append_status(std::string& out, std::int64_t ret, std::uint32_t status, std::string_view status_name) {
  if (ret < 0)
    format::append_errno(out, ret);
  else if (!status_name.empty())
    out += status_name;
  else
    format::append_hex(out, status);
}

// "pid 12 client 0xc1d00024 object 0x5c000002", as far as known.
void append_party(std::string& out, const model::Party& party) {
  const std::size_t from = out.size();
  const auto word = [&](std::string_view name) {
    if (out.size() != from) out += ' ';
    out += name;
  };
  if (party.process.tgid != 0) {
    word("pid ");
    format::append_number(out, party.process.tgid);
  }
  if (party.client != 0) {
    word("client ");
    format::append_hex(out, party.client);
  }
  if (party.object != 0) {
    word("object ");
    format::append_hex(out, party.object);
  }
  if (out.size() == from) out += "unknown";
}

std::string_view location_words(model::Location location) {
  switch (location) {
    case model::Location::kHost:
      return "host memory ";
    case model::Location::kPinned:
      return "pinned memory ";
    case model::Location::kFabric:
      return "fabric memory ";
    default:
      return "GPU memory ";
  }
}

// What an event says, by body; `kind` tells apart those that share one.
struct Words {
  std::string& out;
  const StoryEvent& event;
  const TextOptions& options;

  void operator()(const std::monostate&) const { out += model::story_kind_info(event.kind).name; }

  void operator()(const model::GpuBody& body) const {
    if (event.kind != StoryKind::kOpenFailed) {
      out += event.kind == StoryKind::kGpuOpened ? "GPU opened" : "GPU closed";
      const model::Gpu* gpu = options.gpus == nullptr ? nullptr : model::find_gpu(*options.gpus, event.gpu_minor);
      if (event.kind == StoryKind::kGpuOpened && gpu != nullptr && !gpu->name.empty())
        base::append_escaped(out += ": ", gpu->name);
      return;
    }
    out += "open of ";
    out += body.node;
    if (event.gpu_minor >= 0) format::append_signed(out, event.gpu_minor);
    out += " refused: ";
    format::append_errno(out, body.ret);
  }

  void operator()(const model::ClientBody& body) const {
    out += "RM client ";
    format::append_hex(out, body.client);
    if (event.kind != StoryKind::kClientClosed) return;
    out += " closed";
    if (body.objects == 0) return;
    out += body.by_file ? " with its file, " : ", ";
    append_count(out, body.objects, "object");
  }

  void operator()(const model::ContextBody& body) const {
    out += event.kind == StoryKind::kContextDestroyed ? "context closed: "
           : event.kind == StoryKind::kContextChanged ? "context now: "
                                                      : "context: ";
    append_count(out, body.channels, "channel");
    out += " in ";
    append_count(out, body.groups, "group");
    const char* separator = " (";
    const auto part = [&](std::uint32_t count, std::string_view what) {
      if (count == 0) return;
      out += separator;
      separator = ", ";
      format::append_number(out, count);
      out += ' ';
      out += what;
    };
    part(body.compute, "compute");
    part(body.graphics, "graphics");
    part(body.video, "video");
    part(body.copy, "copy");
    if (*separator == ',') out += ')';
  }

  void operator()(const model::ChannelBody& body) const {
    out += event.kind == StoryKind::kChannelCreated ? "channel " : "channel closed: ";
    format::append_hex(out, body.object);
    if (!body.engine_name.empty()) {
      out += " on ";
      out += body.engine_name;
    }
    if (body.group != 0) {
      out += ", group ";
      format::append_hex(out, body.group);
    }
    out += ", ";
    format::append_number(out, body.entries);
    out += " entries";
  }

  void operator()(const model::MemoryBody& body) const {
    out += location_words(body.location);
    if (event.kind == StoryKind::kMemoryRefused) {
      append_bytes(out, body.bytes);
      out += " refused: ";
      append_status(out, 0, body.status, body.status_name);
      return;
    }
    out += event.kind == StoryKind::kMemoryFreed || event.kind == StoryKind::kMemoryUnpinned ? '-' : '+';
    append_bytes(out, body.bytes);
    if (body.objects > 1) {
      out += " (";
      append_count(out, body.objects, "object");
      out += ')';
    }
    out += ", now ";
    append_bytes(out, body.live_bytes);
    if (event.kind == StoryKind::kMemoryInherited) {
      out += ", taken over from ";
      append_party(out, body.from);
    } else if (body.live_bytes == 0 && body.peak_bytes != 0) {
      out += ", peak ";
      append_bytes(out, body.peak_bytes);
    }
  }

  void operator()(const model::MappingBody& body) const {
    out += event.kind == StoryKind::kMemoryMapped ? "mapped " : "unmapped ";
    append_bytes(out, body.bytes);
    out += body.space == model::MapSpace::kCpu ? " for the CPU at " : " at ";
    format::append_hex(out, body.address);
    if (body.foreign) out += " of another process";
  }

  void operator()(const model::ShareBody& body) const {
    switch (event.kind) {
      case StoryKind::kPeerEnabled:
        out += "peer access between GPUs on";
        return;
      case StoryKind::kPeerDisabled:
        out += "peer access between GPUs off";
        return;
      case StoryKind::kShareGranted:
        out += "others may share ";
        break;
      case StoryKind::kShareExported:
        out += "exported ";
        break;
      case StoryKind::kShareImported:
        out += "imported ";
        break;
      default:
        out += "shares ";
    }
    if (body.bytes != 0) {
      append_bytes(out, body.bytes);
      out += ' ';
    }
    out += body.name;
    if (event.kind == StoryKind::kShareImported || event.kind == StoryKind::kShareDuplicated) {
      out += " of ";
      append_party(out, body.from);
    } else {
      out += ' ';
      format::append_hex(out, body.from.object);
    }
  }

  void operator()(const model::SyncBody& body) const {
    out += "synchronization: ";
    out += body.name;
    if (body.bytes == 0) return;
    out += ", ";
    append_bytes(out, body.bytes);
  }

  void operator()(const model::SignBody& body) const {
    out += event.kind == StoryKind::kMigUsed ? "MIG: " : "MPS: ";
    out += body.name;
  }

  void operator()(const model::FaultBody& body) const {
    out += "GPU fault: the program reads the error state (";
    out += body.name;
    out += ')';
  }

  void operator()(const model::DenialBody& body) const {
    out += "denied: ";
    if (body.name.empty())
      format::append_hex(out, body.number);
    else
      out += body.name;
    if (!body.detail.empty()) {
      out += ' ';
      out += body.detail;
    } else if (!body.name.empty() && body.number != 0) {
      out += ' ';
      format::append_hex(out, body.number);
    }
    out += ": ";
    append_status(out, body.ret, body.status, body.status_name);
  }

  void operator()(const model::FindingBody& body) const {
    out += "finding: ";
    out += body.reason;
    out += ": ";
    if (body.name.empty())
      format::append_hex(out, body.number);
    else
      out += body.name;
    if (body.target.client != 0) {
      out += " on ";
      append_party(out, body.target);
    }
    if (!body.failed) return;
    out += ", refused: ";
    append_status(out, 0, body.status, body.status_name);
  }

  void operator()(const model::AllocationBody& body) const {
    out += body.reason == "own_node" ? "GPU used through a node of its own making"
                                     : "GPU used that the container was not given";
    if (body.evidence.empty()) return;
    out += ": ";
    base::append_escaped(out, body.evidence);
  }

  void operator()(const model::ModuleBody& body) const {
    const bool found = event.kind == StoryKind::kModuleFound;
    out += found ? "module in memory: " : "module loaded: ";
    if (body.name.empty() && body.image_kind == "text")
      out += "PTX";
    else
      append_word(out, body.name.empty() ? body.image_kind : body.name.substr(0, kNameShown));
    if (body.deciding < body.modules.size()) append_module(body);
    if (!body.loader.empty()) {
      out += " by ";
      append_word(out, body.loader);
    }
    if (!body.source.empty()) {
      out += " from ";
      append_word(out, file_name(body.source));
    } else if (body.place == model::ImagePlace::kMemory) {
      out += " from memory";
    }
    if (body.judged) {
      out += ": ";
      out += model::verdict_name(body.verdict);
      base::append_escaped(out += ": ", body.why);
    } else if (!body.problem.empty()) {
      base::append_escaped(out += ": ", body.problem);
    }
    if (found) out += " (was in memory; that it was loaded is not known)";
    for (const model::Difference& difference : body.differences) append_difference(difference);
  }

  // Behind the last slash; of a memfd without the words that all of them end in.
  static std::string_view file_name(std::string_view path) {
    constexpr std::string_view kDeleted = " (deleted)";
    if (path.starts_with("/memfd:") && path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
    return path.substr(path.rfind('/') + 1);
  }

  void append_module(const model::ModuleBody& body) const {
    const model::ModuleLine& module = body.modules[body.deciding];
    out += " (";
    if (module.sm != 0) {
      out += "sm_";
      format::append_number(out, module.sm);
      if (module.sm_suffix != 0) out += module.sm_suffix;
      out += ' ';
    }
    if (module.kind != model::CodeKind::kElf) {
      out += module.kind == model::CodeKind::kPtx ? "PTX" : model::code_kind_name(module.kind);
    } else {
      append_count(out, module.kernels, "kernel");
    }
    if (body.modules.size() > 1) {
      out += ", one of ";
      append_count(out, body.modules.size(), "module");
    }
    out += ", R ";
    out += model::hex_of(module.r).substr(0, 12);
    out += ')';
  }

  void append_difference(const model::Difference& difference) const {
    out += "\n    ";
    base::append_escaped(out, difference.kernel.empty() ? "module" : difference.kernel);
    for (const std::string& part :
         {", " + difference.section, ": " + difference.what, ": " + difference.baseline, " -> " + difference.seen})
      base::append_escaped(out, part);
  }

  void operator()(const model::UnverifiedBody& body) const {
    out += "unverified: ";
    append_count(out, body.channels, "channel");
    out += " for ";
    format::append_number(out, body.waited_ns / 1'000'000'000u);
    out += " s, and no load of code was seen";
  }

  void operator()(const model::ProbedBody& body) const {
    if (!body.problem.empty()) {
      out += "GPU memory not probed: ";
      base::append_escaped(out, body.problem);
      return;
    }
    out += "GPU memory probed: ";
    append_count(out, body.match, "function");
    out += " as loaded, ";
    format::append_number(out, body.differ);
    out += " different, ";
    format::append_number(out, body.not_probed);
    out += " not probed";
  }

  void operator()(const model::DiffersBody& body) const {
    out += "code in GPU memory differs: ";
    base::append_escaped(out, body.kernel);
    if (!body.image.empty()) {
      out += " of ";
      base::append_escaped(out, body.image);
    }
    out += ", ";
    append_count(out, body.different_bytes, "byte");
    out += ", first at offset ";
    format::append_number(out, body.first_offset);
    if (!body.reason.empty()) {
      out += "; ";
      base::append_escaped(out, body.reason);
    }
  }

  void operator()(const model::StateBody& body) const {
    const std::string_view all(body.name.data(), body.name.size());
    const std::string_view module = all.substr(0, std::min(all.find('\0'), all.size()));
    switch (body.event) {
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
        out += format::state_name(body.event);
        if (!module.empty()) out += ": ";
    }
    append_word(out, module);
    if (body.error < 0) {
      out += ": ";
      format::append_errno(out, body.error);
    }
  }
};

std::string_view colour_of(const StoryEvent& event) {
  if (event.view == model::StoryView::kDetail) return colour::kDim;
  switch (event.kind) {
    case StoryKind::kCallDenied:
    case StoryKind::kOpenFailed:
    case StoryKind::kMemoryRefused:
    case StoryKind::kSecurityFinding:
    case StoryKind::kUnallocatedUse:
    case StoryKind::kGpuFault:
    case StoryKind::kUnverified:
    case StoryKind::kCodeDiffers:
      return colour::kRed;
    case StoryKind::kModuleLoad:
    case StoryKind::kModuleFound: {
      const auto* body = std::get_if<model::ModuleBody>(&event.body);
      const bool bad = body != nullptr && body->judged && body->verdict >= model::Verdict::kUnverified;
      return bad ? colour::kRed : std::string_view();
    }
    case StoryKind::kContextCreated:
    case StoryKind::kGpuOpened:
      return colour::kGreen;
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

std::size_t append_story_line(std::string& out, const StoryEvent& event, const model::Actor& actor,
                              const TextOptions& options) {
  const std::size_t line = out.size();
  std::size_t from = line;
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
  const std::size_t what = out.size() - line;
  const std::string_view code = colour_of(event);
  {
    colour::Scope scope(out, options.colour && !code.empty(), code);
    std::visit(Words{out, event, options}, event.body);
  }
  out += '\n';
  return what;
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
