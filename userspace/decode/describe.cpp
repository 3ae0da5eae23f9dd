// SPDX-License-Identifier: Apache-2.0
// Finds the struct of an argument and of its parameters, the layout that fits
// its size, and walks the fields. How one field looks is describe_value.cpp's.
#include "decode/describe.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "decode/captures.h"
#include "decode/layouts.h"

namespace gpuwatch::decode {

using model::Call;
using model::DescribedField;
using model::DescribedPart;
using model::Description;
using model::Field;
using model::Space;
using tables::FieldType;
using tables::LayoutField;

// The bytes of one part, and whose they are.
struct Describer::Source {
  const Call& call;
  CapturePart before;
  CapturePart after;
  std::uint32_t declared;     // bytes
  bool array = false;         // as many of the struct as fit
  std::vector<bool> owned{};  // bytes that belong to a field

  bool written() const { return call.ret >= 0; }
  // The first bytes at a place that were copied, nullptr where there are none.
  static const std::byte* head(const CapturePart& part, std::uint32_t place, std::uint32_t wanted,
                               std::uint32_t& available) {
    if (part.data == nullptr || place < part.offset || place - part.offset >= part.bytes) return nullptr;
    available = std::min(wanted, part.bytes - (place - part.offset));
    return part.data + (place - part.offset);
  }
  // A number of the caller's: from before the call, else from after it.
  std::optional<std::uint64_t> number(std::uint32_t place, std::uint32_t width) const {
    const std::byte* at = before.at(place, width);
    if (at == nullptr) at = after.at(place, width);
    if (at == nullptr) return std::nullopt;
    return load_number(at, width);
  }
  bool is_zero(std::uint32_t place, std::uint32_t bytes) const {
    for (const CapturePart* part : {&before, &after}) {
      std::uint32_t available = 0;
      const std::byte* const at = head(*part, place, bytes, available);
      if (at != nullptr && std::any_of(at, at + available, [](std::byte b) { return b != std::byte{0}; })) return false;
    }
    return true;
  }
  void own(std::uint32_t place, std::uint32_t bytes) {
    const std::size_t end = std::min<std::size_t>(owned.size(), std::size_t{place} + bytes);
    for (std::size_t i = place; i < end; ++i) owned[i] = true;
  }
};

namespace {

// Arrays of structs longer than this are of a hostile caller.
constexpr std::uint32_t kMostElements = 1024;
// Gaps up to this are padding between fields: whatever was on the caller's stack.
constexpr std::uint32_t kPadding = 7;

struct Choice {
  std::uint16_t struct_id = tables::kNoStruct;
  unsigned branch = 0;
  std::uint32_t bytes = 0;
};

std::uint32_t bytes_of(std::uint16_t struct_id, unsigned branch) {
  const auto* info = tables::struct_info(struct_id, branch);
  return info == nullptr ? 0 : info->bytes;
}

// The form whose size is the declared one: in this branch, else in the one
// nearest to it, newer first. Drivers of a branch the tables do not list, and
// callers that are older than the driver, have such sizes.
Choice choose_struct(std::uint16_t first, std::uint16_t other, unsigned branch, std::uint32_t declared, bool array) {
  const Choice plain{first, branch, bytes_of(first, branch)};
  if (array) return plain;
  const unsigned count = tables::branch_count();
  for (unsigned distance = 0; distance < count; ++distance)
    for (const unsigned at : {branch + distance, branch - distance})
      for (const std::uint16_t id : {first, other})
        if (at < count && bytes_of(id, at) == declared && declared != 0) return {id, at, declared};
  return plain;
}

// Of the kinds that a descriptor in an argument can mean.
std::string node_name(const FoundFile& file) {
  if (file.node_kind == GPUWATCH_NODE_GPU) return "nvidia" + std::to_string(file.minor);
  return file.node_kind == GPUWATCH_NODE_UVM ? "nvidia-uvm" : "nvidiactl";
}

std::string number_text(std::uint32_t number) {
  return std::to_string(number);
}

struct Role {
  std::string_view name;
  FieldType type;
};

// Names of roles, for structs of which only some values are known.
constexpr std::array<Role, model::kFieldCount> kRoles = {{{"client", FieldType::kHandle},
                                                          {"parent", FieldType::kHandle},
                                                          {"object", FieldType::kHandle},
                                                          {"class", FieldType::kClass},
                                                          {"control", FieldType::kControl},
                                                          {"status", FieldType::kStatus},
                                                          {"fd", FieldType::kFd},
                                                          {"address", FieldType::kAddress},
                                                          {"length", FieldType::kBytes},
                                                          {"offset", FieldType::kOffset},
                                                          {"flags", FieldType::kFlags},
                                                          {"params", FieldType::kAddress},
                                                          {"params_size", FieldType::kBytes},
                                                          {"source_client", FieldType::kHandle},
                                                          {"source_object", FieldType::kHandle},
                                                          {"bytes", FieldType::kBytes},
                                                          {"entries", FieldType::kNumber},
                                                          {"engine", FieldType::kNumber},
                                                          {"device", FieldType::kNumber},
                                                          {"function", FieldType::kNumber}}};

LayoutField raw_field(std::string_view name, std::uint32_t offset, std::uint32_t bytes) {
  LayoutField field{};
  field.name = name;
  field.offset = static_cast<std::uint16_t>(std::min<std::uint32_t>(offset, 0xFFFF));
  field.bytes = static_cast<std::uint16_t>(std::min<std::uint32_t>(bytes, 0xFFFF));
  field.count = 1;
  field.ref = field.when = tables::kNoRef;
  field.type = FieldType::kRaw;
  return field;
}

}  // namespace

void Describer::use(model::DriverVersion version) {
  branch_ = tables::choose_branch(version).index;
}

Description Describer::describe(const Call& call) const {
  Description out;
  Captures captures;
  if (call.kind != model::CallKind::kIoctl || !captures.parse(call.record.payload)) return out;
  if ((call.record.head.flags & GPUWATCH_F_XFER) != 0) {
    static const std::uint16_t kWrapper = tables::struct_by_name("nv_ioctl_xfer_t");
    add_part({call, captures[GPUWATCH_CAP_XFER_IN], {}, (call.request >> 16) & 0x3FFF}, "wrapper", kWrapper,
             tables::kNoStruct, out);
  }
  describe_argument(call, captures, out);
  describe_parameters(call, captures, out);
  return out;
}

void Describer::describe_argument(const Call& call, const Captures& captures, Description& out) const {
  Source source{call, captures[GPUWATCH_CAP_ARG_IN], captures[GPUWATCH_CAP_ARG_OUT], call.arg_bytes};
  const std::uint32_t wanted = std::max(source.before.want, source.after.want);
  std::uint16_t first = tables::kNoStruct;
  std::uint16_t other = tables::kNoStruct;
  const tables::Entry* entry = nullptr;
  if (call.space == Space::kFrontend) {
    entry = tables::escapes.find(call.number, branch_);
  } else if (call.space == Space::kUvm) {
    entry = tables::uvm.find(call.number, branch_);
    // The request word says nothing; what was copied tells what was there.
    source.declared = wanted != 0 ? wanted : call.arg_bytes;
  } else if (call.space == Space::kNvkms) {
    static const std::uint16_t kNvkms = tables::struct_by_name("NvKmsIoctlParams");
    first = kNvkms;
    source.declared = wanted;
  } else {
    source.declared = wanted;
  }
  if (entry != nullptr) {
    first = entry->struct_id;
    other = entry->other_struct_id;
    source.array = entry->is_array != 0;
  }
  add_part(std::move(source), "argument", first, other, out);
}

void Describer::describe_parameters(const Call& call, const Captures& captures, Description& out) const {
  Source source{call, captures[GPUWATCH_CAP_NESTED0_IN], captures[GPUWATCH_CAP_NESTED0_OUT],
                call.get32(Field::kParamsSize)};
  const std::uint32_t wanted = std::max(source.before.want, source.after.want);
  if (wanted != 0) source.declared = wanted;
  const tables::Entry* entry = nullptr;
  if (call.has(Field::kClass) && call.space == Space::kFrontend)
    entry = tables::classes.find(call.get32(Field::kClass), branch_);
  else if (call.has(Field::kControl))
    entry = tables::controls.find(call.get32(Field::kControl), branch_);
  add_part(std::move(source), "parameters", entry == nullptr ? tables::kNoStruct : entry->struct_id, tables::kNoStruct,
           out);
  Source more{call, captures[GPUWATCH_CAP_NESTED1_IN], captures[GPUWATCH_CAP_NESTED1_OUT], 0};
  more.declared = std::max(more.before.want, more.after.want);
  add_part(std::move(more), "parameters", tables::kNoStruct, tables::kNoStruct, out);
}

void Describer::add_part(Source source, std::string_view role, std::uint16_t first, std::uint16_t other,
                         Description& out) const {
  if (source.before.data == nullptr && source.after.data == nullptr) return;
  DescribedPart part;
  const Choice choice = choose_struct(first, other, branch_, source.declared, source.array);
  part.role = role;
  part.struct_name = tables::struct_name(choice.struct_id);
  part.bytes = source.declared;
  part.table_bytes = bytes_of(first, branch_);
  if (choice.branch != branch_) part.layout_branch = tables::branch(choice.branch).name;
  const std::uint32_t end =
      std::max(source.before.offset + source.before.bytes, source.after.offset + source.after.bytes);
  source.owned.assign(std::min<std::uint32_t>(end, 0x10000), false);

  const auto layout = tables::layout_of(choice.struct_id, choice.branch);
  if (!layout.empty() && source.array && choice.bytes != 0) {
    const std::uint32_t count = std::min(source.declared / choice.bytes, kMostElements);
    part.elements = std::max(count, 1U);
    for (std::uint32_t i = 0; i < count; ++i) {
      source.own(i * choice.bytes, choice.bytes);
      if (!source.is_zero(i * choice.bytes, choice.bytes))
        add_fields(source, choice.struct_id, choice.branch, i * choice.bytes, "[" + number_text(i) + "].", part);
    }
  } else if (!layout.empty()) {
    std::uint32_t last = 0;
    for (const LayoutField& field : layout) {
      source.own(field.offset, field.bytes);
      last = std::max<std::uint32_t>(last, field.offset + field.bytes);
    }
    if (last < choice.bytes && choice.bytes - last <= kPadding) source.own(last, choice.bytes - last);
    add_fields(source, choice.struct_id, choice.branch, 0, "", part);
  } else if (const auto* info = tables::struct_info(choice.struct_id, choice.branch)) {
    add_roles(source, *info, part);
  }
  part.known = !layout.empty();
  if (!part.known) ++unnamed_.structs;

  // What no field owns and is not 0. Short gaps are padding.
  auto& owned = source.owned;
  for (std::uint32_t i = 0; i < owned.size(); ++i)
    if (source.before.at(i, 1) == nullptr && source.after.at(i, 1) == nullptr) owned[i] = true;
  for (std::uint32_t at = 0; at < owned.size();) {
    if (owned[at]) {
      ++at;
      continue;
    }
    std::uint32_t gap_end = at;
    while (gap_end < owned.size() && !owned[gap_end]) ++gap_end;
    const std::uint32_t bytes = gap_end - at;
    if ((!part.known || bytes > kPadding) && !source.is_zero(at, bytes)) {
      unnamed_.bytes += bytes;
      const std::size_t fields = part.fields.size();
      add_field(source, raw_field("unknown", at, bytes), choice.branch, 0, "", part);
      if (part.fields.size() > fields) part.fields.back().type = "unknown";
    }
    at = gap_end;
  }
  out.parts.push_back(std::move(part));
}

void Describer::add_fields(const Source& source, std::uint16_t struct_id, unsigned branch, std::uint32_t base,
                           const std::string& prefix, DescribedPart& part) const {
  const auto layout = tables::layout_of(struct_id, branch);
  for (const LayoutField& field : layout) {
    if (field.when < layout.size()) {
      const LayoutField& decides = layout[field.when];
      const auto value = source.number(base + decides.offset, decides.bytes);
      if (!value || *value != field.when_value) continue;
    }
    if (field.type != FieldType::kStruct) {
      add_field(source, field, branch, base, prefix, part);
      continue;
    }
    const std::uint32_t width = field.bytes / field.count;
    for (std::uint32_t i = 0; i < field.count; ++i) {
      const std::uint32_t at = base + field.offset + i * width;
      if (source.is_zero(at, width)) continue;
      add_fields(source, field.ref, branch, at, prefix + std::string(field.name) + "[" + number_text(i) + "].", part);
    }
  }
}

void Describer::add_field(const Source& source, const LayoutField& field, unsigned branch, std::uint32_t base,
                          const std::string& prefix, DescribedPart& part) const {
  const std::uint32_t place = base + field.offset;
  const std::uint32_t least =
      field.type == FieldType::kRaw || field.type == FieldType::kText ? 1 : field.bytes / field.count;
  const auto read = [&](const CapturePart& capture) -> std::optional<model::FieldValue> {
    std::uint32_t available = 0;
    const std::byte* const at = Source::head(capture, place, field.bytes, available);
    if (at == nullptr || available < least) return std::nullopt;
    return read_value(field, at, available, branch, unnamed_);
  };
  DescribedField described;
  // A status is the driver's alone; what was there before means nothing.
  if (field.type != FieldType::kStatus) described.before = read(source.before);
  if (source.written()) described.after = read(source.after);
  if (!described.before && !described.after) {
    // After an error the bytes behind the call are still the caller's.
    if (!source.written() && field.type != FieldType::kStatus) described.before = read(source.after);
    if (!described.before) {
      const bool never = field.type == FieldType::kStatus && (!source.written() || source.after.data == nullptr);
      if (!never) ++part.missing;
      return;
    }
  }
  if (field.type == FieldType::kFd) {
    for (auto* value : {&described.before, &described.after}) {
      if (!*value || (*value)->items.size() != 1) continue;
      const auto fd = static_cast<std::int32_t>(std::strtol((*value)->items.front().c_str(), nullptr, 10));
      const auto wanted = static_cast<FileTable::Wanted>(field.fd);
      if (const auto file = files_.find(source.call, fd, wanted))
        (*value)->meaning = node_name(*file) + " file " + hex_number(file->file_id, 1);
    }
  }
  described.name = prefix + std::string(field.name);
  described.type = tables::type_name(field.type);
  described.unit = unit_of(field.type);
  described.offset = place;
  described.elements = field.count;
  described.array = field.count > 1;
  described.numeric = is_numeric(field.type);
  part.fields.push_back(std::move(described));
}

void Describer::add_roles(const Source& source, const tables::StructInfo& info, DescribedPart& part) const {
  std::vector<LayoutField> fields;
  for (const tables::FieldSpec& spec : tables::fields_of(info)) {
    const Role& role = kRoles[static_cast<std::size_t>(spec.field)];
    LayoutField field = raw_field(role.name, spec.offset, spec.width);
    field.type = spec.plus_one != 0 ? FieldType::kLimit : role.type;
    fields.push_back(field);
  }
  std::sort(fields.begin(), fields.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  for (const LayoutField& field : fields) add_field(source, field, branch_, 0, "", part);
}

}  // namespace gpuwatch::decode
