// SPDX-License-Identifier: Apache-2.0
#include "probe/session.h"

#include <algorithm>
#include <cstring>

#include "base/scope_exit.h"
#include "kernels/images.h"

namespace gpuwatch::probe {

namespace {

constexpr std::uint64_t kCanaryWaitNs = 300'000;
constexpr unsigned kCopyBlocks = 512;
constexpr unsigned kBlock = 128;
constexpr unsigned kSmallBlock = 32;  // few chunks: one warp a block spreads them over the GPU

// Memory of the device for one scope.
class Buffer {
 public:
  Buffer(const DriverApi& api, std::size_t bytes) : api_(api), result_(api.memory_allocate(&address_, bytes)) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (result_ == kCuOk) api_.memory_free(address_);
  }
  CuResult result() const { return result_; }
  CuPointer address() const { return address_; }

 private:
  const DriverApi& api_;
  CuPointer address_ = 0;
  CuResult result_;
};

}  // namespace

Outcome outcome_of(CuResult result) {
  switch (result) {
    case kCuOk:
      return Outcome::kOk;
    case kCuStub:
    case kCuSystemDriverMismatch:
      return Outcome::kNoLibrary;
    case kCuNoDevice:
      return Outcome::kNoGpu;
    case kCuOutOfMemory:
      return Outcome::kOutOfMemory;
    case kCuDeviceUnavailable:
      return Outcome::kUnavailable;
    case kCuUnsupportedPtx:
    case kCuNoBinary:
      return Outcome::kTooOld;
    case kCuInvalidImage:
    case kCuInvalidPtx:
      return Outcome::kWrongImage;
    default:
      return result >= kCuIllegalAddress && result < 720 ? Outcome::kFault : Outcome::kTrouble;
  }
}

Failure Session::failed(CuResult result, const std::string& what) const {
  return {outcome_of(result), what + ": " + api_.describe(result)};
}

Failure Session::facts(const DriverApi& api, int number, DeviceFacts& out) {
  CuDevice device = 0;
  if (const CuResult result = api.device_get(&device, number); result != kCuOk)
    return {outcome_of(result), "GPU " + std::to_string(number) + ": " + api.describe(result)};
  out.number = number;
  char text[256] = {};
  if (api.device_name(text, sizeof text - 1, device) == kCuOk) out.name = text;
  char bus[64] = {};
  if (api.device_bus(bus, sizeof bus - 1, device) == kCuOk) out.bus = bus;
  CuUuid uuid{};
  if (api.device_uuid(&uuid, device) == kCuOk) {
    static constexpr char kHex[] = "0123456789abcdef";
    for (int i = 0; i < 16; ++i) {
      if (i == 4 || i == 6 || i == 8 || i == 10) out.uuid += '-';
      out.uuid += kHex[uuid.bytes[i] >> 4];
      out.uuid += kHex[uuid.bytes[i] & 15];
    }
  }
  std::size_t bytes = 0;
  if (api.device_memory(&bytes, device) == kCuOk) out.memory_bytes = bytes;
  const std::pair<int, int*> wanted[] = {{kCuMajor, &out.major},
                                         {kCuMinor, &out.minor},
                                         {kCuMultiprocessors, &out.multiprocessors},
                                         {kCuClockKhz, &out.clock_khz},
                                         {kCuComputeMode, &out.compute_mode}};
  for (const auto& [attribute, place] : wanted)
    if (api.device_attribute(place, attribute, device) != kCuOk) *place = 0;
  return {};
}

