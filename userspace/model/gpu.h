// SPDX-License-Identifier: Apache-2.0
// Gpu: which card a device minor is, as far as somebody told: a recording's
// header, /proc/driver/nvidia or NVML. Passive. An empty field is not known; it
// never means that there is none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace gpuwatch::model {

// A part of a GPU in MIG mode, and the capability nodes that give access to it.
struct MigInstance {
  std::int32_t gpu_instance = -1;
  std::int32_t compute_instance = -1;  // -1: the GPU instance as a whole
  std::int32_t cap_minor = -1;         // of /dev/nvidia-caps/nvidia-capN
  std::string uuid;                    // "MIG-..."
  std::string name;                    // as the driver calls it
};

struct Gpu {
  std::int32_t minor = -1;  // N of /dev/nvidiaN
  std::string pci;          // 0000:41:00.0
  std::string uuid;         // "GPU-..."
  std::string name;         // as the driver calls it
  std::vector<MigInstance> mig;
};

using GpuList = std::vector<Gpu>;

inline const Gpu* find_gpu(const GpuList& gpus, std::int32_t minor) {
  const auto at = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& gpu) { return gpu.minor == minor; });
  return minor < 0 || at == gpus.end() ? nullptr : &*at;
}

struct MigPlace {
  const Gpu* gpu = nullptr;
  const MigInstance* mig = nullptr;
};

// What the capability node of that minor gives access to.
inline MigPlace find_mig(const GpuList& gpus, std::int32_t cap_minor) {
  if (cap_minor < 0) return {};
  for (const Gpu& gpu : gpus)
    for (const MigInstance& mig : gpu.mig)
      if (mig.cap_minor == cap_minor) return {&gpu, &mig};
  return {};
}

}  // namespace gpuwatch::model
