// SPDX-License-Identifier: Apache-2.0
// Fields of the filter language: one row each, how to read it from a call.
// Shared by the filter's parser and its evaluator only.
#pragma once

#include <span>
#include <string_view>

#include "cli/filter.h"

namespace gpuwatch::cli {

struct FieldAccess {
  FilterField info;
  std::string_view (*text)(const model::Call&, const model::Actor&);
  std::int64_t (*number)(const model::Call&, const model::Actor&);  // yes/no fields too
};

std::span<const FieldAccess> field_table();

}  // namespace gpuwatch::cli
