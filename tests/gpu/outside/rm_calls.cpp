// SPDX-License-Identifier: Apache-2.0
#include "outside/rm_calls.h"

#include <sys/ioctl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "decode/tables.h"

namespace gpuwatch::outside {

namespace {

template <typename Argument>
Answer call(int fd, unsigned number, Argument& argument, const std::uint32_t& status) {
  const unsigned long request = _IOC(_IOC_READ | _IOC_WRITE, 'F', number, sizeof argument);
  if (::ioctl(fd, request, &argument) != 0) return {errno, 0};
  return {0, status};
}

struct FreeArgument {
  Handle root = 0, parent = 0, object = 0;
  std::uint32_t status = 0;
};
static_assert(sizeof(FreeArgument) == 16);

struct DuplicateArgument {
  Handle client = 0, parent = 0, object = 0, other_client = 0, other_object = 0;
  std::uint32_t flags = 0, status = 0;
};
static_assert(sizeof(DuplicateArgument) == 28);

struct MapArgument {
  Handle client = 0, device = 0, memory = 0, pad = 0;
  std::uint64_t offset = 0, bytes = 0, linear = 0;
  std::uint32_t status = 0, flags = 0;
  std::int32_t fd = -1, pad2 = 0;
};
static_assert(sizeof(MapArgument) == 56);

struct UnmapArgument {
  Handle client = 0, device = 0, memory = 0, pad = 0;
  std::uint64_t linear = 0;
  std::uint32_t status = 0, flags = 0;
};
static_assert(sizeof(UnmapArgument) == 32);

constexpr std::uint32_t kMapReadOnly = 1;

}  // namespace

std::string Answer::text() const {
  if (error != 0) return std::string("errno ") + std::strerror(error);
  using namespace decode::tables;
  const Entry* entry = statuses.find(status, branch_count() - 1);
  char number[16];
  std::snprintf(number, sizeof number, " (0x%x)", status);
  return (entry != nullptr ? std::string(entry->name) : std::string("status")) + number;
}

Answer allocate(int fd, Handle root, Handle parent, std::uint32_t object_class, void* parameters,
                std::uint32_t parameter_bytes, Handle& object) {
  AllocArgument argument;
  argument.root = root;
  argument.parent = parent;
  argument.object = object;
  argument.object_class = object_class;
  argument.parameters = reinterpret_cast<std::uint64_t>(parameters);
  argument.parameter_bytes = parameter_bytes;
  const Answer answer = call(fd, 0x2b, argument, argument.status);
  object = argument.object;
  return answer;
}

Answer release(int fd, Handle root, Handle parent, Handle object) {
  FreeArgument argument{root, parent, object, 0};
  return call(fd, 0x29, argument, argument.status);
}

Answer control(int fd, Handle client, Handle object, std::uint32_t command, void* parameters, std::uint32_t bytes) {
  ControlArgument argument;
  argument.client = client;
  argument.object = object;
  argument.command = command;
  argument.parameters = reinterpret_cast<std::uint64_t>(parameters);
  argument.parameter_bytes = bytes;
  return call(fd, 0x2a, argument, argument.status);
}

Answer duplicate(int fd, Handle client, Handle parent, Handle other_client, Handle other_object, Handle& object) {
  DuplicateArgument argument{client, parent, object, other_client, other_object, 0, 0};
  const Answer answer = call(fd, 0x34, argument, argument.status);
  object = argument.object;
  return answer;
}

Answer register_file(int device_fd, int control_fd) {
  std::int32_t argument = control_fd;
  static const std::uint32_t kNoStatus = 0;
  return call(device_fd, 0xc9, argument, kNoStatus);
}

Answer map_memory(int fd, Handle client, Handle device, Handle memory, std::uint64_t bytes, int device_fd,
                  std::uint64_t& linear) {
  MapArgument argument;
  argument.client = client;
  argument.device = device;
  argument.memory = memory;
  argument.bytes = bytes;
  argument.flags = kMapReadOnly;
  argument.fd = device_fd;
  const Answer answer = call(fd, 0x4e, argument, argument.status);
  linear = argument.linear;
  return answer;
}

Answer unmap_memory(int fd, Handle client, Handle device, Handle memory, std::uint64_t linear) {
  UnmapArgument argument{client, device, memory, 0, linear, 0, 0};
  return call(fd, 0x4f, argument, argument.status);
}

}  // namespace gpuwatch::outside
