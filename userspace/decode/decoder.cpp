// SPDX-License-Identifier: Apache-2.0
// The hot path from record to Call: find the number in a table, then read the
// values that fields.in places in its struct. Knows the shape of each family of
// nodes, but no single command: those are data.
#include "decode/decoder.h"

#include <cerrno>

#include "decode/captures.h"
#include "decode/tables.h"
#include "model/definitions.h"

namespace gpuwatch::decode {

namespace {

using model::Call;
using model::CallKind;
using model::Field;
using model::Space;
using model::Tag;

constexpr std::string_view kNodes[GPUWATCH_NODE_MAX] = {"other",
                                                        "nvidiactl",
                                                        "nvidia",
                                                        "nvidia-uvm",
                                                        "nvidia-uvm-tools",
                                                        "nvidia-modeset",
                                                        "nvidia-caps",
                                                        "nvidia-caps-imex-channels",
                                                        "nvidia-nvswitch",
                                                        "nvidia-nvlink"};

// request words, as linux/ioctl.h lays them out on x86-64
constexpr std::uint32_t ioc_nr(std::uint32_t request) {
  return request & 0xFF;
}
constexpr std::uint32_t ioc_size(std::uint32_t request) {
  return (request >> 16) & 0x3FFF;
}

// Warnings of NV_STATUS mean success with a remark.
constexpr std::uint32_t kFirstWarning = 0x10000;

std::uint64_t load(const std::byte* at, unsigned width) {
  std::uint64_t value = 0;
  // Little endian on both sides: the low bytes are the value.
  if (width == 4)
    std::memcpy(&value, at, 4);
  else if (width == 8)
    std::memcpy(&value, at, 8);
  else
    std::memcpy(&value, at, width == 2 ? 2 : 1);
  return value;
}

// Of a large argument only the tail may have been copied after the call, and
// only the head before it, so a value of the caller's is taken from either.
void read_fields(Call& call, const tables::StructInfo& info, const CapturePart& before, const CapturePart& after) {
  // After an error the driver has not written back: what is there is the caller's.
  const bool written = call.ret >= 0;
  for (const tables::FieldSpec& spec : tables::fields_of(info)) {
    if (spec.source == 1 && !written) continue;
    const bool before_first = spec.source == 0 || !written;
    const std::byte* at = (before_first ? before : after).at(spec.offset, spec.width);
    if (at == nullptr && spec.source != 1) at = (before_first ? after : before).at(spec.offset, spec.width);
    if (at != nullptr) call.set(spec.field, load(at, spec.width) + spec.plus_one);
  }
}

void decode_open(Call& call) {
  const auto fixed = model::read_at<gpuwatch_rec_open>(call.record.payload, 0);
  if (!fixed) {
    call.kind = CallKind::kMalformed;
    return;
  }
  call.name = "open";
  call.ret = fixed->ret;
  call.duration_ns = fixed->duration_ns;
  call.set(Field::kFlags, fixed->f_flags);
}

void decode_mmap(Call& call) {
  const auto fixed = model::read_at<gpuwatch_rec_mmap>(call.record.payload, 0);
  if (!fixed) {
    call.kind = CallKind::kMalformed;
    return;
  }
  call.name = "mmap";
  call.ret = fixed->ret;
  call.duration_ns = fixed->duration_ns;
  call.set(Field::kAddress, fixed->addr);
  call.set(Field::kLength, fixed->length);
  call.set(Field::kOffset, fixed->offset);
  call.set(Field::kFlags, fixed->prot | (fixed->shared ? model::kMmapShared : 0U));
}

void decode_release(Call& call) {
  const auto fixed = model::read_at<gpuwatch_rec_release>(call.record.payload, 0);
  if (!fixed) {
    call.kind = CallKind::kMalformed;
    return;
  }
  call.name = "release";
  call.duration_ns = fixed->duration_ns;
}

void decode_definition(Call& call) {
  if (const auto task = model::parse_task(call.record)) {
    call.name = "task";
    call.path = task->path;
  } else if (const auto cgroup = model::parse_cgroup(call.record)) {
    call.name = "cgroup";
    call.path = cgroup->path;
  } else if (const auto state = model::parse_state(call.record)) {
    call.name = "state";
    call.path = state->name;
    call.failed = state->error < 0;
  } else {
    call.kind = CallKind::kMalformed;
  }
}

void decode_image(Call& call) {
  const auto image = model::parse_image(call.record);
  if (!image) {
    call.kind = CallKind::kMalformed;
    return;
  }
  call.name = "load";
  call.duration_ns = image->fixed.duration_ns;
  call.set(Field::kAddress, image->fixed.address);
  call.set(Field::kLength, image->fixed.bytes);
}

CallKind kind_of(std::uint16_t type) {
  switch (type) {
    case GPUWATCH_REC_OPEN:
      return CallKind::kOpen;
    case GPUWATCH_REC_IOCTL:
      return CallKind::kIoctl;
    case GPUWATCH_REC_MMAP:
      return CallKind::kMmap;
    case GPUWATCH_REC_RELEASE:
      return CallKind::kRelease;
    case GPUWATCH_REC_TASK:
      return CallKind::kTask;
    case GPUWATCH_REC_CGROUP:
      return CallKind::kCgroup;
    case GPUWATCH_REC_STATE:
      return CallKind::kState;
    case GPUWATCH_REC_IMAGE:
      return CallKind::kImage;
    default:
      return CallKind::kUnknown;
  }
}

}  // namespace

Decoder::Decoder(model::DriverVersion version) {
  use(version);
}

void Decoder::use(model::DriverVersion version) {
  const tables::BranchChoice choice = tables::choose_branch(version);
  branch_ = choice.index;
  inherited_ = choice.inherited;
  if (const auto* ok = tables::statuses.find(0, branch_)) ok_name_ = ok->name;
}

std::string_view Decoder::branch() const {
  return tables::branch(branch_).name;
}

Call Decoder::decode(const model::RawRecord& record) const {
  Call call;
  call.record = record;
  call.kind = kind_of(record.head.type);
  call.minor = record.head.rdev & 0xFFFFF;
  call.node = kNodes[record.head.node_kind < GPUWATCH_NODE_MAX ? record.head.node_kind : 0];
  call.named = true;
  ++stats_.records;
  switch (call.kind) {
    case CallKind::kIoctl:
      decode_ioctl(call);
      break;
    case CallKind::kOpen:
      decode_open(call);
      break;
    case CallKind::kMmap:
      decode_mmap(call);
      break;
    case CallKind::kRelease:
      decode_release(call);
      break;
    case CallKind::kTask:
    case CallKind::kCgroup:
    case CallKind::kState:
      decode_definition(call);
      break;
    case CallKind::kImage:
      decode_image(call);
      break;
    default:
      call.named = false;
      ++stats_.unknown_types;
  }
  if (call.kind == CallKind::kMalformed) ++stats_.malformed;
  if (call.ret < 0) {
    call.failed = true;
    call.denied = call.ret == -EPERM || call.ret == -EACCES;
  }
  return call;
}

void Decoder::decode_ioctl(Call& call) const {
  Captures captures;
  if (!captures.parse(call.record.payload)) {
    call.kind = CallKind::kMalformed;
    return;
  }
  call.request = captures.fixed.cmd;
  call.ret = captures.fixed.ret;
  call.duration_ns = captures.fixed.duration_ns;
  call.truncated = captures.truncated();
  call.arg_bytes = captures[GPUWATCH_CAP_ARG_IN].want;
  switch (call.record.head.node_kind) {
    case GPUWATCH_NODE_CTL:
    case GPUWATCH_NODE_GPU:
      decode_frontend(call, captures);
      break;
    case GPUWATCH_NODE_UVM:
    case GPUWATCH_NODE_UVM_TOOLS:
      decode_uvm(call, captures);
      break;
    case GPUWATCH_NODE_MODESET:
      decode_nvkms(call, captures);
      break;
    default:
      call.space = Space::kOther;
      call.number = call.request;
      call.named = false;
      ++stats_.unknown_other;
  }
}

void Decoder::decode_frontend(Call& call, const Captures& captures) const {
  const bool wrapped = (call.record.head.flags & GPUWATCH_F_XFER) != 0;
  call.space = Space::kFrontend;
  call.number = wrapped ? captures.fixed.inner_cmd : ioc_nr(call.request);
  call.arg_bytes = wrapped ? captures.fixed.inner_size : ioc_size(call.request);
  const tables::Entry* escape = tables::escapes.find(call.number, branch_);
  if (escape == nullptr) {
    call.named = false;
    ++stats_.unknown_escapes;
    return;
  }
  call.name = escape->name;
  call.tag = escape->tag;
  const tables::StructInfo* info = tables::struct_info(escape->struct_id, branch_);
  if (const auto* other = tables::struct_info(escape->other_struct_id, branch_);
      other != nullptr && other->bytes == call.arg_bytes)
    info = other;
  if (info == nullptr) return;
  call.expected_bytes = info->bytes;
  const bool fits = escape->is_array ? call.arg_bytes % info->bytes == 0 : call.arg_bytes == info->bytes;
  if (!fits) ++stats_.size_mismatches;
  read_fields(call, *info, captures[GPUWATCH_CAP_ARG_IN], captures[GPUWATCH_CAP_ARG_OUT]);
  name_status(call);
  if (call.has(Field::kClass)) {
    name_class(call, captures);
  } else if (call.has(Field::kControl)) {
    name_control(call, captures);
  }
}

void Decoder::name_class(Call& call, const Captures& captures) const {
  const tables::Entry* entry = tables::classes.find(call.get32(Field::kClass), branch_);
  if (entry == nullptr) {
    call.named = false;
    ++stats_.unknown_classes;
    return;
  }
  call.detail = entry->name;
  call.category = entry->category;
  call.class_tag = entry->tag;
  read_params(call, captures, entry->struct_id);
}

void Decoder::name_control(Call& call, const Captures& captures) const {
  const std::uint32_t control = call.get32(Field::kControl);
  if (const auto* interface = tables::interfaces.find(control >> 8, branch_)) call.interface = interface->name;
  const tables::Entry* entry = tables::controls.find(control, branch_);
  if (entry == nullptr) {
    call.named = false;
    ++stats_.unknown_controls;
    // Whole classes have no public commands: then the class says whose it is.
    if (call.interface.empty())
      if (const auto* rm_class = tables::classes.find(control >> 16, branch_)) call.interface = rm_class->name;
    return;
  }
  call.detail = entry->name;
  call.privilege = tables::privilege_name(*entry);
  if (entry->tag != Tag::kNone) call.tag = entry->tag;
  read_params(call, captures, entry->struct_id);
}

void Decoder::read_params(Call& call, const Captures& captures, std::uint16_t struct_id) const {
  const tables::StructInfo* info = tables::struct_info(struct_id, branch_);
  if (info == nullptr) return;
  call.params_expected_bytes = info->bytes;
  if (info->fields == 0) return;
  read_fields(call, *info, captures[GPUWATCH_CAP_NESTED0_IN], captures[GPUWATCH_CAP_NESTED0_OUT]);
}

void Decoder::decode_uvm(Call& call, const Captures& captures) const {
  call.space = Space::kUvm;
  call.number = call.request;
  const tables::Entry* command = tables::uvm.find(call.number, branch_);
  if (command == nullptr) {
    call.named = false;
    ++stats_.unknown_uvm;
    return;
  }
  call.name = command->name;
  call.tag = command->tag;
  const tables::StructInfo* info = tables::struct_info(command->struct_id, branch_);
  if (info == nullptr) return;
  // The request word of UVM says nothing about the size: the table does.
  call.expected_bytes = info->bytes;
  call.arg_bytes = info->bytes;
  read_fields(call, *info, captures[GPUWATCH_CAP_ARG_IN], captures[GPUWATCH_CAP_ARG_OUT]);
  name_status(call);
}

void Decoder::decode_nvkms(Call& call, const Captures& captures) const {
  call.space = Space::kNvkms;
  call.number = call.request;
  const CapturePart in = captures[GPUWATCH_CAP_ARG_IN];
  const tables::Entry* entry = nullptr;
  if (const std::byte* at = in.at(0, 8)) {
    call.number = static_cast<std::uint32_t>(load(at, 4));
    call.set(Field::kParamsSize, load(at + 4, 4));
    entry = tables::nvkms.find(call.number, branch_);
  }
  if (entry == nullptr) {
    call.named = false;
    ++stats_.unknown_nvkms;
    return;
  }
  call.name = entry->name;
}

void Decoder::name_status(Call& call) const {
  if (!call.has(Field::kStatus)) return;
  const std::uint32_t status = call.get32(Field::kStatus);
  if (status == 0) {
    call.status_name = ok_name_;
    return;
  }
  if (const auto* entry = tables::statuses.find(status, branch_)) {
    call.status_name = entry->name;
    call.denied = entry->tag == Tag::kDenial;
  } else {
    ++stats_.unknown_status;
  }
  call.failed = status < kFirstWarning;
}

}  // namespace gpuwatch::decode
