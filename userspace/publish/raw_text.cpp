// SPDX-License-Identifier: Apache-2.0
// append_raw_line: every record as one line, nothing left out but zero values
// that say nothing, nothing interpreted beyond names.
#include <string_view>

#include "model/definitions.h"
#include "publish/colour.h"
#include "publish/fields.h"
#include "publish/format.h"
#include "publish/text.h"
#include "publish/words.h"

namespace gpuwatch::publish {

namespace {

using model::Call;
using model::CallKind;
using model::Field;
using model::Space;
using model::Tag;

enum class Style : std::uint8_t { kHex, kHexUnlessZero, kDecimal, kBytes, kBytesUnlessZero };

struct Label {
  std::string_view text;
  Field field;
  Style style;
};

// In print order. Class, control, parameters and status have their own form.
constexpr Label kLabels[] = {
    {"parent", Field::kParent, Style::kHex},
    {"object", Field::kObject, Style::kHex},
    {"source_client", Field::kSourceClient, Style::kHex},
    {"source_object", Field::kSourceObject, Style::kHex},
    {"function", Field::kFunction, Style::kHex},
    {"device", Field::kDevice, Style::kDecimal},
    {"engine", Field::kEngine, Style::kHexUnlessZero},
    {"vaspace", Field::kVaspace, Style::kHexUnlessZero},
    {"entries", Field::kEntries, Style::kDecimal},
    {"bytes", Field::kBytes, Style::kBytes},
    {"addr", Field::kAddress, Style::kHexUnlessZero},
    {"offset", Field::kOffset, Style::kHexUnlessZero},
    {"len", Field::kLength, Style::kBytes},
    {"flags", Field::kFlags, Style::kHexUnlessZero},
};

// Writes "name=" with the blank that separates it from the value before it.
class Arguments {
 public:
  explicit Arguments(std::string& out) : out_(out) {}
  std::string& name(std::string_view label) {
    if (!first_) out_ += ' ';
    first_ = false;
    out_ += label;
    out_ += '=';
    return out_;
  }
  bool empty() const { return first_; }

