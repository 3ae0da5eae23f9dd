// SPDX-License-Identifier: Apache-2.0
// GpuTime: which part of a GPU's time each process had, as NVML tells: what
// ioctls cannot say, since submission is not execution. Asked rarely, in the
// background, and only about GPUs that somebody uses: it would wake the others.
// Where NVML does not tell, nothing is known, which is not zero.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gpuwatch::attribute {

struct GpuTimeOptions {
  std::string nvml_library = "libnvidia-ml.so.1";  // empty: never
  std::chrono::milliseconds every{5000};
};

// Percent by (minor, pid), and the time stamp of the latest sample by minor.
struct GpuTimeAnswer {
  std::map<std::pair<std::int32_t, std::uint32_t>, std::uint32_t> percent;
  std::map<std::int32_t, unsigned long long> seen;
};

// Asks NVML once, from begin to shutdown, about samples after those of `seen`.
base::Result<GpuTimeAnswer> read_nvml_gpu_time(const std::string& library, const std::vector<std::int32_t>& minors,
                                               std::map<std::int32_t, unsigned long long> seen);

class GpuTime {
 public:
  explicit GpuTime(GpuTimeOptions options = {});
  ~GpuTime();
  GpuTime(const GpuTime&) = delete;
  GpuTime& operator=(const GpuTime&) = delete;

  // These GPUs are in use: ask again when it is time. Never waits.
  void used(const std::vector<std::int32_t>& minors);

  // Of the last answer; absent where NVML told nothing of this process.
  std::optional<std::uint32_t> percent(std::int32_t minor, std::uint32_t pid) const;
  // NVML has told something at all.
  bool known() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace gpuwatch::attribute
