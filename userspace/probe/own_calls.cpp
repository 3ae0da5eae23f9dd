// SPDX-License-Identifier: Apache-2.0
// ioctl() of this program: hands every call to the kernel unchanged and, after
// it, notes what maps GPU memory. libcuda finds it before libc's because the
// program exports it. It allocates memory only for calls that map or unmap.
#include "probe/own_calls.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>

namespace gpuwatch::probe {

namespace {

std::mutex& lock() {
  static std::mutex mutex;
  return mutex;
}
RangeRecord& record() {
  static RangeRecord ranges;
  return ranges;
}

// By the name that the descriptor was opened with: majors differ per machine.
std::optional<RangeRecord::Node> node_of(int fd) {
  char link[64];
  char path[256];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = ::readlink(link, path, sizeof path - 1);
  if (length <= 0) return std::nullopt;
  path[length] = 0;
  const char* name = std::strrchr(path, '/');
  if (name == nullptr) return std::nullopt;
  if (std::strcmp(name, "/nvidia-uvm") == 0) return RangeRecord::Node::kUvm;
  if (std::strcmp(name, "/nvidiactl") == 0) return RangeRecord::Node::kControl;
  return std::nullopt;
}

void note(int fd, unsigned long request, const void* argument) {
  if (argument == nullptr) return;
  for (const RangeRecord::Node node : {RangeRecord::Node::kUvm, RangeRecord::Node::kControl}) {
    const std::uint64_t bytes = RangeRecord::argument_bytes(node, request);
    if (bytes == 0 || node_of(fd) != node) continue;
    const identify::Bytes span(static_cast<const std::uint8_t*>(argument), bytes);
    identify::Bytes parameters;
    if (node == RangeRecord::Node::kControl && bytes >= 32) {
      const auto pointer = identify::load<std::uint64_t>(span, 16);
      const auto memory_class = identify::load<std::uint32_t>(span, 12);
      // The kernel read those parameters just now: they are there.
      if (pointer != 0 && (memory_class == kClassVideoMemory || memory_class == kClassSystemMemory))
        parameters = identify::Bytes(reinterpret_cast<const std::uint8_t*>(pointer), 12);
    }
    const std::lock_guard guard(lock());
    record().call(node, request, span, parameters);
  }
}

}  // namespace

RangeRecord own_ranges() {
  const std::lock_guard guard(lock());
  return record();
}

}  // namespace gpuwatch::probe

extern "C" __attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  const long result = ::syscall(SYS_ioctl, fd, request, argument);
  if (result == 0) {
    const int kept = errno;
    gpuwatch::probe::note(fd, request, argument);
    errno = kept;
  }
  return static_cast<int>(result);
}
