// SPDX-License-Identifier: Apache-2.0
// What NVML tells of the GPUs, by dlopen, with declarations of our own. It may
// wake a sleeping GPU and may hang with a broken one, so it is asked rarely and
// from a Background only, from begin to shutdown in one go.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/gpu.h"

namespace gpuwatch::attribute {

struct NvmlAnswer {
  model::GpuList gpus;  // those that could be asked
  std::uint32_t calls = 0;
  std::uint32_t errors = 0;  // calls that failed: what they would have told is not known
};

// `library` as dlopen(3) takes it. An error when there is no library or NVML as
// a whole does not work; never an empty list instead.
base::Result<NvmlAnswer> read_nvml_gpus(const std::string& library = "libnvidia-ml.so.1");

}  // namespace gpuwatch::attribute
