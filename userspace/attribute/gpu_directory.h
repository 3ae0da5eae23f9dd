// SPDX-License-Identifier: Apache-2.0
// GpuDirectory: which card is behind a device minor. From a recording's header
// it only repeats; live it asks /proc/driver/nvidia, and NVML for what is not
// told there, in the background and rarely. What is not known stays empty: an
// error of NVML looks neither like a missing GPU nor like an idle one.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "model/gpu.h"

namespace gpuwatch::attribute {

struct GpuDirectoryOptions {
  std::string root;                                // before /proc, for tests
  std::string nvml_library = "libnvidia-ml.so.1";  // empty: never
  std::chrono::milliseconds nvml_deadline{5000};   // then it is told as hung
  std::chrono::seconds again_after{60};            // between two looks
};

struct GpuCounters {
  std::uint64_t gpus = 0;   // known now
  std::uint64_t looks = 0;  // at /proc/driver/nvidia
  std::uint64_t nvml_calls = 0;
  std::uint64_t nvml_errors = 0;    // calls that failed, and looks that got nothing
  std::uint64_t nvml_timeouts = 0;  // looks not answered by the deadline
};

class GpuDirectory {
 public:
  // What a recording says; never asks anybody.
  explicit GpuDirectory(model::GpuList known);
  explicit GpuDirectory(GpuDirectoryOptions live);
  ~GpuDirectory();
  GpuDirectory(const GpuDirectory&) = delete;
  GpuDirectory& operator=(const GpuDirectory&) = delete;

  // What is known now. Never waits; valid until the next call from this thread.
  const model::GpuList& gpus();

  // Somebody uses that GPU: look it up if it is not known yet. Never waits.
  // Nothing is looked up before: that could wake GPUs nobody uses.
  void used(std::int32_t minor);

  // A driver came or went: what is known may be wrong by now.
  void forget();

  GpuCounters counters() const;

 private:
  struct Live;
  std::shared_ptr<const model::GpuList> current_;
  std::shared_ptr<Live> live_;  // null: a recording
};

// Adds what `more` knows to `known`: by minor, else by address. Also pairs MIG
// instances by their numbers.
void merge_gpus(model::GpuList& known, const model::GpuList& more);

// UUID, name and address are known, and the UUIDs of its MIG instances.
bool fully_known(const model::Gpu& gpu);

}  // namespace gpuwatch::attribute
