// SPDX-License-Identifier: Apache-2.0
// Holds the generated tables. Only lookup here; meaning is decoder.cpp's.
#include "decode/tables.h"

namespace gpuwatch::decode::tables {

namespace {
#include "tables_data.inc"
}  // namespace

const Table& escapes = kEscapes;
const Table& uvm = kUvm;
const Table& classes = kClasses;
const Table& controls = kControls;
const Table& interfaces = kInterfaces;
const Table& statuses = kStatuses;
const Table& nvkms = kNvkms;

unsigned branch_count() { return kBranchCount; }

const Branch& branch(unsigned index) { return kBranches[index < kBranchCount ? index : kBranchCount - 1]; }

BranchChoice choose_branch(model::DriverVersion version) {
  if (!version.known()) return {kBranchCount - 1, true};
  unsigned best = 0;
  for (unsigned i = 0; i < kBranchCount; ++i)
    if (kBranches[i].major <= version.major) best = i;
  return {best, kBranches[best].major != version.major};
}

const StructInfo* struct_info(std::uint16_t struct_id, unsigned branch) {
  if (struct_id == kNoStruct) return nullptr;
  const std::uint16_t place = kStructIndex[branch][struct_id];
  return place == 0 ? nullptr : &kStructInfos[place - 1];
}

std::span<const FieldSpec> fields_of(const StructInfo& info) { return {kFields + info.first_field, info.fields}; }

std::string_view privilege_name(const Entry& control) { return kPrivileges[control.privilege]; }

}  // namespace gpuwatch::decode::tables
