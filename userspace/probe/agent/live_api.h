// SPDX-License-Identifier: Apache-2.0
// The functions of libcuda that the agent calls in somebody else's process. The
// library is taken as the process has it loaded; it is never loaded for us, and
// cuInit is never called.
#pragma once

#include "probe/driver_api.h"

namespace gpuwatch::probe::agent {

inline constexpr CuResult kCuNotReady = 600;

// name in the table, name in libcuda, parameters
#define GPUWATCH_LIVE_FUNCTIONS(F)                                                                                \
  F(driver_version, "cuDriverGetVersion", (int*))                                                                 \
  F(device_count, "cuDeviceGetCount", (int*))                                                                     \
  F(device_get, "cuDeviceGet", (CuDevice*, int))                                                                  \
  F(device_uuid, "cuDeviceGetUuid_v2", (CuUuid*, CuDevice))                                                       \
  F(device_attribute, "cuDeviceGetAttribute", (int*, int, CuDevice))                                              \
  F(context_state, "cuDevicePrimaryCtxGetState", (CuDevice, unsigned*, int*))                                     \
  F(context_retain, "cuDevicePrimaryCtxRetain", (CuContext*, CuDevice))                                           \
  F(context_release, "cuDevicePrimaryCtxRelease_v2", (CuDevice))                                                  \
  F(context_set, "cuCtxSetCurrent", (CuContext))                                                                  \
  F(capture_mode, "cuThreadExchangeStreamCaptureMode", (int*))                                                    \
  F(module_load, "cuModuleLoadData", (CuModule*, const void*))                                                    \
  F(module_unload, "cuModuleUnload", (CuModule))                                                                  \
  F(module_function, "cuModuleGetFunction", (CuFunction*, CuModule, const char*))                                 \
  F(host_allocate, "cuMemHostAlloc", (void**, std::size_t, unsigned))                                             \
  F(host_free, "cuMemFreeHost", (void*))                                                                          \
  F(host_pointer, "cuMemHostGetDevicePointer_v2", (CuPointer*, void*, unsigned))                                  \
  F(launch, "cuLaunchKernel",                                                                                     \
    (CuFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CuStream, void**, void**)) \
  F(stream_create, "cuStreamCreateWithPriority", (CuStream*, unsigned, int))                                      \
  F(stream_destroy, "cuStreamDestroy_v2", (CuStream))                                                             \
  F(stream_priorities, "cuCtxGetStreamPriorityRange", (int*, int*))                                               \
  F(stream_query, "cuStreamQuery", (CuStream))                                                                    \
  F(error_name, "cuGetErrorName", (CuResult, const char**))

struct LiveApi {
#define GPUWATCH_LIVE_MEMBER(name, symbol, parameters) CuResult(*name) parameters = nullptr;
  GPUWATCH_LIVE_FUNCTIONS(GPUWATCH_LIVE_MEMBER)
#undef GPUWATCH_LIVE_MEMBER

  // "CUDA_ERROR_OUT_OF_MEMORY (2)"
  std::string describe(CuResult result) const;
};

// Empty: found; else what is missing.
std::string find_loaded_driver(LiveApi& out);

}  // namespace gpuwatch::probe::agent
