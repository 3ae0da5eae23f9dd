// SPDX-License-Identifier: Apache-2.0
// The few functions of CUDA's driver API that the probe calls, declared by
// ourselves and found in libcuda by dlopen: neither CUDA's headers nor a GPU are
// needed to build or to test. Names are those of today's ABI (_v2 where there
// is one: the plain name is a 32-bit relic).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace gpuwatch::probe {

using CuResult = int;
using CuDevice = int;
using CuPointer = unsigned long long;
struct CuContextTag;
struct CuModuleTag;
struct CuFunctionTag;
struct CuStreamTag;
struct CuEventTag;
struct CuLinkTag;
using CuContext = CuContextTag*;
using CuModule = CuModuleTag*;
using CuFunction = CuFunctionTag*;
using CuStream = CuStreamTag*;
using CuEvent = CuEventTag*;
using CuLink = CuLinkTag*;

// Results that the probe tells apart.
inline constexpr CuResult kCuOk = 0;
inline constexpr CuResult kCuInvalidValue = 1;
inline constexpr CuResult kCuOutOfMemory = 2;
inline constexpr CuResult kCuStub = 34;
inline constexpr CuResult kCuDeviceUnavailable = 46;
inline constexpr CuResult kCuNoDevice = 100;
inline constexpr CuResult kCuInvalidImage = 200;
inline constexpr CuResult kCuNoBinary = 209;
inline constexpr CuResult kCuInvalidPtx = 218;
inline constexpr CuResult kCuUnsupportedPtx = 222;
inline constexpr CuResult kCuNotFound = 500;
inline constexpr CuResult kCuIllegalAddress = 700;
inline constexpr CuResult kCuSystemDriverMismatch = 803;

// Attributes of a device.
inline constexpr int kCuClockKhz = 13;
inline constexpr int kCuMultiprocessors = 16;
inline constexpr int kCuComputeMode = 20;
inline constexpr int kCuMajor = 75;
inline constexpr int kCuMinor = 76;
inline constexpr int kCuModeProhibited = 2;
inline constexpr int kCuModeExclusive = 3;
// Memory of the host that the GPU can reach.
inline constexpr unsigned kCuHostMapped = 2;
// Kinds of input of a link.
inline constexpr int kCuInputPtx = 1;

struct CuUuid {
  unsigned char bytes[16];
};

// name in the table, name in libcuda, parameters
#define GPUWATCH_CUDA_FUNCTIONS(F)                                                                                \
  F(init, "cuInit", (unsigned))                                                                                   \
  F(driver_version, "cuDriverGetVersion", (int*))                                                                 \
  F(device_count, "cuDeviceGetCount", (int*))                                                                     \
  F(device_get, "cuDeviceGet", (CuDevice*, int))                                                                  \
  F(device_name, "cuDeviceGetName", (char*, int, CuDevice))                                                       \
  F(device_uuid, "cuDeviceGetUuid_v2", (CuUuid*, CuDevice))                                                       \
  F(device_attribute, "cuDeviceGetAttribute", (int*, int, CuDevice))                                              \
  F(device_memory, "cuDeviceTotalMem_v2", (std::size_t*, CuDevice))                                               \
  F(device_bus, "cuDeviceGetPCIBusId", (char*, int, CuDevice))                                                    \
  F(context_retain, "cuDevicePrimaryCtxRetain", (CuContext*, CuDevice))                                           \
  F(context_release, "cuDevicePrimaryCtxRelease_v2", (CuDevice))                                                  \
  F(context_set, "cuCtxSetCurrent", (CuContext))                                                                  \
  F(synchronize, "cuCtxSynchronize", ())                                                                          \
  F(module_load, "cuModuleLoadData", (CuModule*, const void*))                                                    \
  F(module_unload, "cuModuleUnload", (CuModule))                                                                  \
  F(module_function, "cuModuleGetFunction", (CuFunction*, CuModule, const char*))                                 \
  F(module_global, "cuModuleGetGlobal_v2", (CuPointer*, std::size_t*, CuModule, const char*))                     \
  F(memory_allocate, "cuMemAlloc_v2", (CuPointer*, std::size_t))                                                  \
  F(memory_free, "cuMemFree_v2", (CuPointer))                                                                     \
  F(host_allocate, "cuMemHostAlloc", (void**, std::size_t, unsigned))                                             \
  F(host_free, "cuMemFreeHost", (void*))                                                                          \
  F(host_address, "cuMemHostGetDevicePointer_v2", (CuPointer*, void*, unsigned))                                  \
  F(memory_to_device, "cuMemcpyHtoD_v2", (CuPointer, const void*, std::size_t))                                   \
  F(memory_to_host, "cuMemcpyDtoH_v2", (void*, CuPointer, std::size_t))                                           \
  F(memory_fill, "cuMemsetD8_v2", (CuPointer, unsigned char, std::size_t))                                        \
  F(memory_fill_32, "cuMemsetD32_v2", (CuPointer, unsigned, std::size_t))                                         \
  F(launch, "cuLaunchKernel",                                                                                     \
    (CuFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CuStream, void**, void**)) \
  F(stream_create, "cuStreamCreateWithPriority", (CuStream*, unsigned, int))                                      \
  F(stream_destroy, "cuStreamDestroy_v2", (CuStream))                                                             \
  F(stream_priorities, "cuCtxGetStreamPriorityRange", (int*, int*))                                               \
  F(stream_synchronize, "cuStreamSynchronize", (CuStream))                                                        \
  F(event_create, "cuEventCreate", (CuEvent*, unsigned))                                                          \
  F(event_destroy, "cuEventDestroy_v2", (CuEvent))                                                                \
  F(event_record, "cuEventRecord", (CuEvent, CuStream))                                                           \
  F(event_elapsed, "cuEventElapsedTime", (float*, CuEvent, CuEvent))                                              \
  F(link_create, "cuLinkCreate_v2", (unsigned, int*, void**, CuLink*))                                            \
  F(link_add, "cuLinkAddData_v2", (CuLink, int, void*, std::size_t, const char*, unsigned, int*, void**))         \
  F(link_complete, "cuLinkComplete", (CuLink, void**, std::size_t*))                                              \
  F(link_destroy, "cuLinkDestroy", (CuLink))                                                                      \
  F(error_name, "cuGetErrorName", (CuResult, const char**))                                                       \
  F(error_text, "cuGetErrorString", (CuResult, const char**))

struct DriverApi {
#define GPUWATCH_CUDA_MEMBER(name, symbol, parameters) CuResult(*name) parameters = nullptr;
  GPUWATCH_CUDA_FUNCTIONS(GPUWATCH_CUDA_MEMBER)
#undef GPUWATCH_CUDA_MEMBER

  // "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"
  std::string describe(CuResult result) const;
};

// Opens `library` (libcuda.so.1) for the rest of the process's life. What is
// missing is named.
base::Result<DriverApi> open_driver(const std::string& library);

}  // namespace gpuwatch::probe
