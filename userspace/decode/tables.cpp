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

const StructInfo* const struct_infos = kStructInfos;
const FieldSpec* const fields = kFields;
const std::uint16_t* const struct_index = kStructIndex;
const std::uint32_t struct_count = kStructCount;

unsigned branch_count() {
  return kBranchCount;
}

const Branch& branch(unsigned index) {
  return kBranches[index < kBranchCount ? index : kBranchCount - 1];
}

BranchChoice choose_branch(model::DriverVersion version) {
  if (!version.known()) return {kBranchCount - 1, true};
  unsigned best = 0;
  for (unsigned i = 0; i < kBranchCount; ++i)
    if (kBranches[i].major <= version.major) best = i;
  return {best, kBranches[best].major != version.major || version.minor < kBranches[best].since_minor};
}

std::string_view privilege_name(const Entry& control) {
  return kPrivileges[control.privilege];
}

}  // namespace gpuwatch::decode::tables
