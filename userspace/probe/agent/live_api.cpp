// SPDX-License-Identifier: Apache-2.0
#include "probe/agent/live_api.h"

#include <dlfcn.h>

namespace gpuwatch::probe::agent {

std::string LiveApi::describe(CuResult result) const {
  const char* name = nullptr;
  if (error_name == nullptr || error_name(result, &name) != kCuOk || name == nullptr) name = "unknown CUDA error";
  return std::string(name) + " (" + std::to_string(result) + ")";
}

std::string find_loaded_driver(LiveApi& out) {
  void* const handle = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle == nullptr) return "the process has not loaded libcuda.so.1";
  std::string missing;
#define GPUWATCH_LIVE_FIND(name, symbol, parameters)                        \
  out.name = reinterpret_cast<decltype(out.name)>(::dlsym(handle, symbol)); \
  if (out.name == nullptr && missing.empty()) missing = "its libcuda has no " symbol;
  GPUWATCH_LIVE_FUNCTIONS(GPUWATCH_LIVE_FIND)
#undef GPUWATCH_LIVE_FIND
  // The process keeps it loaded; the agent is in it until its end.
  ::dlclose(handle);
  return missing;
}

}  // namespace gpuwatch::probe::agent
