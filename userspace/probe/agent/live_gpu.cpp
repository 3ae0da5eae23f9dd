// SPDX-License-Identifier: Apache-2.0
#include "probe/agent/live_gpu.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/scope_exit.h"
#include "kernels/images.h"

namespace gpuwatch::probe::agent {

namespace {

using kernels::AgentControl;

// The pinned memory: control, tables, data or digests.
constexpr std::size_t kTablesAt = 4096;
constexpr std::size_t kTablesBytes = 64 * 1024;
constexpr std::size_t kDataAt = kTablesAt + kTablesBytes;
constexpr std::size_t kHostBytes = kDataAt + kReadMax;
static_assert(sizeof(AgentControl) <= kTablesAt);
static_assert(kHashSpansMax * sizeof(kernels::Region) <= kTablesBytes);
static_assert(kSurveySpansMax * sizeof(kernels::SurveyRegion) <= kTablesBytes);
static_assert(kSurveySpansMax * kernels::kSurveyBlocks * sizeof(kernels::SurveyCount) <= kReadMax);
// Each span adds one chunk that is not full.
static_assert((kHashBytesMax / kernels::kChunkBytes + kHashSpansMax) * kernels::kDigestBytes <= kReadMax);

constexpr int kRelaxedCapture = 2;
constexpr unsigned kDeviceMap = 2;
constexpr unsigned kNonBlocking = 1;
// How long a call that unmaps may be held off before the permit is withdrawn;
// then only what has begun is waited for.
constexpr std::chrono::milliseconds kTurn{100};
constexpr std::chrono::milliseconds kRunning{5000};
constexpr int kIdleMs = 5000;
constexpr int kTries = 3;
constexpr std::chrono::milliseconds kFresh{200};

using Clock = std::chrono::steady_clock;

void pause(long ns) {
  const timespec time{0, ns};
  ::nanosleep(&time, nullptr);
}

std::uint32_t look(const std::uint32_t& word) {
  return __atomic_load_n(&word, __ATOMIC_SEQ_CST);
}

}  // namespace

Trouble LiveGpu::failed(CuResult result, const char* what) const {
  return {result == kCuOutOfMemory ? Reason::kOutOfMemory : Reason::kGpu,
          std::string(what) + ": " + api_.describe(result)};
}

Trouble LiveGpu::open(int ordinal, const Uuid* gpu) {
  gpu_ = gpu;
  CuDevice device = 0;
  if (const CuResult result = api_.device_get(&device, ordinal); result != kCuOk) return failed(result, "device");
  // A thread of ours that calls what captures forbid would break a capture that
  // the process has under way; in this mode it does not.
  int mode = kRelaxedCapture;
  if (const CuResult result = api_.capture_mode(&mode); result != kCuOk) return failed(result, "capture mode");
  unsigned flags = 0;
  int active = 0;
  if (const CuResult result = api_.context_state(device, &flags, &active); result != kCuOk)
    return failed(result, "state of the primary context");
  if (active == 0) return {Reason::kNoContext, "the process has no live primary context on this GPU"};
  if (const CuResult result = api_.context_retain(&context_, device); result != kCuOk)
    return failed(result, "primary context");
  device_ = device;
  if (const CuResult result = api_.context_set(context_); result != kCuOk) return failed(result, "primary context");
  return prepare();
}

Trouble LiveGpu::prepare() {
  // Before the module: loading one waits until the process's work on the GPU has
  // drained, and making memory for the GPU to see takes a millisecond in which the
  // process cannot launch. That goes unnoticed as long as the GPU has work.
  void* host = nullptr;
  if (const CuResult result = api_.host_allocate(&host, kHostBytes, kDeviceMap); result != kCuOk)
    return failed(result, "pinned memory");
  host_ = static_cast<std::uint8_t*>(host);
  if (const CuResult result = api_.host_pointer(&host_address_, host, 0); result != kCuOk)
    return failed(result, "pinned memory");
  if (const CuResult result = api_.module_load(&module_, gpuwatch_agent_image); result != kCuOk)
    return failed(result, "the agent's own kernels");
  loaded_ = Clock::now();
  const std::pair<const char*, CuFunction*> wanted[] = {
      {"gpuwatch_agent_read", &read_}, {"gpuwatch_agent_hash", &hash_}, {"gpuwatch_agent_survey", &survey_}};
  for (const auto& [name, place] : wanted)
    if (const CuResult result = api_.module_function(place, module_, name); result != kCuOk)
      return failed(result, name);
  int least = 0;
  int greatest = 0;
  if (api_.stream_priorities(&least, &greatest) != kCuOk) least = 0;
  if (const CuResult result = api_.stream_create(&stream_, kNonBlocking, least); result != kCuOk)
    return failed(result, "stream");
  return {};
}

void LiveGpu::close() {
  if (device_ < 0) return;
  // What still waits on the GPU may look at the memory and the code: both stay.
  const bool idle = stream_ == nullptr || idle_within(kIdleMs);
  if (idle) {
    if (stream_ != nullptr) api_.stream_destroy(stream_);
    if (host_ != nullptr) api_.host_free(host_);
    if (module_ != nullptr) api_.module_unload(module_);
  }
  api_.context_set(nullptr);
  api_.context_release(device_);
  device_ = -1;
}

bool LiveGpu::idle_within(int ms) {
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(ms);
  for (;;) {
    const CuResult result = api_.stream_query(stream_);
    if (result != kCuNotReady) return true;  // done, or the context is dead: nothing runs any more
    if (Clock::now() >= end) return false;
    pause(200'000);
  }
}

// Between two tries whoever waits to unmap may do so.
Trouble LiveGpu::run(CuFunction function, Shape shape, void** arguments, const std::vector<Span>& spans) {
  Trouble trouble;
  for (int i = 0; i < kTries; ++i) {
    bool late = false;
    trouble = run_once(function, shape, arguments, spans, late);
    if (!late) break;
  }
  return trouble;
}

// Launches, then permits it while unmapping is held off. Waiting for the GPU in
// there goes by the pinned memory alone: a thread that waits to unmap may hold
// locks of libcuda.
Trouble LiveGpu::run_once(CuFunction function, Shape shape, void** arguments, const std::vector<Span>& spans,
                          bool& late) {
  if (!idle_within(kIdleMs)) return {Reason::kOccupied, "an earlier launch still waits for the GPU"};
  AgentControl& control = *reinterpret_cast<AgentControl*>(host_);
  std::memset(&control, 0, sizeof control);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (const CuResult result =
          api_.launch(function, shape.blocks, 1, 1, shape.threads, 1, 1, 0, stream_, arguments, nullptr);
      result != kCuOk)
    return failed(result, "launch");
  const auto withdraw = [&] { __atomic_store_n(&control.permit, kernels::kPermitWithdrawn, __ATOMIC_SEQ_CST); };
  const auto all = [&](auto good) {
    return std::all_of(control.state, control.state + shape.blocks,
                       [&](const std::uint32_t& state) { return good(look(state)); });
  };
  bool done = false;
  const bool mapped = memory_.while_mapped(spans, gpu_, [&] {
    __atomic_store_n(&control.permit, kernels::kPermitGiven, __ATOMIC_SEQ_CST);
    const Clock::time_point turn = Clock::now() + kTurn;
    const auto ended = [](std::uint32_t state) { return state >= kernels::kBlockDone; };
    while (!all(ended) && Clock::now() < turn) pause(20'000);
    if (!all(ended)) {
      withdraw();
      const Clock::time_point last = Clock::now() + kRunning;
      while (!all([](std::uint32_t state) { return state != kernels::kBlockThere; }) && Clock::now() < last)
        pause(20'000);
    }
    done = all([](std::uint32_t state) { return state == kernels::kBlockDone; });
  });
  if (!mapped) withdraw();
  const bool idle = idle_within(kIdleMs);
  if (!mapped)
    return {Reason::kUnproven, "the process's own driver calls do not prove that this address is mapped video memory"};
  late = idle && !done;
  if (!idle || !done)
    return {Reason::kOccupied, "the GPU did not come to the agent's launch in time: other work holds it"};
  if (const CuResult result = api_.stream_query(stream_); result != kCuOk) return failed(result, "reading");
  ran_ = true;
  return {};
}

Trouble LiveGpu::read(const Span& span, std::vector<std::uint8_t>& out) {
  kernels::AgentCopy copy{span.address, host_address_ + kDataAt, span.bytes};
  CuPointer control = host_address_;
  void* arguments[] = {&copy, &control};
  if (Trouble trouble = run(read_, {kernels::kReadBlocks, kernels::kReadThreads}, arguments, {span})) return trouble;
  out.assign(host_ + kDataAt, host_ + kDataAt + span.bytes);
  return {};
}

Trouble LiveGpu::survey(const AskSurvey& ask, std::vector<SpanCount>& counts) {
  std::vector<kernels::SurveyRegion> regions;
  for (const Span& span : ask.spans) regions.push_back({span.address, span.bytes});
  std::memcpy(host_ + kTablesAt, regions.data(), regions.size() * sizeof regions[0]);
  kernels::AgentSurvey survey{host_address_ + kTablesAt, regions.size(), host_address_ + kDataAt};
  CuPointer control = host_address_;
  void* arguments[] = {&survey, &control};
  if (Trouble trouble = run(survey_, {kernels::kSurveyBlocks, kernels::kSurveyThreads}, arguments, ask.spans))
    return trouble;
  counts.assign(regions.size(), {});
  for (std::size_t i = 0; i < counts.size(); ++i)
    for (std::size_t block = 0; block < kernels::kSurveyBlocks; ++block) {
      kernels::SurveyCount count{};
      std::memcpy(&count, host_ + kDataAt + (i * kernels::kSurveyBlocks + block) * sizeof count, sizeof count);
      counts[i].units += count.units;
      counts[i].ends += count.ends;
    }
  return {};
}

// Loading a module and running its code was seen to make instruction caches
// fetch anew.
Trouble LiveGpu::refresh() {
  CuModule module = nullptr;
  if (const CuResult result = api_.module_load(&module, gpuwatch_selftest_image); result != kCuOk)
    return failed(result, "refresh");
  const base::ScopeExit unload([&] { api_.module_unload(module); });
  CuFunction function = nullptr;
  if (const CuResult result = api_.module_function(&function, module, "gpuwatch_selftest"); result != kCuOk)
    return failed(result, "refresh");
  constexpr unsigned kThreads = 128;
  CuPointer to = host_address_ + kDataAt;
  CuPointer from = to + kThreads * sizeof(float);
  void* arguments[] = {&to, &from};
  if (const CuResult result = api_.launch(function, 1, 1, 1, kThreads, 1, 1, 0, stream_, arguments, nullptr);
      result != kCuOk)
    return failed(result, "refresh");
  if (!idle_within(kIdleMs)) return {Reason::kOccupied, "the GPU did not come to the agent's launch in time"};
  const CuResult result = api_.stream_query(stream_);
  return result == kCuOk ? Trouble{} : failed(result, "refresh");
}

Trouble LiveGpu::hash(const AskHash& ask, std::vector<identify::Digest>& roots) {
  if (ask.refresh) {
    // Loading a module lets the process's work drain: not twice in a moment.
    const bool fresh = ran_ && Clock::now() - loaded_ < kFresh;
    loaded_ = {};
    if (!fresh)
      if (Trouble trouble = refresh()) return trouble;
  }
  const HashPlan plan = plan_hash(ask.spans, Form::kTree);
  const Level& first = plan.levels.front();
  std::memcpy(host_ + kTablesAt, first.regions.data(), first.regions.size() * sizeof first.regions[0]);
  kernels::Job job = job_of(plan, 0, Form::kTree, ask.nonce);
  job.regions_address = host_address_ + kTablesAt;
  job.out_address = host_address_ + kDataAt;
  CuPointer control = host_address_;
  void* arguments[] = {&job, &control};
  constexpr std::uint64_t kThreads = kernels::kAgentThreads;
  const std::uint64_t wanted = (first.chunks + kThreads - 1) / kThreads;
  const auto blocks = static_cast<unsigned>(std::clamp<std::uint64_t>(wanted, 1, kernels::kAgentBlocks));
  if (Trouble trouble = run(hash_, {blocks, kernels::kAgentThreads}, arguments, ask.spans)) return trouble;
  std::vector<std::uint8_t> digests(plan.digests * kernels::kDigestBytes);
  std::memcpy(digests.data(), host_ + kDataAt, first.chunks * kernels::kDigestBytes);
  host_levels(plan, Form::kTree, ask.nonce, digests);
  roots.resize(plan.roots.size());
  for (std::size_t i = 0; i < roots.size(); ++i)
    std::memcpy(roots[i].data(), &digests[plan.roots[i] * kernels::kDigestBytes], sizeof roots[i]);
  return {};
}

}  // namespace gpuwatch::probe::agent
