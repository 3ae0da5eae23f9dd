// SPDX-License-Identifier: Apache-2.0
#include "attribute/gpu_directory.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "attribute/background.h"
#include "attribute/gpu_nvml.h"
#include "attribute/gpu_proc.h"
#include "base/clock.h"

namespace gpuwatch::attribute {

namespace {

void take_if_empty(std::string& known, const std::string& more) {
  if (known.empty()) known = more;
}

void merge_mig(model::Gpu& known, const model::Gpu& more) {
  for (const model::MigInstance& mig : more.mig) {
    const auto same = [&](const model::MigInstance& other) {
      return other.gpu_instance == mig.gpu_instance && other.compute_instance == mig.compute_instance;
    };
    const auto at = std::find_if(known.mig.begin(), known.mig.end(), same);
    if (at == known.mig.end()) {
      known.mig.push_back(mig);
      continue;
    }
    take_if_empty(at->uuid, mig.uuid);
    take_if_empty(at->name, mig.name);
    if (at->cap_minor < 0) at->cap_minor = mig.cap_minor;
  }
}

std::uint64_t to_ns(std::chrono::nanoseconds time) {
  return static_cast<std::uint64_t>(time.count());
}

}  // namespace

bool fully_known(const model::Gpu& gpu) {
  // A GPU instance as a whole has no UUID of its own.
  const auto named = [](const model::MigInstance& mig) { return mig.compute_instance < 0 || !mig.uuid.empty(); };
  return !gpu.uuid.empty() && !gpu.name.empty() && !gpu.pci.empty() &&
         std::all_of(gpu.mig.begin(), gpu.mig.end(), named);
}

void merge_gpus(model::GpuList& known, const model::GpuList& more) {
  for (const model::Gpu& gpu : more) {
    const auto same = [&](const model::Gpu& other) {
      if (gpu.minor >= 0 && other.minor >= 0) return gpu.minor == other.minor;
      return !gpu.pci.empty() && gpu.pci == other.pci;
    };
    const auto at = std::find_if(known.begin(), known.end(), same);
    if (at == known.end()) {
      known.push_back(gpu);
      continue;
    }
    if (at->minor < 0) at->minor = gpu.minor;
    take_if_empty(at->pci, gpu.pci);
    take_if_empty(at->uuid, gpu.uuid);
    take_if_empty(at->name, gpu.name);
    merge_mig(*at, gpu);
  }
}

// Shared with the jobs, which may outlive the directory.
struct GpuDirectory::Live {
  explicit Live(GpuDirectoryOptions given) : options(std::move(given)) {}

  const GpuDirectoryOptions options;
  mutable std::mutex mutex;
  std::shared_ptr<const model::GpuList> latest = std::make_shared<model::GpuList>();
  std::atomic<std::uint64_t> version{0};  // of `latest`
  GpuCounters counters;
  std::uint64_t generation = 0;  // forget() makes answers to older questions void
  std::uint64_t asked_ns = 0;    // when NVML was asked and has not answered yet
  bool late = false;             // and that was counted

  // The main thread's only.
  std::uint64_t seen_version = 0;
  std::uint64_t next_look_ns = 0;
  Background background{4};

  void publish(model::GpuList gpus, std::uint64_t of_generation) {
    const std::lock_guard lock(mutex);
    if (of_generation != generation) return;
    counters.gpus = gpus.size();
    latest = std::make_shared<model::GpuList>(std::move(gpus));
    version.fetch_add(1);
  }

  // In the background.
  static void look(const std::shared_ptr<Live>& live, std::uint64_t generation) {
    model::GpuList gpus;
    if (auto told = read_proc_gpus(live->options.root); told.ok()) gpus = std::move(*told);
    {
      const std::lock_guard lock(live->mutex);
      ++live->counters.looks;
    }
    live->publish(gpus, generation);
    if (!gpus.empty() && std::all_of(gpus.begin(), gpus.end(), fully_known)) return;
    if (live->options.nvml_library.empty()) return;
    {
      const std::lock_guard lock(live->mutex);
      live->asked_ns = base::monotonic_ns();
      live->late = false;
    }
    auto answer = read_nvml_gpus(live->options.nvml_library);
    if (answer.ok()) {
      merge_gpus(gpus, answer->gpus);
      live->publish(std::move(gpus), generation);
    }
    const std::lock_guard lock(live->mutex);
    live->asked_ns = 0;
    if (answer.ok()) {
      live->counters.nvml_calls += answer->calls;
      live->counters.nvml_errors += answer->errors;
    } else if (answer.error().code() != base::Code::kNotFound) {
      ++live->counters.nvml_errors;
    }
  }

  // A hung NVML is told, and keeps the thread; nobody waits for it.
  void watch_deadline() {
    const std::lock_guard lock(mutex);
    if (asked_ns == 0 || late || base::monotonic_ns() - asked_ns < to_ns(options.nvml_deadline)) return;
    late = true;
    ++counters.nvml_timeouts;
  }
};

GpuDirectory::GpuDirectory(model::GpuList known) : current_(std::make_shared<const model::GpuList>(std::move(known))) {}

GpuDirectory::GpuDirectory(GpuDirectoryOptions live)
    : current_(std::make_shared<const model::GpuList>()), live_(std::make_shared<Live>(std::move(live))) {}

GpuDirectory::~GpuDirectory() = default;

const model::GpuList& GpuDirectory::gpus() {
  if (live_ != nullptr && live_->version.load() != live_->seen_version) {
    const std::lock_guard lock(live_->mutex);
    live_->seen_version = live_->version.load();
    current_ = live_->latest;
  }
  return *current_;
}

void GpuDirectory::used(std::int32_t minor) {
  if (live_ == nullptr) return;
  const model::Gpu* known = model::find_gpu(gpus(), minor);
  if (known != nullptr && fully_known(*known)) return;
  const std::uint64_t now = base::monotonic_ns();
  if (now < live_->next_look_ns || live_->background.busy_ns() != 0) return;
  live_->next_look_ns = now + to_ns(live_->options.again_after);
  live_->background.submit([live = live_, generation = live_->generation] { Live::look(live, generation); });
}

void GpuDirectory::forget() {
  if (live_ == nullptr) return;
  const std::lock_guard lock(live_->mutex);
  ++live_->generation;
  live_->latest = std::make_shared<model::GpuList>();
  live_->version.fetch_add(1);
  live_->counters.gpus = 0;
  live_->next_look_ns = 0;
}

GpuCounters GpuDirectory::counters() const {
  if (live_ == nullptr) {
    GpuCounters counters;
    counters.gpus = current_->size();
    return counters;
  }
  live_->watch_deadline();
  const std::lock_guard lock(live_->mutex);
  return live_->counters;
}

}  // namespace gpuwatch::attribute