 private:
  std::string& out_;
  bool first_ = true;
};

void append_field(Arguments& arguments, const Call& call, const Label& label) {
  const std::uint64_t value = call.get(label.field);
  const bool hides_zero = label.style == Style::kHexUnlessZero || label.style == Style::kBytesUnlessZero;
  if (!call.has(label.field) || (hides_zero && value == 0)) return;
  const bool makes = label.field == Field::kObject && (call.tag == Tag::kAlloc || call.tag == Tag::kAllocMemory);
  std::string& out = arguments.name(makes ? "new" : label.text);
  switch (label.style) {
    case Style::kHex:
    case Style::kHexUnlessZero:
      format::append_hex(out, value);
      break;
    case Style::kDecimal:
      format::append_number(out, value);
      break;
    case Style::kBytes:
    case Style::kBytesUnlessZero:
      format::append_number(out, value);
      out += 'B';
      break;
  }
}

void append_named_number(std::string& out, std::string_view name, std::uint64_t number) {
  if (name.empty())
    format::append_hex(out, number);
  else
    out += name;
}

void append_ioctl_arguments(std::string& out, const Call& call) {
  Arguments arguments(out);
  if (call.has(Field::kClient)) format::append_hex(arguments.name("client"), call.get(Field::kClient));
  if (call.has(Field::kClass)) append_named_number(arguments.name("class"), call.detail, call.get(Field::kClass));
  if (call.has(Field::kControl)) {
    append_named_number(arguments.name("cmd"), call.detail, call.get(Field::kControl));
    if (call.detail.empty() && !call.interface.empty()) arguments.name("interface") += call.interface;
  }
  for (const Label& label : kLabels) append_field(arguments, call, label);
  if (call.has(Field::kFd))
    format::append_signed(arguments.name("fd"), static_cast<std::int32_t>(call.get32(Field::kFd)));
  if (call.get(Field::kParamsAddress) != 0 || call.get(Field::kParamsSize) != 0) {
    // Allocations mostly leave the size to the class.
    const std::uint64_t declared = call.get(Field::kParamsSize);
    format::append_number(arguments.name("params"), declared != 0 ? declared : call.params_expected_bytes);
    out += 'B';
  }
  if (arguments.empty() && call.arg_bytes != 0) {
    format::append_number(arguments.name("size"), call.arg_bytes);
    out += 'B';
  }
}

void append_ioctl(std::string& out, const Call& call) {
  out += (call.record.head.flags & GPUWATCH_F_COMPAT) != 0 ? "ioctl32(" : "ioctl(";
  append_node(out, call);
  out += ", ";
  if ((call.record.head.flags & GPUWATCH_F_XFER) != 0) out += "NV_ESC_IOCTL_XFER_CMD/";
  if (!call.name.empty()) {
    out += call.name;
  } else {
    format::append_hex(out, call.request);
    if (call.number != call.request) {
      out += '/';
      format::append_number(out, call.number);
    }
    out += " /* ??? */";
  }
  out += ", {";
  append_ioctl_arguments(out, call);
  out += call.truncated ? " ...})" : "})";
}

void append_open_flags(std::string& out, std::uint64_t flags) {
  static constexpr std::string_view kAccess[] = {"O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"};
  out += kAccess[flags & 3];
  if ((flags & ~std::uint64_t{3}) == 0) return;
  out += '|';
  format::append_hex(out, flags & ~std::uint64_t{3});
}

void append_mmap(std::string& out, const Call& call) {
  const std::uint64_t flags = call.get(Field::kFlags);
  out += "mmap(";
  append_node(out, call);
  out += ", {addr=";
  format::append_hex(out, call.get(Field::kAddress));
  out += " len=";
  format::append_number(out, call.get(Field::kLength));
  out += "B offset=";
  format::append_hex(out, call.get(Field::kOffset));
  out += " prot=";
  out += (flags & 1) != 0 ? 'r' : '-';
  out += (flags & 2) != 0 ? 'w' : '-';
  out += (flags & 4) != 0 ? 'x' : '-';
  out += (flags & model::kMmapShared) != 0 ? " shared})" : " private})";
}

void append_result(std::string& out, const Call& call, const TextOptions& options) {
  out += " = ";
  colour::Scope red(out, options.colour && call.failed, colour::kRed);
  format::append_signed(out, call.ret);
  if (call.ret < 0) {
    out += ' ';
    format::append_errno(out, call.ret);
  } else if (call.has(Field::kStatus)) {
    out += ' ';
    append_named_number(out, call.status_name, call.get(Field::kStatus));
  }
}

void append_definition(std::string& out, const Call& call) {
  const gpuwatch_rec& head = call.record.head;
  if (const auto task = model::parse_task(call.record)) {
    out += "task {pid=";
    format::append_number(out, head.tgid);
    out += " ns_pid=";
    format::append_number(out, task->fixed.ns_tgid);
    out += " ns_level=";
    format::append_number(out, task->fixed.ns_level);
    out += " parent=";
    format::append_number(out, task->fixed.parent_tgid);
    out += " exe=";
    append_quoted(out, task->path);
    out += '}';
  } else if (const auto cgroup = model::parse_cgroup(call.record)) {
    out += "cgroup {id=";
    format::append_number(out, head.cgroup_id);
    out += " v";
    format::append_number(out, cgroup->fixed.version);
    out += " path=";
    append_quoted(out, cgroup->path);
    out += '}';
  } else if (const auto state = model::parse_state(call.record)) {
    out += "state {";
    append_named_number(out, format::state_name(state->event), state->event);
    if (!state->name.empty()) {
      out += " module=";
      append_quoted(out, state->name);
    }
    if (state->value != 0) {
      out += " value=";
      format::append_number(out, state->value);
    }
    out += '}';
    if (state->error < 0) {
      out += " = ";
      format::append_errno(out, state->error);
    }
  }
}

void append_image(std::string& out, const Call& call) {
  const auto image = model::parse_image(call.record);
  if (!image) return;
  const gpuwatch_rec_image& fixed = image->fixed;
  append_word(out, image->symbol);
  out += "({";
  out += format::image_kind_name(fixed.kind);
  if (fixed.kind == GPUWATCH_IMAGE_PATH) {
    out += ' ';
    append_quoted(out, image->path());
  } else if (fixed.kind != GPUWATCH_IMAGE_CALL) {
    out += " address=";
    format::append_hex(out, fixed.image_address);
    out += " size=";
    format::append_number(out, fixed.bytes);
    out += "B";
    if (fixed.nr_parts > 1) {
      out += " parts=";
      format::append_number(out, fixed.nr_parts);
    }
    if (fixed.copied_bytes != fixed.bytes) {
      out += " stored=";
      format::append_number(out, fixed.copied_bytes);
      out += "B";
    }
  }
  if (fixed.id != 0) {
    out += " image=";
    format::append_number(out, fixed.id);
  }
  format::each_image_flag(fixed.flags, [&](std::string_view name) {
    out += ' ';
    out += name;
  });
  out += "})";
}

void append_who(std::string& out, const Call& call, const model::Actor& actor) {
  const gpuwatch_rec& head = call.record.head;
  if (!actor.container_id.empty()) {
    out += actor.runtime;
    out += ':';
    out += actor.container_short_id();
    out += ' ';
  }
  append_word(out, model::comm_of(head));
  out += '/';
  format::append_number(out, head.tgid);
  if (head.tid != head.tgid) {
    out += ':';
    format::append_number(out, head.tid);
  }
}

}  // namespace

void append_lone_call(std::string& out, const LoneCall& lone, const Call& call, const model::Description& description,
                      const TextOptions& options) {
  append_ioctl(out, call);
  if (lone.outcome_known)
    append_result(out, call, options);
  else
    out += " = ?";
  out += '\n';
  append_fields(out, description);
}

void append_raw_line(std::string& out, const Call& call, const model::Actor& actor, const TextOptions& options) {
  format::append_time(out, call.record.begin_ns(), options.realtime_offset_ns, options.utc_offset_s, 6);
  out += ' ';
  append_who(out, call, actor);
  out += ' ';
  switch (call.kind) {
    case CallKind::kIoctl:
      append_ioctl(out, call);
      append_result(out, call, options);
      break;
    case CallKind::kMmap:
      append_mmap(out, call);
      append_result(out, call, options);
      break;
    case CallKind::kOpen:
      out += "open(";
      append_node(out, call);
      out += ", ";
      append_open_flags(out, call.get(Field::kFlags));
      out += ')';
      append_result(out, call, options);
      break;
    case CallKind::kRelease:
      out += "release(";
      append_node(out, call);
      out += ')';
      break;
    case CallKind::kTask:
    case CallKind::kCgroup:
    case CallKind::kState:
      append_definition(out, call);
      break;
    case CallKind::kImage:
      append_image(out, call);
      break;
    case CallKind::kMalformed:
      out += "malformed record type ";
      format::append_number(out, call.record.head.type);
      break;
    case CallKind::kUnknown:
      out += "record type ";
      format::append_number(out, call.record.head.type);
      out += " /* ??? */";
      break;
  }
  if (call.duration_ns != 0) {
    out += " <";
    format::append_duration(out, call.duration_ns);
    out += '>';
  }
  out += '\n';
}

void append_node(std::string& out, const Call& call) {
  format::append_node(out, call.node, call.record.head.node_kind, call.record.head.rdev);
}

}  // namespace gpuwatch::publish
