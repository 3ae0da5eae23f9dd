// SPDX-License-Identifier: Apache-2.0
// Builds the kernel's capture plan (GPUWATCH_IOC_SET_PLAN) from the tables:
// which bytes of which call to copy. It copies argument structs and one level
// of RM parameters, up to stated caps; never the buffers that those parameters
// point to (file contents, registry strings, GPU memory).
#pragma once

#include <vector>

#include "model/driver_version.h"
#include "model/raw_record.h"

namespace gpuwatch::decode {

struct PlanOptions {
  // Caps in bytes. 0 turns a part off. Values over GPUWATCH_PLAN_CAP_MAX are cut.
  std::uint32_t argument_cap = GPUWATCH_PLAN_CAP_MAX;
  std::uint32_t params_cap = 4096;    // parameters of RM_ALLOC and RM_CONTROL
  std::uint32_t nvkms_cap = 1024;     // parameters of display calls
  std::uint32_t unknown_bytes = 256;  // commands the tables do not know
};

struct CapturePlan {
  std::vector<gpuwatch_plan_entry> entries;
  std::vector<gpuwatch_plan_size> sizes;  // sorted by key
  std::uint32_t default_bytes = 0;
};

// For an unknown version: the newest branch, as Decoder does.
CapturePlan make_capture_plan(model::DriverVersion version, const PlanOptions& options = {});

}  // namespace gpuwatch::decode
