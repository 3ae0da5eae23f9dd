// SPDX-License-Identifier: Apache-2.0
// A libcuda whose GPU is this process's memory: enough of the driver API for the
// agent, its kernels on a thread of their own, and the ioctls by which memory is
// mapped. It reads what is mapped and nothing else: anything else is a fault,
// after which all calls fail, as on a GPU. No part of gpuwatch is in it but the
// headers that the kernels share.
//   FAKE_NVIDIA        directory with files nvidia-uvm and nvidiactl
//   FAKE_LATE          the agent's launches come when their permit was withdrawn
//   FAKE_DATA          8 MiB more are mapped, of the kind that the code heap is of
//   FAKE_EXIT          the process ends with the first launch
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "hash.h"
#include "kernels/agent.h"

using namespace gpuwatch::kernels;

#define API extern "C" __attribute__((visibility("default")))

namespace {

constexpr std::size_t kHeap = 2u << 20;
constexpr std::size_t kData = 8u << 20;
constexpr int kOk = 0, kInvalid = 1, kNotInitialized = 3, kNotReady = 600, kFault = 700;

struct Stream {
  std::atomic<int> pending{0};
};
enum Kernel : std::uintptr_t { kRead = 1, kHash = 2, kSelftest = 3, kSurvey = 4 };

bool initialized = false;
int uvm = -1, control = -1;
std::uint8_t* heap = nullptr;
std::uint8_t* data = nullptr;
std::atomic<bool> mapped{false}, fault{false};
std::atomic<int> contexts{0}, modules{0}, streams{0}, pinned{0}, launches{0};

bool readable(std::uint64_t address, std::uint64_t bytes) {
  const auto begin = reinterpret_cast<std::uint64_t>(heap);
  const auto more = reinterpret_cast<std::uint64_t>(data);
  return mapped && ((address >= begin && address + bytes <= begin + kHeap) ||
                    (data != nullptr && address >= more && address + bytes <= more + kData));
}

void hash(const Job& job) {
  if (!fake::hash(job, [](std::uint64_t address, std::uint64_t bytes) { return readable(address, bytes); }))
    fault = true;
}

void copy(const AgentCopy& job) {
  if (!readable(job.from, job.bytes)) {
    fault = true;
    return;
  }
  std::memcpy(reinterpret_cast<void*>(job.to), reinterpret_cast<const void*>(job.from), job.bytes);
}

void survey(const AgentSurvey& job) {
  const auto* regions = reinterpret_cast<const SurveyRegion*>(job.regions_address);
  auto* out = reinterpret_cast<SurveyCount*>(job.out_address);
  std::memset(out, 0, job.regions * kSurveyBlocks * sizeof *out);
  for (std::uint64_t i = 0; i < job.regions; ++i) {
    if (!readable(regions[i].address, regions[i].bytes)) {
      fault = true;
      return;
    }
    for (std::uint64_t at = 0; at < regions[i].bytes; at += 16) {
      std::uint64_t unit[2];
      std::memcpy(unit, reinterpret_cast<const std::uint8_t*>(regions[i].address) + at, sizeof unit);
      SurveyCount& count = out[i * kSurveyBlocks + at / 16 % kSurveyBlocks];
      count.units += (unit[0] | unit[1]) != 0 ? 1 : 0;
      count.ends += is_end(unit[0]) ? 1 : 0;
    }
  }
}

// All blocks in one: there, permitted or not, done.
template <typename Work>
void gated(AgentControl* control, const Work& work) {
  const auto all = [&](std::uint32_t value) {
    for (std::uint32_t& state : control->state) __atomic_store_n(&state, value, __ATOMIC_SEQ_CST);
  };
  all(kBlockThere);
  std::uint32_t permit = 0;
  while ((permit = __atomic_load_n(&control->permit, __ATOMIC_SEQ_CST)) == kPermitNotYet) std::this_thread::yield();
  if (permit == kPermitGiven) work();
  all(permit == kPermitGiven ? kBlockDone : kBlockRefrained);
}

void put(std::vector<std::uint8_t>& out, std::size_t at, std::uint64_t value, std::size_t bytes) {
  std::memcpy(out.data() + at, &value, bytes);
}

std::uint8_t* map_video(std::size_t bytes, std::uint32_t handle) {
  constexpr std::size_t kAlign = 2u << 20;
  auto* raw = static_cast<std::uint8_t*>(
      ::mmap(nullptr, bytes + kAlign, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  auto* place = reinterpret_cast<std::uint8_t*>((reinterpret_cast<std::uintptr_t>(raw) + kAlign - 1) & ~(kAlign - 1));
  std::vector<std::uint8_t> parameters(128), allocate(48), map(9264);
  put(parameters, 8, 0x1c101, 4);
  put(allocate, 0, 0xc1d00001, 4);
  put(allocate, 8, handle, 4);
  put(allocate, 12, 0x40, 4);
  put(allocate, 16, reinterpret_cast<std::uint64_t>(parameters.data()), 8);
  (void)::ioctl(control, 0xc030462b, allocate.data());
  put(map, 0, reinterpret_cast<std::uint64_t>(place), 8);
  put(map, 8, bytes, 8);
  put(map, 9240, 1, 8);
  put(map, 9248, static_cast<std::uint64_t>(control), 4);
  put(map, 9252, 0xc1d00001, 4);
  put(map, 9256, handle, 4);
  if (::ioctl(uvm, 33, map.data()) == 0) mapped = true;
  return place;
}

void map_heap() {
  heap = map_video(kHeap, 77);
  if (std::getenv("FAKE_DATA") != nullptr) data = map_video(kData, 78);
}

}  // namespace

API int cuInit(unsigned) {
  if (initialized) return kOk;
  const char* directory = std::getenv("FAKE_NVIDIA");
  if (directory == nullptr) return 100;
  uvm = ::open((std::string(directory) + "/nvidia-uvm").c_str(), O_RDWR | O_CLOEXEC);
  control = ::open((std::string(directory) + "/nvidiactl").c_str(), O_RDWR | O_CLOEXEC);
  initialized = true;
  if (const char* path = std::getenv("CUDA_INJECTION64_PATH")) {
    void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void* symbol = library != nullptr ? ::dlsym(library, "InitializeInjection") : nullptr;
    if (symbol == nullptr || reinterpret_cast<int (*)()>(symbol)() != 1) return 999;
  }
  return kOk;
}

API int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kOk;
}
API int cuDeviceGetCount(int* count) {
  *count = 1;
  return initialized ? kOk : kNotInitialized;
}
API int cuDeviceGet(int* device, int number) {
  *device = number;
  return number == 0 ? kOk : kInvalid;
}
API int cuDeviceGetUuid_v2(unsigned char* uuid, int) {
  std::memset(uuid, 7, 16);
  return kOk;
}
API int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 132;
  return kOk;
}
API int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  *active = contexts > 0 ? 1 : 0;
  return kOk;
}
API int cuDevicePrimaryCtxRetain(void** context, int) {
  if (contexts++ == 0 && heap == nullptr) map_heap();
  *context = heap;
  return fault ? kFault : kOk;
}
API int cuDevicePrimaryCtxRelease_v2(int) {
  --contexts;
  return kOk;
}
API int cuCtxSetCurrent(void*) {
  return kOk;
}
API int cuThreadExchangeStreamCaptureMode(int* mode) {
  const bool relaxed = *mode == 2;
  *mode = 0;
  return relaxed ? kOk : kInvalid;
}
API int cuModuleLoadData(void** module, const void* image) {
  if (image == nullptr || fault) return fault ? kFault : kInvalid;
  ++modules;
  *module = new char;
  return kOk;
}
API int cuModuleUnload(void* module) {
  --modules;
  delete static_cast<char*>(module);
  return kOk;
}
API int cuModuleGetFunction(void** function, void*, const char* name) {
  const std::string text = name;
  const Kernel kernel = text == "gpuwatch_agent_read"     ? kRead
                        : text == "gpuwatch_agent_hash"   ? kHash
                        : text == "gpuwatch_agent_survey" ? kSurvey
                                                          : kSelftest;
  *function = reinterpret_cast<void*>(kernel);
  return kOk;
}
API int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  ++pinned;
  *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return kOk;
}
API int cuMemFreeHost(void* memory) {
  --pinned;
  std::free(memory);
  return kOk;
}
API int cuMemHostGetDevicePointer_v2(unsigned long long* address, void* memory, unsigned) {
  *address = reinterpret_cast<unsigned long long>(memory);
  return kOk;
}
API int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return kOk;
}
API int cuStreamCreateWithPriority(Stream** stream, unsigned flags, int priority) {
  if (flags != 1 || priority != 0) return kInvalid;
  ++streams;
  *stream = new Stream;
  return kOk;
}
API int cuStreamDestroy_v2(Stream* stream) {
  --streams;
  delete stream;
  return kOk;
}
API int cuStreamQuery(Stream* stream) {
  if (stream->pending != 0) return kNotReady;
  return fault ? kFault : kOk;
}
API int cuLaunchKernel(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       Stream* stream, void** arguments, void**) {
  if (std::getenv("FAKE_EXIT") != nullptr) ::_exit(3);
  ++launches;
  const auto kernel = static_cast<Kernel>(reinterpret_cast<std::uintptr_t>(function));
  AgentCopy copy_job{};
  Job hash_job{};
  AgentSurvey survey_job{};
  AgentControl* agent_control = nullptr;
  if (kernel == kRead) std::memcpy(&copy_job, arguments[0], sizeof copy_job);
  if (kernel == kHash) std::memcpy(&hash_job, arguments[0], sizeof hash_job);
  if (kernel == kSurvey) std::memcpy(&survey_job, arguments[0], sizeof survey_job);
  if (kernel != kSelftest) std::memcpy(&agent_control, arguments[1], sizeof agent_control);
  ++stream->pending;
  const bool late = std::getenv("FAKE_LATE") != nullptr && agent_control != nullptr;
  std::thread([=] {
    while (late && __atomic_load_n(&agent_control->permit, __ATOMIC_SEQ_CST) != kPermitWithdrawn)
      std::this_thread::yield();
    if (kernel == kRead) gated(agent_control, [&] { copy(copy_job); });
    if (kernel == kHash) gated(agent_control, [&] { hash(hash_job); });
    if (kernel == kSurvey) gated(agent_control, [&] { survey(survey_job); });
    --stream->pending;
  }).detach();
  return kOk;
}
API int cuGetErrorName(int, const char** name) {
  *name = "FAKE_ERROR";
  return kOk;
}

// For the program of the test.
API void* fake_heap() {
  return heap;
}
API void* fake_data() {
  return data;
}
API void fake_unmap() {
  std::vector<std::uint8_t> free(24);
  put(free, 0, reinterpret_cast<std::uint64_t>(heap), 8);
  put(free, 8, kHeap, 8);
  (void)::ioctl(uvm, 34, free.data());
  mapped = false;
}
API void fake_counts(int* out) {
  const int counts[] = {contexts, modules, streams, pinned, fault ? 1 : 0, launches};
  std::memcpy(out, counts, sizeof counts);
}
