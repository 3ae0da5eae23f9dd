// SPDX-License-Identifier: Apache-2.0
#include "probe/watchdog.h"

#include <atomic>
#include <cstring>
#include <thread>

namespace gpuwatch::probe {

namespace {

using Clock = std::chrono::steady_clock;

// Written by the calling thread, read by the watching one. `since` is set first:
// a name that is seen has its own time or a later one.
std::atomic<Clock::rep> since{0};
std::atomic<const char*> current{nullptr};

DriverApi& real() {
  static DriverApi api;
  return api;
}

template <auto Member>
struct Watched;
template <typename... Arguments, CuResult (*DriverApi::*Member)(Arguments...)>
struct Watched<Member> {
  static inline const char* symbol = nullptr;
  static CuResult call(Arguments... arguments) {
    since.store(Clock::now().time_since_epoch().count());
    current.store(symbol);
    const CuResult result = (real().*Member)(arguments...);
    current.store(nullptr);
    return result;
  }
};

}  // namespace

DriverApi watched(const DriverApi& api) {
  real() = api;
  DriverApi out;
#define GPUWATCH_CUDA_WATCH(name, name_in_library, parameters) \
  Watched<& DriverApi::name>::symbol = name_in_library;        \
  out.name = &Watched<&DriverApi::name>::call;
  GPUWATCH_CUDA_FUNCTIONS(GPUWATCH_CUDA_WATCH)
#undef GPUWATCH_CUDA_WATCH
  return out;
}

void watch_calls(std::chrono::seconds limit, GiveUp give_up) {
  std::thread([limit, give_up = std::move(give_up)] {
    constexpr auto kLook = std::chrono::milliseconds(100);
    for (;; std::this_thread::sleep_for(kLook)) {
      const char* const function = current.load();
      if (function == nullptr) continue;
      const Clock::duration waited = Clock::now() - Clock::time_point(Clock::duration(since.load()));
      const bool compiles = std::strncmp(function, "cuLink", 6) == 0;
      // Still the same call: a new one has a new time.
      if (waited < limit * (compiles ? kCompilingFactor : 1) || current.load() != function) continue;
      give_up(function, std::chrono::duration_cast<std::chrono::seconds>(waited));
      return;
    }
  }).detach();
}

}  // namespace gpuwatch::probe
