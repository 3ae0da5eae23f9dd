// SPDX-License-Identifier: Apache-2.0
// From tables to capture plan. The rules live here, the numbers in the tables:
// an argument is copied as far as its struct goes and no further, so that
// nothing of the caller's memory behind it is taken, and of a large one only
// the two ends where the fields are.
#include "decode/capture_plan.h"

#include <algorithm>
#include <optional>

#include "decode/tables.h"

namespace gpuwatch::decode {

namespace {

using model::Field;

constexpr std::uint32_t kMaskNumber = 0xFF;               // _IOC_NR
constexpr std::uint32_t kMaskNumberAndSize = 0x3FFF00FF;  // and _IOC_SIZE
constexpr std::uint32_t kMaskAll = 0xFFFFFFFF;
constexpr std::uint32_t kXferNumber = 211;
constexpr std::uint32_t kXferBytes = 16;
constexpr std::uint32_t kNvkmsBytes = 16;  // {u32 cmd, u32 size, u64 address}

// A struct may have grown in a driver newer than the tables. The caller's own
// size, in the request word, bounds the copy, so the room costs nothing.
constexpr std::uint32_t kGrowth = 64;
// Frontend arguments larger than this carry driver logs inline: only their head
// is taken.
constexpr std::uint32_t kInlineDataOver = 4096;
constexpr std::uint32_t kInlineDataHead = 64;
// Structs larger than this have an array between their first fields and their
// last. The ends hold all that is decoded: the head is copied before the call,
// the tail after it.
constexpr std::uint32_t kLargeOver = 512;
constexpr std::uint32_t kLargeHead = 256;
constexpr std::uint32_t kLargeTail = 32;

constexpr std::uint32_t node_bit(gpuwatch_node_kind kind) {
  return 1U << kind;
}
constexpr std::uint32_t kFrontendNodes = node_bit(GPUWATCH_NODE_CTL) | node_bit(GPUWATCH_NODE_GPU);
constexpr std::uint32_t kUvmNodes = node_bit(GPUWATCH_NODE_UVM) | node_bit(GPUWATCH_NODE_UVM_TOOLS);

std::uint16_t capped(std::uint32_t bytes, std::uint32_t cap) {
  return static_cast<std::uint16_t>(std::min({bytes, cap, std::uint32_t{GPUWATCH_PLAN_CAP_MAX}}));
}

gpuwatch_plan_entry entry_for(std::uint32_t cmd, std::uint32_t mask, std::uint32_t nodes, std::uint16_t bytes) {
  gpuwatch_plan_entry entry{};
  entry.cmd = cmd & mask;
  entry.cmd_mask = mask;
  entry.node_mask = nodes;
  entry.in_bytes = bytes;
  entry.out_bytes = bytes;
  return entry;
}

std::optional<std::uint16_t> offset_of(const tables::StructInfo& info, Field field) {
  for (const tables::FieldSpec& spec : tables::fields_of(info))
    if (spec.field == field) return spec.offset;
  return std::nullopt;
}

// Copies the ends of a large struct only. Leaves the entry as it is where a
// field lies too far from both ends for that to pay.
void take_ends(gpuwatch_plan_entry& entry, const tables::StructInfo& info, std::uint32_t growth,
               const PlanOptions& options) {
  if (info.bytes <= kLargeOver) return;
  std::uint32_t head = kLargeHead;
  std::uint32_t tail = (info.bytes - kLargeTail) & ~7U;
  for (const tables::FieldSpec& spec : tables::fields_of(info)) {
    const std::uint32_t end = std::uint32_t{spec.offset} + spec.width;
    if (end <= kLargeHead) continue;
    if (spec.offset < info.bytes / 2)
      head = std::max(head, (end + 7) & ~7U);
    else
      tail = std::min(tail, spec.offset & ~7U);
  }
  if (head >= tail || tail > GPUWATCH_PLAN_CAP_MAX) return;
  entry.in_bytes = capped(head, options.argument_cap);
  entry.out_bytes = capped(info.bytes - tail + growth, options.argument_cap);
  entry.out_offset = tail;
}

// Follows the parameters of RM_ALLOC and RM_CONTROL. libcuda leaves the size of
// allocation parameters 0, so there the class decides.
void add_nested(gpuwatch_plan_entry& entry, const tables::StructInfo& info, const PlanOptions& options) {
  const auto address = offset_of(info, Field::kParamsAddress);
  const auto size = offset_of(info, Field::kParamsSize);
  if (!address || !size || options.params_cap == 0) return;
  gpuwatch_plan_nested& nested = entry.nested[0];
  nested.ptr_offset = *address;
  nested.len_value = *size;
  nested.cap = capped(options.params_cap, GPUWATCH_PLAN_CAP_MAX);
  nested.directions = 3;
  nested.len_kind = GPUWATCH_LEN_AT;
  if (const auto key = offset_of(info, Field::kClass)) {
    nested.len_kind = GPUWATCH_LEN_BY_KEY;
    nested.key_offset = *key;
  }
}

void add_escape(CapturePlan& plan, const tables::Entry& escape, unsigned branch, const PlanOptions& options) {
  const tables::StructInfo* info = tables::struct_info(escape.struct_id, branch);
  if (info == nullptr || escape.key == kXferNumber) return;
  if (const auto* other = tables::struct_info(escape.other_struct_id, branch)) {
    for (const tables::StructInfo* form : {info, other}) {
      gpuwatch_plan_entry entry = entry_for(form->bytes << 16 | escape.key, kMaskNumberAndSize, kFrontendNodes,
                                            capped(form->bytes, options.argument_cap));
      add_nested(entry, *form, options);
      plan.entries.push_back(entry);
    }
    plan.entries.push_back(
        entry_for(escape.key, kMaskNumber, kFrontendNodes, capped(options.unknown_bytes, options.argument_cap)));
    return;
  }
  std::uint32_t bytes = info->bytes + kGrowth;
  if (escape.is_array)
    bytes = kInlineDataOver;
  else if (info->bytes > kInlineDataOver)
    bytes = kInlineDataHead;
  gpuwatch_plan_entry entry = entry_for(escape.key, kMaskNumber, kFrontendNodes, capped(bytes, options.argument_cap));
  if (!escape.is_array && info->bytes <= kInlineDataOver) take_ends(entry, *info, kGrowth, options);
  add_nested(entry, *info, options);
  plan.entries.push_back(entry);
}

gpuwatch_plan_entry xfer_entry() {
  gpuwatch_plan_entry entry = entry_for(kXferNumber, kMaskNumber, kFrontendNodes, kXferBytes);
  entry.flags = GPUWATCH_PLAN_XFER;
  return entry;
}

// Only one request word exists; command and parameters are behind it.
gpuwatch_plan_entry nvkms_entry(const PlanOptions& options) {
  gpuwatch_plan_entry entry = entry_for(0, kMaskNumber, node_bit(GPUWATCH_NODE_MODESET), kNvkmsBytes);
  if (options.nvkms_cap == 0) return entry;
  gpuwatch_plan_nested& nested = entry.nested[0];
  nested.ptr_offset = 8;
  nested.len_kind = GPUWATCH_LEN_AT;
  nested.len_value = 4;
  nested.cap = capped(options.nvkms_cap, GPUWATCH_PLAN_CAP_MAX);
  nested.directions = 3;
  return entry;
}

}  // namespace

CapturePlan make_capture_plan(model::DriverVersion version, const PlanOptions& options) {
  const unsigned branch = tables::choose_branch(version).index;
  const auto has = [branch](const tables::Entry& entry) { return ((entry.branches >> branch) & 1U) != 0; };
  CapturePlan plan;
  plan.default_bytes = capped(options.unknown_bytes, options.argument_cap);
  plan.entries.push_back(xfer_entry());
  for (const tables::Entry& escape : tables::all(tables::escapes))
    if (has(escape)) add_escape(plan, escape, branch, options);
  for (const tables::Entry& command : tables::all(tables::uvm)) {
    if (!has(command)) continue;
    // No size in the request word: exactly the struct, and nothing where there
    // is none (the argument is no address then).
    const tables::StructInfo* info = tables::struct_info(command.struct_id, branch);
    const std::uint16_t bytes = info == nullptr ? 0 : capped(info->bytes, options.argument_cap);
    gpuwatch_plan_entry entry = entry_for(command.key, kMaskAll, kUvmNodes, bytes);
    if (info != nullptr) take_ends(entry, *info, 0, options);
    plan.entries.push_back(entry);
  }
  plan.entries.push_back(nvkms_entry(options));
  for (const tables::Entry& rm_class : tables::all(tables::classes)) {
    if (!has(rm_class)) continue;
    if (const auto* info = tables::struct_info(rm_class.struct_id, branch))
      plan.sizes.push_back({rm_class.key, info->bytes});
  }
  return plan;
}

}  // namespace gpuwatch::decode