Failure Session::open(const DeviceFacts& facts) {
  if (facts.compute_mode == kCuModeProhibited)
    return {Outcome::kUnavailable, "compute mode is prohibited: nvidia-smi -c DEFAULT allows work on this GPU"};
  CuDevice device = 0;
  if (const CuResult result = api_.device_get(&device, facts.number); result != kCuOk) return failed(result, "device");
  if (const CuResult result = api_.context_retain(&context_, device); result != kCuOk) {
    if (facts.compute_mode == kCuModeExclusive && result != kCuOutOfMemory)
      return {Outcome::kUnavailable,
              "compute mode is exclusive and another process has the GPU: " + api_.describe(result)};
    return failed(result, "context");
  }
  device_ = device;
  multiprocessors_ = facts.multiprocessors;
  int count = 0;
  CuUuid uuid{};
  if (api_.device_count(&count) == kCuOk && count > 1 && api_.device_uuid(&uuid, device) == kCuOk)
    std::copy_n(uuid.bytes, gpu_.emplace().size(), gpu_->begin());
  if (Failure failure = enter()) return failure;
  if (const CuResult result = api_.module_load(&module_, gpuwatch_probe_image); result != kCuOk)
    return failed(result, "the probe's own kernels");
  const std::pair<const char*, CuFunction*> wanted[] = {
      {"gpuwatch_hash", &hash_}, {"gpuwatch_copy", &copy_}, {"gpuwatch_store", &store_}, {"gpuwatch_canary", &canary_}};
  for (const auto& [name, place] : wanted)
    if (const CuResult result = api_.module_function(place, module_, name); result != kCuOk)
      return failed(result, name);
  int least = 0;
  int greatest = 0;
  if (api_.stream_priorities(&least, &greatest) != kCuOk) least = 0;
  constexpr unsigned kNonBlocking = 1;
  if (const CuResult result = api_.stream_create(&stream_, kNonBlocking, least); result != kCuOk)
    return failed(result, "stream");
  return {};
}

Failure Session::enter() {
  const CuResult result = api_.context_set(context_);
  return result == kCuOk ? Failure{} : failed(result, "context");
}

Session::~Session() {
  // Another session's may be current.
  if (device_ >= 0) api_.context_set(context_);
  if (canary_memory_ != nullptr) api_.host_free(canary_memory_);
  if (stream_ != nullptr) api_.stream_destroy(stream_);
  if (module_ != nullptr) api_.module_unload(module_);
  if (device_ >= 0) api_.context_release(device_);
}

Failure Session::launch(CuFunction function, unsigned blocks, unsigned threads, void** arguments) {
  const CuResult result = api_.launch(function, blocks, 1, 1, threads, 1, 1, 0, stream_, arguments, nullptr);
  return result == kCuOk ? Failure{} : failed(result, "launch");
}

Failure Session::wait(const std::string& what) {
  const CuResult result = api_.stream_synchronize(stream_);
  return result == kCuOk ? Failure{} : failed(result, what);
}

Failure Session::canary(std::uint64_t seed, CanaryRun& out) {
  const unsigned blocks = static_cast<unsigned>(std::max(1, multiprocessors_)) * 4;
  out.seed = seed;
  out.blocks.resize(blocks);
  out.results.resize(std::size_t{blocks} * kernels::kCanaryThreads);
  const std::size_t block_bytes = blocks * sizeof(kernels::CanaryBlock);
  const std::size_t result_bytes = out.results.size() * sizeof out.results[0];
  if (canary_memory_ == nullptr) {
    void* memory = nullptr;
    if (const CuResult result = api_.host_allocate(&memory, block_bytes + result_bytes, kCuHostMapped); result != kCuOk)
      return failed(result, "memory for the canary");
    canary_memory_ = memory;
    if (const CuResult result = api_.host_address(&canary_address_, memory, 0); result != kCuOk)
      return failed(result, "memory for the canary");
  }
  CuPointer block_address = canary_address_;
  CuPointer result_address = block_address + block_bytes;
  std::uint64_t wait_ns = kCanaryWaitNs;
  // What the GPU does not write must not pass for what it wrote the last time.
  std::memset(canary_memory_, 0xee, block_bytes + result_bytes);
  void* arguments[] = {&seed, &wait_ns, &block_address, &result_address};
  if (Failure failure = launch(canary_, blocks, kernels::kCanaryThreads, arguments)) return failure;
  if (Failure failure = wait("canary")) return failure;
  std::memcpy(out.blocks.data(), canary_memory_, block_bytes);
  std::memcpy(out.results.data(), static_cast<const char*>(canary_memory_) + block_bytes, result_bytes);
  return {};
}

