// SPDX-License-Identifier: Apache-2.0
#include "probe/driver_api.h"

#include <dlfcn.h>

namespace gpuwatch::probe {

std::string DriverApi::describe(CuResult result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (error_name == nullptr || error_name(result, &name) != kCuOk || name == nullptr) name = "unknown CUDA error";
  std::string out = std::string(name) + " (" + std::to_string(result) + ")";
  if (error_text != nullptr && error_text(result, &text) == kCuOk && text != nullptr) out += std::string(": ") + text;
  return out;
}

base::Result<DriverApi> open_driver(const std::string& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return base::Error(base::Code::kNotFound, library + " cannot be loaded: " + (why != nullptr ? why : "no reason") +
                                                  "; it comes with the NVIDIA driver");
  }
  DriverApi api;
#define GPUWATCH_CUDA_FIND(name, symbol, parameters)                        \
  api.name = reinterpret_cast<decltype(api.name)>(::dlsym(handle, symbol)); \
  if (api.name == nullptr)                                                  \
    return base::Error(base::Code::kUnsupported, library + " has no " symbol "; driver 470 or later is needed");
  GPUWATCH_CUDA_FUNCTIONS(GPUWATCH_CUDA_FIND)
#undef GPUWATCH_CUDA_FIND
  return api;
}

}  // namespace gpuwatch::probe
