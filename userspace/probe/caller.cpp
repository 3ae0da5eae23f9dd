// SPDX-License-Identifier: Apache-2.0
#include "probe/caller.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace gpuwatch::probe {

namespace {

using identify::load;

constexpr unsigned long kUvmMapExternal = 33;
constexpr std::size_t kAttributes = 24;
constexpr std::size_t kAttributeBytes = 36;
// Offsets from the end of the array: count, descriptor, client, object, status.
constexpr std::size_t kTailBytes = 24;
constexpr std::size_t kTailDescriptor = 8;
constexpr std::size_t kTailClient = 12;
constexpr std::size_t kTailObject = 16;
constexpr std::size_t kTailStatus = 20;

constexpr int kSmallFirst = 535;
constexpr int kSmallLast = 545;
constexpr int kLargeFirst = 550;
constexpr int kLargeFirstMinor = 54;
constexpr int kLargeLast = 620;

// By the name that the descriptor was opened with: majors differ per machine.
bool is_node(int fd, const char* wanted) {
  char link[64];
  char path[256];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = ::readlink(link, path, sizeof path - 1);
  if (length <= 0) return false;
  path[length] = 0;
  const char* name = std::strrchr(path, '/');
  return name != nullptr && std::strcmp(name, wanted) == 0;
}

const char* name_of(RangeRecord::Node node) {
  return node == RangeRecord::Node::kUvm ? "/nvidia-uvm" : "/nvidiactl";
}

// How many bytes from `address` on are there. Page by page, because a transfer
// is cut between pieces and not promised to be cut within one.
std::size_t copy_in(std::uint64_t address, std::span<std::uint8_t> out, bool& allowed) {
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kPieces = kMapLargeBytes / kPage + 2;
  iovec remote[kPieces];
  std::size_t pieces = 0;
  for (std::size_t at = 0; at < out.size() && pieces < kPieces; ++pieces) {
    const std::size_t bytes = std::min(out.size() - at, kPage - (address + at) % kPage);
    remote[pieces] = {reinterpret_cast<void*>(address + at), bytes};
    at += bytes;
  }
  const iovec local{out.data(), out.size()};
  const ssize_t got = ::process_vm_readv(::getpid(), &local, 1, remote, pieces, 0);
  allowed = got >= 0 || (errno != ENOSYS && errno != EPERM && errno != EACCES);
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

bool fits_form(identify::Bytes bytes, std::size_t size) {
  if (bytes.size() < size) return false;
  const std::size_t tail = size - kTailBytes;
  const std::uint64_t gpus = load<std::uint64_t>(bytes, tail);
  return gpus >= 1 && gpus <= (tail - kAttributes) / kAttributeBytes &&
         load<std::uint32_t>(bytes, tail + kTailClient) != 0 && load<std::uint32_t>(bytes, tail + kTailObject) != 0 &&
         load<std::uint32_t>(bytes, tail + kTailStatus) == 0 &&
         is_node(load<int>(bytes, tail + kTailDescriptor), name_of(RangeRecord::Node::kControl));
}

// By what stands where the fields of each would be; what fits both is not told.
MapForm form_by_content(identify::Bytes bytes) {
  const bool is_small = fits_form(bytes, kMapSmallBytes);
  const bool is_large = fits_form(bytes, kMapLargeBytes);
  if (is_small == is_large) return MapForm::kUnknown;
  return is_small ? MapForm::kSmall : MapForm::kLarge;
}

// From the small form to the large one, in place.
void spread(std::uint8_t* argument) {
  std::memmove(argument + kMapLargeBytes - kTailBytes, argument + kMapSmallBytes - kTailBytes, kTailBytes);
  std::memset(argument + kMapSmallBytes - kTailBytes, 0, kMapLargeBytes - kMapSmallBytes);
}

}  // namespace

MapForm map_form_of(std::string_view release) {
  int numbers[2] = {0, 0};
  std::size_t at = 0;
  for (int& number : numbers) {
    const std::size_t begin = at;
    for (; at < release.size() && release[at] >= '0' && release[at] <= '9' && at - begin < 6; ++at)
      number = number * 10 + (release[at] - '0');
    if (at == begin || at == release.size() || release[at] != '.') return MapForm::kUnknown;
    ++at;
  }
  if (numbers[0] >= kSmallFirst && numbers[0] <= kSmallLast) return MapForm::kSmall;
  if (numbers[0] == kLargeFirst) return numbers[1] >= kLargeFirstMinor ? MapForm::kLarge : MapForm::kUnknown;
  return numbers[0] > kLargeFirst && numbers[0] <= kLargeLast ? MapForm::kLarge : MapForm::kUnknown;
}

MapForm map_form() {
  static std::atomic<int> known{-1};
  if (const int form = known.load(std::memory_order_relaxed); form >= 0) return static_cast<MapForm>(form);
  MapForm form = MapForm::kUnknown;
  if (const int fd = ::open("/sys/module/nvidia/version", O_RDONLY | O_CLOEXEC); fd >= 0) {
    char text[64];
    const ssize_t got = ::read(fd, text, sizeof text);
    ::close(fd);
    if (got > 0) form = map_form_of({text, static_cast<std::size_t>(got)});
  }
  known.store(static_cast<int>(form), std::memory_order_relaxed);
  return form;
}

bool of_interest(int fd, unsigned long request, RangeRecord::Node& node) {
  for (const RangeRecord::Node one : {RangeRecord::Node::kUvm, RangeRecord::Node::kControl}) {
    node = one;
    if (RangeRecord::argument_bytes(one, request) != 0 && is_node(fd, name_of(one))) return true;
  }
  return false;
}

bool take_call(RangeRecord::Node node, unsigned long request, const void* argument, MapForm form, bool finished,
               OwnCall& out) {
  out.node = node;
  out.request = request;
  out.parameter_bytes = 0;
  out.argument_bytes = RangeRecord::argument_bytes(node, request);
  const bool maps = node == RangeRecord::Node::kUvm && request == kUvmMapExternal;
  const std::size_t most = maps && form == MapForm::kSmall ? kMapSmallBytes : out.argument_bytes;
  const std::size_t least = maps && form == MapForm::kUnknown ? kMapSmallBytes : most;
  if (most == 0 || most > sizeof out.argument) return false;
  bool allowed = true;
  std::size_t got = copy_in(reinterpret_cast<std::uint64_t>(argument), {out.argument, most}, allowed);
  if (!allowed && finished) {
    std::memcpy(out.argument, argument, least);
    got = least;
  }
  if (got < least) return false;
  if (maps) {
    if (form == MapForm::kUnknown) form = form_by_content({out.argument, got});
    if (form == MapForm::kUnknown) return false;
    if (form == MapForm::kSmall) spread(out.argument);
    return true;
  }
  if (node == RangeRecord::Node::kControl && most >= 32) {
    // Objects other than memory are of no use here, and there are many.
    const identify::Bytes bytes = out.bytes();
    const auto memory_class = load<std::uint32_t>(bytes, 12);
    if (memory_class != kClassVideoMemory && memory_class != kClassSystemMemory) return false;
    const auto pointer = load<std::uint64_t>(bytes, 16);
    out.parameter_bytes = pointer != 0 ? copy_in(pointer, out.parameters, allowed) : 0;
    if (pointer != 0 && !allowed && finished) {
      std::memcpy(out.parameters, reinterpret_cast<const void*>(pointer), sizeof out.parameters);
      out.parameter_bytes = sizeof out.parameters;
    }
  }
  return true;
}

}  // namespace gpuwatch::probe
