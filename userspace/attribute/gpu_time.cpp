// SPDX-License-Identifier: Apache-2.0
#include "attribute/gpu_time.h"

#include <algorithm>
#include <mutex>

#include "attribute/background.h"
#include "attribute/nvml_calls.h"
#include "base/clock.h"

namespace gpuwatch::attribute {

using base::Code;
using base::Error;
using base::Result;

namespace {

constexpr unsigned kGpusMax = 64;
constexpr unsigned kSamplesMax = 4096;
constexpr std::size_t kAnswersMax = 65536;

// nvmlProcessUtilizationSample_t, the same since driver 375.
struct Sample {
  unsigned pid;
  unsigned long long time_us;
  unsigned sm, memory, encoder, decoder;
};
static_assert(sizeof(Sample) == 32);

void read_device(NvmlCalls& nvml, NvmlCalls::Device device, std::int32_t minor, GpuTimeAnswer& answer) {
  const unsigned long long since = answer.seen[minor];
  std::vector<Sample> samples(256);
  auto count = static_cast<unsigned>(samples.size());
  const auto ask = [&] {
    return nvml.call("nvmlDeviceGetProcessUtilization", device, static_cast<Sample*>(samples.data()), &count, since);
  };
  int status = ask();
  if (status == kNvmlInsufficientSize && count > samples.size() && count <= kSamplesMax) {
    samples.resize(count);
    status = ask();
  }
  if (status != kNvmlSuccess) return;
  samples.resize(std::min<std::size_t>(count, samples.size()));
  // The latest of each process; a sample that is above 100 is none.
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.time_us < b.time_us; });
  for (const Sample& sample : samples) {
    answer.seen[minor] = std::max(answer.seen[minor], sample.time_us);
    if (sample.pid == 0 || sample.sm > 100 || answer.percent.size() >= kAnswersMax) continue;
    answer.percent[{minor, sample.pid}] = sample.sm;
  }
}

}  // namespace

Result<GpuTimeAnswer> read_nvml_gpu_time(const std::string& library, const std::vector<std::int32_t>& minors,
                                         std::map<std::int32_t, unsigned long long> seen) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Error(Code::kNotFound, library + ": cannot be loaded");
  NvmlCalls nvml(handle);
  if (const int status = nvml.call("nvmlInit_v2"); status != kNvmlSuccess)
    return Error(Code::kIo, library + ": nvmlInit_v2 gives " + std::to_string(status));
  GpuTimeAnswer answer;
  answer.seen = std::move(seen);
  unsigned count = 0;
  const int counted = nvml.call("nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; counted == kNvmlSuccess && i < count && i < kGpusMax; ++i) {
    NvmlCalls::Device device = nullptr;
    if (nvml.call("nvmlDeviceGetHandleByIndex_v2", i, &device) != kNvmlSuccess) continue;
    const std::int32_t minor = nvml.number("nvmlDeviceGetMinorNumber", device);
    if (std::find(minors.begin(), minors.end(), minor) != minors.end()) read_device(nvml, device, minor, answer);
  }
  nvml.call("nvmlShutdown");
  if (counted != kNvmlSuccess)
    return Error(Code::kIo, library + ": nvmlDeviceGetCount_v2 gives " + std::to_string(counted));
  return answer;
}

// Shared with the jobs, which may outlive the asker.
struct GpuTime::State {
  explicit State(GpuTimeOptions given) : options(std::move(given)) {}

  const GpuTimeOptions options;
  mutable std::mutex mutex;
  GpuTimeAnswer answer;
  bool told = false;
  bool hopeless = false;  // there is no library

  // The asker's only.
  std::uint64_t next_ns = 0;
  Background background{1};

  static void look(const std::shared_ptr<State>& state, const std::vector<std::int32_t>& minors) {
    std::map<std::int32_t, unsigned long long> seen;
    {
      const std::lock_guard lock(state->mutex);
      seen = state->answer.seen;
    }
    auto answer = read_nvml_gpu_time(state->options.nvml_library, minors, std::move(seen));
    const std::lock_guard lock(state->mutex);
    if (!answer.ok()) {
      state->hopeless = answer.error().code() == Code::kNotFound;
      state->answer.percent.clear();
      return;
    }
    state->told = state->told || !answer->percent.empty();
    state->answer = std::move(*answer);
  }
};

GpuTime::GpuTime(GpuTimeOptions options) : state_(std::make_shared<State>(std::move(options))) {}
GpuTime::~GpuTime() = default;

void GpuTime::used(const std::vector<std::int32_t>& minors) {
  if (minors.empty() || state_->options.nvml_library.empty()) return;
  const std::uint64_t now = base::monotonic_ns();
  if (now < state_->next_ns || state_->background.busy_ns() != 0) return;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->hopeless) return;
  }
  state_->next_ns = now + static_cast<std::uint64_t>(std::chrono::nanoseconds(state_->options.every).count());
  state_->background.submit([state = state_, minors] { State::look(state, minors); });
}

std::optional<std::uint32_t> GpuTime::percent(std::int32_t minor, std::uint32_t pid) const {
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->answer.percent.find({minor, pid});
  if (at == state_->answer.percent.end()) return std::nullopt;
  return at->second;
}

bool GpuTime::known() const {
  const std::lock_guard lock(state_->mutex);
  return state_->told;
}

}  // namespace gpuwatch::attribute
