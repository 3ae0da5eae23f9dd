// SPDX-License-Identifier: Apache-2.0
// ioctl() of this program: hands every call to the kernel unchanged and, after
// it, notes what maps GPU memory. libcuda finds it before libc's because the
// program exports it. It allocates memory only for calls that map or unmap.
#include "probe/own_calls.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <mutex>

#include "probe/caller.h"

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

void note(int fd, unsigned long request, const void* argument) {
  RangeRecord::Node node;
  if (argument == nullptr || !of_interest(fd, request, node)) return;
  OwnCall call;
  if (!take_call(node, request, argument, map_form(), true, call)) return;
  const std::lock_guard guard(lock());
  record().call(node, request, call.bytes(), call.allocation());
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
