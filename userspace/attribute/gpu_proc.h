// SPDX-License-Identifier: Apache-2.0
// What /proc/driver/nvidia tells of the GPUs without touching them: address,
// name, UUID, and the capability nodes of MIG instances. Reads files only,
// bounded in number and size. They may hang with the driver: call it from a
// Background.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/gpu.h"

namespace gpuwatch::attribute {

// `root` stands before /proc, for tests. An error when there is no such place,
// which says nothing on whether there are GPUs.
base::Result<model::GpuList> read_proc_gpus(const std::string& root = "");

// One "information" file; `pci` is the name of its directory.
model::Gpu parse_gpu_information(std::string_view text, std::string_view pci);

}  // namespace gpuwatch::attribute
