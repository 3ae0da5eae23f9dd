// SPDX-License-Identifier: Apache-2.0
// The few calls of NVIDIA's kernel driver by which gpu-outside tries to read
// another process's GPU memory: plain ioctls, no libcuda. Each returns what the
// driver says and never gives up by itself. It has no call that writes GPU
// memory or changes a setting.
#pragma once

#include <cstdint>
#include <string>

namespace gpuwatch::outside {

using Handle = std::uint32_t;

inline constexpr std::uint32_t kRootClient = 0x41;
inline constexpr std::uint32_t kDevice = 0x80;
inline constexpr std::uint32_t kSubdevice = 0x2080;
inline constexpr std::uint32_t kDebugger = 0x83de;

// errno of the call, and the driver's own status when the call came through.
struct Answer {
  int error = 0;
  std::uint32_t status = 0;
  bool good() const { return error == 0 && status == 0; }
  std::string text() const;  // "NV_ERR_INSUFFICIENT_PERMISSIONS (0x1b)"
};

// Arguments as the driver has them since 535; sizes are asserted.
struct AllocArgument {
  Handle root = 0, parent = 0, object = 0;
  std::uint32_t object_class = 0;
  std::uint64_t parameters = 0, rights = 0;
  std::uint32_t parameter_bytes = 0, flags = 0, status = 0, pad = 0;
};
static_assert(sizeof(AllocArgument) == 48);

struct ControlArgument {
  Handle client = 0, object = 0;
  std::uint32_t command = 0, flags = 0;
  std::uint64_t parameters = 0;
  std::uint32_t parameter_bytes = 0, status = 0;
};
static_assert(sizeof(ControlArgument) == 32);

struct DeviceParameters {
  std::uint32_t device = 0;
  Handle client_share = 0, target_client = 0, target_device = 0;
  std::uint32_t flags = 0, pad = 0;
  std::uint64_t va_bytes = 0, va_start = 0, va_limit = 0;
  std::uint32_t va_mode = 0, pad2 = 0;
};
static_assert(sizeof(DeviceParameters) == 56);

struct DebuggerParameters {
  Handle obsolete = 0, client = 0, compute_object = 0;
};
static_assert(sizeof(DebuggerParameters) == 12);

// NV83DE_CTRL_CMD_DEBUG_READ_MEMORY: by the handle of a memory object.
inline constexpr std::uint32_t kReadMemory = 0x83de0315;
struct ReadMemory {
  Handle memory = 0;
  std::uint32_t bytes = 0;
  std::uint64_t offset = 0, buffer = 0;
};
static_assert(sizeof(ReadMemory) == 24);

// NV83DE_CTRL_CMD_READ_SURFACE: by GPU address, through the page tables.
inline constexpr std::uint32_t kReadSurface = 0x83de031a;
struct ReadSurface {
  std::uint32_t count = 0, pad = 0;
  struct {
    std::uint64_t address, buffer;
    std::uint32_t bytes, valid;
  } part[64] = {};
};
static_assert(sizeof(ReadSurface) == 1544);

// NV83DE_CTRL_CMD_GET_MAPPINGS: what the page tables have mapped from `low` to `high`, both included.
inline constexpr std::uint32_t kGetMappings = 0x83de031c;
struct GetMappings {
  std::uint64_t low = 0, high = 0;
  std::uint32_t count = 0, more = 0;
  struct {
    std::uint64_t address;
    std::uint32_t bytes, pad;
  } part[64] = {};
};
static_assert(sizeof(GetMappings) == 1048);

inline constexpr std::uint32_t kGetAttachedIds = 0x201;
struct GpuIds {
  std::uint32_t id[32] = {};
};
inline constexpr std::uint32_t kGetIdInfo = 0x205;
struct GpuIdInfo {
  std::uint32_t id = 0, flags = 0, device = 0, subdevice = 0, sli = 0, board = 0, instance = 0, numa = 0;
};
static_assert(sizeof(GpuIdInfo) == 32);

Answer allocate(int fd, Handle root, Handle parent, std::uint32_t object_class, void* parameters,
                std::uint32_t parameter_bytes, Handle& object);
Answer release(int fd, Handle root, Handle parent, Handle object);
Answer control(int fd, Handle client, Handle object, std::uint32_t command, void* parameters, std::uint32_t bytes);
// NV_ESC_RM_DUP_OBJECT: `object` becomes a second handle of the other client's object.
Answer duplicate(int fd, Handle client, Handle parent, Handle other_client, Handle other_object, Handle& object);
Answer register_file(int device_fd, int control_fd);
// NV_ESC_RM_MAP_MEMORY, read-only; `device_fd` can be mapped once after it. `linear` is for unmap_memory.
Answer map_memory(int fd, Handle client, Handle device, Handle memory, std::uint64_t bytes, int device_fd,
                  std::uint64_t& linear);
Answer unmap_memory(int fd, Handle client, Handle device, Handle memory, std::uint64_t linear);

}  // namespace gpuwatch::outside
