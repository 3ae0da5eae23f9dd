// SPDX-License-Identifier: Apache-2.0
// Only functions whose signatures have been the same since driver 450 are used.
#include "attribute/gpu_nvml.h"

#include <dlfcn.h>

#include <cctype>

#include "attribute/nvml_calls.h"

namespace gpuwatch::attribute {

namespace {

using base::Code;
using base::Error;
using base::Result;

constexpr unsigned kGpusMax = 64;
constexpr unsigned kMigMax = 64;

using Device = NvmlCalls::Device;

// The part of nvmlPciInfo_t that matters: busId at offset 32 of 68 bytes.
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

// "00000000:41:00.0" to "0000:41:00.0", lower case, as the kernel writes it.
std::string kernel_address(std::string_view bus_id) {
  if (const std::size_t colon = bus_id.find(':'); colon == 8 && bus_id.starts_with("0000")) bus_id.remove_prefix(4);
  std::string out(bus_id);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

void read_mig(NvmlCalls& nvml, Device device, model::Gpu& gpu) {
  const std::int32_t count = nvml.number("nvmlDeviceGetMaxMigDeviceCount", device);
  for (unsigned i = 0; count > 0 && i < static_cast<unsigned>(count) && i < kMigMax; ++i) {
    Device part = nullptr;
    if (nvml.call("nvmlDeviceGetMigDeviceHandleByIndex", device, i, &part) != kNvmlSuccess) continue;
    model::MigInstance mig;
    mig.gpu_instance = nvml.number("nvmlDeviceGetGpuInstanceId", part);
    mig.compute_instance = nvml.number("nvmlDeviceGetComputeInstanceId", part);
    mig.uuid = nvml.text("nvmlDeviceGetUUID", part);
    mig.name = nvml.text("nvmlDeviceGetName", part);
    gpu.mig.push_back(std::move(mig));
  }
}

model::Gpu read_gpu(NvmlCalls& nvml, Device device) {
  model::Gpu gpu;
  gpu.minor = nvml.number("nvmlDeviceGetMinorNumber", device);
  gpu.uuid = nvml.text("nvmlDeviceGetUUID", device);
  gpu.name = nvml.text("nvmlDeviceGetName", device);
  PciInfo pci{};
  if (nvml.call("nvmlDeviceGetPciInfo_v3", device, &pci) == kNvmlSuccess) {
    pci.bus_id[sizeof pci.bus_id - 1] = '\0';
    gpu.pci = kernel_address(pci.bus_id);
  }
  read_mig(nvml, device, gpu);
  return gpu;
}

}  // namespace

Result<NvmlAnswer> read_nvml_gpus(const std::string& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Error(Code::kNotFound, library + ": cannot be loaded");
  NvmlCalls nvml(handle);
  NvmlAnswer answer;
  if (const int status = nvml.call("nvmlInit_v2"); status != kNvmlSuccess)
    return Error(Code::kIo, library + ": nvmlInit_v2 gives " + std::to_string(status));
  unsigned count = 0;
  const int counted = nvml.call("nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; counted == kNvmlSuccess && i < count && i < kGpusMax; ++i) {
    Device device = nullptr;
    if (nvml.call("nvmlDeviceGetHandleByIndex_v2", i, &device) == kNvmlSuccess)
      answer.gpus.push_back(read_gpu(nvml, device));
  }
  nvml.call("nvmlShutdown");
  if (counted != kNvmlSuccess)
    return Error(Code::kIo, library + ": nvmlDeviceGetCount_v2 gives " + std::to_string(counted));
  answer.calls = nvml.calls;
  answer.errors = nvml.errors;
  return answer;
}

}  // namespace gpuwatch::attribute
