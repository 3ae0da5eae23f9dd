// SPDX-License-Identifier: Apache-2.0
// NvmlCalls: a loaded NVML by the names of its functions, with the calls counted
// and those that failed. Knows no struct of NVML; decides nothing.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <memory>
#include <string>

namespace gpuwatch::attribute {

// nvmlReturn_t
inline constexpr int kNvmlSuccess = 0;
inline constexpr int kNvmlNotSupported = 3;
inline constexpr int kNvmlNotFound = 6;
inline constexpr int kNvmlInsufficientSize = 7;

class NvmlCalls {
 public:
  using Device = void*;

  // Takes what dlopen(3) gave, and closes it.
  explicit NvmlCalls(void* handle) : handle_(handle) {}

  // The call's result; -1 when the library has no such function.
  template <typename... Arguments>
  int call(const char* name, Arguments... arguments) {
    void* symbol = ::dlsym(handle_.get(), name);
    if (symbol == nullptr) return -1;
    ++calls;
    const int status = reinterpret_cast<int (*)(Arguments...)>(symbol)(arguments...);
    if (status != kNvmlSuccess && status != kNvmlNotSupported && status != kNvmlNotFound &&
        status != kNvmlInsufficientSize)
      ++errors;
    return status;
  }

  std::string text(const char* name, Device device) {
    char buffer[128] = {};
    if (call(name, device, static_cast<char*>(buffer), static_cast<unsigned>(sizeof buffer)) != kNvmlSuccess) return {};
    buffer[sizeof buffer - 1] = '\0';
    return buffer;
  }

  std::int32_t number(const char* name, Device device) {
    unsigned value = 0;
    return call(name, device, &value) == kNvmlSuccess && value <= 0x7fffffff ? static_cast<std::int32_t>(value) : -1;
  }

  std::uint32_t calls = 0;
  std::uint32_t errors = 0;

 private:
  struct CloseLibrary {
    void operator()(void* handle) const { ::dlclose(handle); }
  };
  std::unique_ptr<void, CloseLibrary> handle_;
};

}  // namespace gpuwatch::attribute