Failure Session::hash(const std::vector<Span>& spans, Form form, const Nonce& nonce,
                      std::vector<identify::Digest>& roots, float& gpu_ms) {
  const RangeRecord proven = ranges();
  for (const Span& span : spans)
    if (!proven.covers(span.address, span.bytes))
      return {Outcome::kTrouble, "an address to hash is not proven to be mapped"};
  HashPlan plan = plan_hash(spans, form);
  const Buffer digests(api_, std::max<std::uint64_t>(1, plan.digests) * kernels::kDigestBytes);
  std::size_t count = 0;
  for (const Level& level : plan.levels) count += level.regions.size();
  const Buffer tables(api_, std::max<std::size_t>(1, count) * sizeof(kernels::Region));
  if (digests.result() != kCuOk || tables.result() != kCuOk)
    return failed(digests.result() != kCuOk ? digests.result() : tables.result(), "memory for digests");
  std::vector<kernels::Region> flat;
  for (std::size_t i = 0; i < plan.levels.size(); ++i)
    for (kernels::Region region : plan.levels[i].regions) {
      if (i != 0) region.address += digests.address();
      flat.push_back(region);
    }
  if (const CuResult result = api_.memory_to_device(tables.address(), flat.data(), flat.size() * sizeof flat[0]);
      result != kCuOk)
    return failed(result, "tables");
  CuEvent begin = nullptr;
  CuEvent end = nullptr;
  if (api_.event_create(&begin, 0) != kCuOk || api_.event_create(&end, 0) != kCuOk)
    return {Outcome::kTrouble, "events"};
  const base::ScopeExit free_events([&] {
    api_.event_destroy(begin);
    api_.event_destroy(end);
  });
  api_.event_record(begin, stream_);
  std::size_t first = 0;
  for (std::size_t i = 0; i < plan.levels.size(); ++i) {
    kernels::Job job = job_of(plan, i, form, nonce);
    job.regions_address = tables.address() + first * sizeof(kernels::Region);
    job.out_address = digests.address();
    first += plan.levels[i].regions.size();
    const unsigned threads =
        job.chunks < static_cast<std::uint64_t>(std::max(1, multiprocessors_)) * 512 ? kSmallBlock : kBlock;
    void* arguments[] = {&job};
    const auto blocks = static_cast<unsigned>((job.chunks + threads - 1) / threads);
    if (Failure failure = launch(hash_, blocks, threads, arguments)) return failure;
  }
  api_.event_record(end, stream_);
  if (Failure failure = wait("hashing in place")) return failure;
  if (api_.event_elapsed(&gpu_ms, begin, end) != kCuOk) gpu_ms = 0;
  std::vector<identify::Digest> all(plan.digests);
  if (const CuResult result = api_.memory_to_host(all.data(), digests.address(), all.size() * sizeof all[0]);
      result != kCuOk)
    return failed(result, "digests");
  roots.clear();
  for (const std::uint64_t root : plan.roots) roots.push_back(all[root]);
  return {};
}

Failure Session::read(const Span& span, std::vector<std::uint8_t>& out) {
  std::vector<std::vector<std::uint8_t>> all;
  if (Failure failure = read(std::vector<Span>{span}, all)) return failure;
  out = std::move(all.front());
  return {};
}

Failure Session::read(const std::vector<Span>& spans, std::vector<std::vector<std::uint8_t>>& out) {
  std::uint64_t largest = 0;
  const RangeRecord proven = ranges();
  for (const Span& span : spans) {
    if (span.address % 16 != 0 || span.bytes % 16 != 0 || !proven.covers(span.address, span.bytes))
      return {Outcome::kTrouble, "an address to read is not proven to be mapped"};
    largest = std::max(largest, span.bytes);
  }
  out.clear();
  const Buffer memory(api_, std::max<std::uint64_t>(largest, 16));
  if (memory.result() != kCuOk) return failed(memory.result(), "memory for a copy");
  for (const Span& span : spans) {
    std::uint64_t from = span.address;
    std::uint64_t to = memory.address();
    std::uint64_t bytes = span.bytes;
    void* arguments[] = {&from, &to, &bytes};
    if (Failure failure = launch(copy_, kCopyBlocks, kBlock, arguments)) return failure;
    if (Failure failure = wait("reading")) return failure;
    out.emplace_back(span.bytes);
    if (const CuResult result = api_.memory_to_host(out.back().data(), memory.address(), span.bytes); result != kCuOk)
      return failed(result, "reading");
  }
  // The driver hands freed memory out again as it is: a copy of code left in it
  // would be found in the next search, and hashed once it is a table.
  CuResult result = api_.memory_fill(memory.address(), 0, largest);
  if (result == kCuOk) result = api_.synchronize();
  return result == kCuOk ? Failure{} : failed(result, "reading");
}

