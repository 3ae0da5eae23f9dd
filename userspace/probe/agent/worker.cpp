// SPDX-License-Identifier: Apache-2.0
#include "probe/agent/worker.h"

#include <algorithm>

namespace gpuwatch::probe::agent {

namespace {

Frame refused(const Trouble& trouble) {
  return make(Refusal{trouble.reason, trouble.text});
}

}  // namespace

Trouble Worker::driver() {
  if (api_ != nullptr) return {};
  auto api = std::make_unique<LiveApi>();
  if (std::string missing = find_loaded_driver(*api); !missing.empty()) return {Reason::kNoDriver, missing};
  devices_.clear();
  int count = 0;
  if (const CuResult result = api->device_count(&count); result != kCuOk)
    return {Reason::kNoDriver, "the process has not set up CUDA: " + api->describe(result)};
  for (int i = 0; i < std::min(count, static_cast<int>(kDevicesMax)); ++i) {
    CuDevice device = 0;
    CuUuid uuid{};
    if (api->device_get(&device, i) != kCuOk || api->device_uuid(&uuid, device) != kCuOk)
      return {Reason::kNoDriver, "the driver does not tell the process's GPUs"};
    DeviceFact fact;
    std::copy_n(uuid.bytes, fact.uuid.size(), fact.uuid.begin());
    int major = 0;
    int minor = 0;
    int multiprocessors = 0;
    (void)api->device_attribute(&major, kCuMajor, device);
    (void)api->device_attribute(&minor, kCuMinor, device);
    (void)api->device_attribute(&multiprocessors, kCuMultiprocessors, device);
    fact.sm = static_cast<std::uint32_t>(major * 10 + minor);
    fact.multiprocessors = static_cast<std::uint32_t>(multiprocessors);
    unsigned flags = 0;
    int active = 0;
    fact.context = api->context_state(device, &flags, &active) == kCuOk && active != 0;
    devices_.push_back(fact);
  }
  api_ = std::move(api);
  return {};
}

Trouble Worker::gpu(std::uint32_t device, LiveGpu*& out) {
  if (Trouble trouble = driver()) return trouble;
  if (device >= devices_.size()) return {Reason::kMalformed, "the process sees no GPU of that number"};
  if (const auto found = gpus_.find(device); found != gpus_.end()) {
    out = found->second.get();
    return {};
  }
  // One at a time: a thread has one current context.
  gpus_.clear();
  auto gpu = std::make_unique<LiveGpu>(*api_, memory_);
  const Uuid* mapped_on = devices_.size() > 1 ? &devices_[device].uuid : nullptr;
  if (Trouble trouble = gpu->open(static_cast<int>(device), mapped_on)) return trouble;
  out = gpu.get();
  gpus_[device] = std::move(gpu);
  return {};
}

Frame Worker::facts() {
  Facts facts;
  facts.sight = see_calls();
  if (Trouble trouble = driver()) return refused(trouble);
  int version = 0;
  if (api_->driver_version(&version) == kCuOk) facts.cuda_version = static_cast<std::uint32_t>(version);
  facts.devices = devices_;
  for (const MappedRange& range : memory_.ranges()) {
    if (facts.ranges.size() == kRangesMax) {
      facts.cut = true;
      break;
    }
    RangeFact fact{{range.address, range.bytes}, range.memory_class, range.flags, 0};
    for (std::size_t i = 0; i < devices_.size(); ++i)
      if (devices_.size() == 1 || range.gpus.empty() ||
          std::find(range.gpus.begin(), range.gpus.end(), devices_[i].uuid) != range.gpus.end())
        fact.devices |= std::uint64_t{1} << i;
    facts.ranges.push_back(fact);
  }
  return make(facts);
}

Frame Worker::read(const AskRead& ask) {
  LiveGpu* live = nullptr;
  if (Trouble trouble = gpu(ask.device, live)) return refused(trouble);
  std::vector<std::uint8_t> bytes;
  if (Trouble trouble = live->read(ask.span, bytes)) return refused(trouble);
  return make_data(bytes);
}

Frame Worker::hash(const AskHash& ask) {
  LiveGpu* live = nullptr;
  if (Trouble trouble = gpu(ask.device, live)) return refused(trouble);
  std::vector<identify::Digest> roots;
  if (Trouble trouble = live->hash(ask, roots)) return refused(trouble);
  return make_roots(roots);
}

Frame Worker::survey(const AskSurvey& ask) {
  LiveGpu* live = nullptr;
  if (Trouble trouble = gpu(ask.device, live)) return refused(trouble);
  std::vector<SpanCount> counts;
  if (Trouble trouble = live->survey(ask, counts)) return refused(trouble);
  return make_survey(counts);
}

void Worker::end() {
  gpus_.clear();
  devices_.clear();
  devices_.shrink_to_fit();
  api_.reset();
}

}  // namespace gpuwatch::probe::agent