Failure Session::store(std::uint64_t address, std::uint32_t value, std::uint64_t words) {
  if (address % 4 != 0 || !ranges().covers(address, 4 * words))
    return {Outcome::kTrouble, "an address to write is not proven to be mapped"};
  void* arguments[] = {&address, &value, &words};
  if (Failure failure = launch(store_, words > kBlock ? kCopyBlocks : 1, kBlock, arguments)) return failure;
  return wait("storing");
}

Failure Session::scrub() {
  // By size, all there is: until the driver has to map more.
  constexpr std::size_t kLargest = std::size_t{1} << 20;
  constexpr std::size_t kSmallest = 256;
  constexpr std::size_t kTakenMax = 16384;
  std::vector<CuPointer> taken;
  const base::ScopeExit give_back([&] {
    for (const CuPointer address : taken) api_.memory_free(address);
  });
  for (std::size_t size = kLargest; size >= kSmallest; size /= 4) {
    const std::size_t mapped = ranges().count();
    while (taken.size() < kTakenMax && ranges().count() == mapped) {
      CuPointer address = 0;
      if (api_.memory_allocate(&address, size) != kCuOk) break;
      taken.push_back(address);
      if (const CuResult result = api_.memory_fill(address, 0, size); result != kCuOk)
        return failed(result, "clearing free memory");
    }
  }
  const CuResult result = api_.synchronize();
  return result == kCuOk ? Failure{} : failed(result, "clearing free memory");
}

Failure Session::refresh() {
  // The probe's own kernels a second time, and not the self test's module: what
  // an unloaded module leaves in the heap must never look like the code that is
  // searched for.
  CuModule module = nullptr;
  if (const CuResult result = api_.module_load(&module, gpuwatch_probe_image); result != kCuOk)
    return failed(result, "module for a refresh");
  const base::ScopeExit unload([&] { api_.module_unload(module); });
  CuFunction function = nullptr;
  if (const CuResult result = api_.module_function(&function, module, "gpuwatch_store"); result != kCuOk)
    return failed(result, "module for a refresh");
  const Buffer memory(api_, kBlock * sizeof(std::uint32_t));
  if (memory.result() != kCuOk) return failed(memory.result(), "memory for a refresh");
  std::uint64_t to = memory.address();
  std::uint32_t value = 0x5a5a5a5a;
  std::uint64_t words = kBlock;
  void* arguments[] = {&to, &value, &words};
  if (Failure failure = launch(function, 1, kBlock, arguments)) return failure;
  if (Failure failure = wait("refresh")) return failure;
  std::uint32_t back = 0;
  if (const CuResult result = api_.memory_to_host(&back, memory.address(), sizeof back); result != kCuOk)
    return failed(result, "refresh");
  if (back != value) return {Outcome::kFinding, "the kernel for a refresh did not do its work"};
  return {};
}

Failure Session::run_selftest(CuFunction function, float& out) {
  const Buffer memory(api_, 2 * kBlock * sizeof(float));
  if (memory.result() != kCuOk) return failed(memory.result(), "memory for the self test");
  const std::vector<float> ones(kBlock, 1.0f);
  CuPointer to = memory.address();
  CuPointer from = memory.address() + kBlock * sizeof(float);
  if (const CuResult result = api_.memory_to_device(from, ones.data(), kBlock * sizeof(float)); result != kCuOk)
    return failed(result, "self test");
  void* arguments[] = {&to, &from};
  if (Failure failure = launch(function, 1, kBlock, arguments)) return failure;
  if (Failure failure = wait("self test")) return failure;
  const CuResult result = api_.memory_to_host(&out, to, sizeof out);
  return result == kCuOk ? Failure{} : failed(result, "self test");
}

}  // namespace gpuwatch::probe
