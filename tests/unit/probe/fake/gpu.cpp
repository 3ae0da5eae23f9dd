// SPDX-License-Identifier: Apache-2.0
// A libcuda for gpuwatch-probe itself, whose GPU is this process's memory: all of
// the driver API that it calls, modules laid into a code heap, and its kernels
// run at once. Preloaded, because it also answers the ioctls by which the heap is
// mapped. The environment makes it fail as a driver can. No part of gpuwatch is
// in it but the headers that the kernels share.
//   FAKE_NVIDIA   directory with files nvidia-uvm and nvidiactl
//   FAKE_INIT, FAKE_RETAIN, FAKE_OWN, FAKE_IMAGE, FAKE_PTX   what cuInit, making a context, loading the probe's own
//                 kernels, loading another module, and compiling PTX give
//   FAKE_GPUS, FAKE_SMS, FAKE_MODE, FAKE_NAME                what the device says of itself
//   FAKE_SMS_RUN  multiprocessors that blocks run on         FAKE_WRONG   the canary's results are wrong from this
//   launch on FAKE_SILENT   from this launch on the canary writes nothing FAKE_ALLOC    from this allocation on there
//   is no memory, neither of the GPU nor pinned FAKE_FAULT, FAKE_HANG, FAKE_KILL     the launch of this number ends in
//   a fault, never ends, or the process with
//                 SIGKILL; FAKE_HANG=init hangs in cuInit  FAKE_TERM    the process gets SIGTERM in the launch of this
//                 number
//   FAKE_HURRY    who waits for a time does not
//   FAKE_COUNTS   a file: whenever a context is released what was made since the begin, and what is still there
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "hash.h"
#include "kernels/canary.h"
#include "kernels/tree.h"

using namespace gpuwatch::kernels;

#define API extern "C" __attribute__((visibility("default")))

namespace {

constexpr std::size_t kHeap = 2u << 20, kPool = 16u << 20;
constexpr int kOk = 0, kInvalid = 1, kNoMemory = 2, kNoBinary = 209, kBadImage = 200, kNotFound = 500, kFault = 700,
              kWrongContext = 400;
constexpr std::uint32_t kAdds = 0x449a5000;  // of the self test's kernel

int number(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

struct Module {
  std::vector<std::uint64_t> words;  // where the self test's constant lies
};
enum class Kernel { kHash, kCopy, kStore, kCanary, kSelftest };
struct Entry {
  Kernel kernel;
  const Module* module;
};

std::uint8_t* heap = nullptr;
std::size_t heap_used = 0x100000, pool_used = 0;
int allocations = 0, launches = 0;
char places[8];  // the contexts of GPUs
const void* current = nullptr;
int retained = 0, contexts = 0, modules = 0, streams = 0,
    pinned = 0;  // the first since the begin, the others there now
bool fault = false, hang = false;
std::vector<std::pair<std::uint64_t, std::size_t>> given;

template <typename T>
T load(const std::uint8_t* bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes + at, sizeof value);
  return value;
}

// The machine code for sm_90 in a container that is not compressed.
const std::uint8_t* cubin_in(const std::uint8_t* image) {
  if (load<std::uint32_t>(image, 0) != 0xba55ed50) return image;
  std::size_t at = load<std::uint16_t>(image, 6);
  const std::size_t end = at + load<std::uint64_t>(image, 8);
  for (; at < end; at += load<std::uint32_t>(image, at + 4) + load<std::uint64_t>(image, at + 8))
    if (load<std::uint16_t>(image, at) == 2 && load<std::uint32_t>(image, at + 28) == 90)
      return image + at + load<std::uint32_t>(image, at + 4);
  return nullptr;
}

// First fit with the gap that was measured. False: this is no cubin.
bool place(const std::uint8_t* cubin, Module& module) {
  if (std::memcmp(cubin,
                  "\x7f"
                  "ELF",
                  4) != 0)
    return false;
  const auto table = load<std::uint64_t>(cubin, 40);
  const auto count = load<std::uint16_t>(cubin, 60), names = load<std::uint16_t>(cubin, 62);
  const auto strings = load<std::uint64_t>(cubin, table + 64u * names + 24);
  for (unsigned i = 0; i < count; ++i) {
    const std::uint8_t* const section = cubin + table + 64u * i;
    const char* const name = reinterpret_cast<const char*>(cubin + strings + load<std::uint32_t>(section, 0));
    if (std::strncmp(name, ".text.", 6) != 0) continue;
    const auto offset = load<std::uint64_t>(section, 24), bytes = load<std::uint64_t>(section, 32);
    heap_used = (heap_used + 255) / 256 * 256;
    if (heap_used + bytes > kHeap) return false;
    std::memcpy(heap + heap_used, cubin + offset, bytes);
    for (std::size_t at = 4; at + 4 <= bytes; at += 16)
      if (load<std::uint32_t>(heap, heap_used + at) == kAdds)
        module.words.push_back(reinterpret_cast<std::uint64_t>(heap) + heap_used + at);
    heap_used += bytes + 0x880;
  }
  return true;
}

void put(std::vector<std::uint8_t>& out, std::size_t at, std::uint64_t value, std::size_t bytes) {
  std::memcpy(out.data() + at, &value, bytes);
}

int node(const char* name) {
  const char* const folder = std::getenv("FAKE_NVIDIA");
  return folder == nullptr ? -1 : ::open((std::string(folder) + "/" + name).c_str(), O_RDWR | O_CLOEXEC);
}

void name_gpu(std::uint8_t* uuid, int number) {
  std::memset(uuid, 7, 16);
  uuid[15] = static_cast<std::uint8_t>(number);
}

// Through the program's own ioctl(), as libcuda does.
void map_heap() {
  auto* raw = static_cast<std::uint8_t*>(
      ::mmap(nullptr, 2 * kHeap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  heap = reinterpret_cast<std::uint8_t*>((reinterpret_cast<std::uintptr_t>(raw) + kHeap - 1) & ~(kHeap - 1));
  const int control = node("nvidiactl"), uvm = node("nvidia-uvm");
  void* const symbol = ::dlsym(RTLD_DEFAULT, "ioctl");
  int (*call)(int, unsigned long, ...);
  std::memcpy(&call, &symbol, sizeof call);
  std::vector<std::uint8_t> parameters(128), allocate(48), map(9264);
  put(parameters, 8, 0x1c101, 4);
  put(allocate, 0, 0xc1d00001, 4);
  put(allocate, 8, 77, 4);
  put(allocate, 12, 0x40, 4);
  put(allocate, 16, reinterpret_cast<std::uint64_t>(parameters.data()), 8);
  (void)call(control, 0xc030462b, allocate.data());
  put(map, 0, reinterpret_cast<std::uint64_t>(heap), 8);
  put(map, 8, kHeap, 8);
  const int gpus = number("FAKE_GPUS", 1);
  put(map, 9240, static_cast<std::uint64_t>(gpus), 8);
  for (int i = 0; i < gpus; ++i) name_gpu(map.data() + 24 + 36 * i, i);
  put(map, 9248, static_cast<std::uint64_t>(control), 4);
  put(map, 9252, 0xc1d00001, 4);
  put(map, 9256, 77, 4);
  (void)call(uvm, 33, map.data());
  if (gpus == 1) return;
  // The same memory object, mapped on a GPU that this process does not see: whoever reads there dies.
  void* const elsewhere = ::mmap(nullptr, kHeap, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  put(map, 0, reinterpret_cast<std::uint64_t>(elsewhere), 8);
  put(map, 9240, 1, 8);
  name_gpu(map.data() + 24, gpus);
  (void)call(uvm, 33, map.data());
}

void hash(const Job& job) {
  (void)fake::hash(job, [](std::uint64_t, std::uint64_t) { return true; });
}

template <typename T>
T argument(void** arguments, int at) {
  T value;
  std::memcpy(&value, arguments[at], sizeof value);
  return value;
}

int result() {
  return fault ? kFault : kOk;
}

// Is the launch that is being made this one or a later one?
bool from(const char* name) {
  return launches >= number(name, 1 << 30);
}

void count() {
  const char* const path = std::getenv("FAKE_COUNTS");
  std::FILE* const file = path != nullptr ? std::fopen(path, "w") : nullptr;
  if (file == nullptr) return;
  std::fprintf(file, "retained %d allocations %d launches %d contexts %d modules %d streams %d pinned %d memory %zu\n",
               retained, allocations, launches, contexts, modules, streams, pinned, given.size());
  std::fclose(file);
}

void canary(unsigned blocks, void** arguments) {
  const auto seed = argument<std::uint64_t>(arguments, 0), wait_ns = argument<std::uint64_t>(arguments, 1);
  auto* out = reinterpret_cast<CanaryBlock*>(argument<std::uint64_t>(arguments, 2));
  auto* results = reinterpret_cast<std::uint64_t*>(argument<std::uint64_t>(arguments, 3));
  const auto sms = static_cast<unsigned>(number("FAKE_SMS_RUN", number("FAKE_SMS", 4)));
  if (from("FAKE_SILENT")) return;
  const std::uint64_t wrong = from("FAKE_WRONG") ? 1 : 0;
  for (unsigned block = 0; block < blocks; ++block) out[block] = {block % sms, 1, 0, wait_ns, 0, wait_ns * 2};
  for (unsigned thread = 0; thread < blocks * kCanaryThreads; ++thread)
    results[thread] = canary_work(seed, thread) + wrong;
}

}  // namespace

// What the program's ioctl() calls: files named as the driver's nodes grant all.
API long syscall(long what, ...) noexcept {
  va_list list;
  va_start(list, what);
  long words[6];
  for (long& word : words) word = va_arg(list, long);
  va_end(list);
  if (what == SYS_ioctl) {
    char link[64], path[256];
    std::snprintf(link, sizeof link, "/proc/self/fd/%ld", words[0]);
    const ssize_t length = ::readlink(link, path, sizeof path - 1);
    if (length > 0) {
      path[length] = 0;
      if (std::strstr(path, "/nvidia") != nullptr) return 0;
    }
  }
  static const auto real = [] {
    long (*function)(long, ...);
    void* const symbol = ::dlsym(RTLD_NEXT, "syscall");
    std::memcpy(&function, &symbol, sizeof function);
    return function;
  }();
  return real(what, words[0], words[1], words[2], words[3], words[4], words[5]);
}

API int ppoll(pollfd* files, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  static const auto real = [] {
    int (*function)(pollfd*, nfds_t, const timespec*, const sigset_t*);
    void* const symbol = ::dlsym(RTLD_NEXT, "ppoll");
    std::memcpy(&function, &symbol, sizeof function);
    return function;
  }();
  static const timespec none{};
  return real(files, count, timeout != nullptr && std::getenv("FAKE_HURRY") != nullptr ? &none : timeout, mask);
}

API int cuInit(unsigned) {
  if (const char* text = std::getenv("FAKE_HANG"); text != nullptr && std::string(text) == "init")
    for (;;) ::pause();
  return number("FAKE_INIT", kOk);
}
API int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kOk;
}
API int cuDeviceGetCount(int* count) {
  *count = number("FAKE_GPUS", 1);
  return kOk;
}
API int cuDeviceGet(int* device, int which) {
  *device = which;
  return which < number("FAKE_GPUS", 1) ? kOk : kInvalid;
}
API int cuDeviceGetName(char* name, int bytes, int) {
  const char* const text = std::getenv("FAKE_NAME");
  std::snprintf(name, static_cast<std::size_t>(bytes), "%s", text != nullptr ? text : "Memory");
  return kOk;
}
API int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  name_gpu(uuid, device);
  return kOk;
}
API int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75   ? 9
           : attribute == 76 ? 0
           : attribute == 16 ? number("FAKE_SMS", 4)
           : attribute == 20 ? number("FAKE_MODE", 0)
                             : 1;
  return kOk;
}
API int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = kPool;
  return kOk;
}
API int cuDeviceGetPCIBusId(char* text, int bytes, int) {
  std::snprintf(text, static_cast<std::size_t>(bytes), "0000:00:06.0");
  return kOk;
}
API int cuDevicePrimaryCtxRetain(const void** context, int device) {
  if (const int wrong = number("FAKE_RETAIN", kOk); wrong != kOk) return wrong;
  if (heap == nullptr) map_heap();
  *context = &places[device];
  ++retained;
  ++contexts;
  return kOk;
}
API int cuDevicePrimaryCtxRelease_v2(int) {
  --contexts;
  count();
  return result();
}
API int cuCtxSetCurrent(const void* context) {
  current = context;
  return result();
}
API int cuCtxSynchronize() {
  return result();
}
API int cuModuleLoadData(Module** module, const void* image) {
  if (fault) return kFault;
  const auto* bytes = static_cast<const std::uint8_t*>(image);
  // The probe's own kernels come as a container; they need no place.
  const bool own = load<std::uint32_t>(bytes, 0) == 0xba55ed50;
  if (const int wrong = number(own ? "FAKE_OWN" : "FAKE_IMAGE", kOk); wrong != kOk) return wrong;
  auto* const made = new Module;
  const std::uint8_t* const cubin = cubin_in(bytes);
  if (cubin == nullptr || (!own && !place(cubin, *made))) {
    delete made;
    return cubin == nullptr ? kNoBinary : kBadImage;
  }
  *module = made;
  ++modules;
  return kOk;
}
API int cuModuleUnload(Module* module) {
  --modules;
  delete module;
  return result();
}
API int cuModuleGetFunction(Entry** function, Module* module, const char* name) {
  const std::string text = name;
  for (const auto& [kernel, known] : {std::pair{Kernel::kHash, "gpuwatch_hash"},
                                      {Kernel::kCopy, "gpuwatch_copy"},
                                      {Kernel::kStore, "gpuwatch_store"},
                                      {Kernel::kCanary, "gpuwatch_canary"},
                                      {Kernel::kSelftest, "gpuwatch_selftest"}}) {
    if (text != known) continue;
    *function = new Entry{kernel, module};
    return result();
  }
  return kNotFound;
}
API int cuModuleGetGlobal_v2(unsigned long long*, std::size_t*, void*, const char*) {
  return kNotFound;
}
API int cuMemAlloc_v2(unsigned long long* address, std::size_t bytes) {
  if (fault) return kFault;
  if (++allocations >= number("FAKE_ALLOC", 1 << 30) || pool_used + bytes > kPool) return kNoMemory;
  *address = reinterpret_cast<unsigned long long>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  pool_used += bytes;
  given.emplace_back(*address, bytes);
  return kOk;
}
API int cuMemFree_v2(unsigned long long address) {
  for (auto it = given.begin(); it != given.end(); ++it) {
    if (it->first != address) continue;
    pool_used -= it->second;
    given.erase(it);
    std::free(reinterpret_cast<void*>(address));
    return result();
  }
  return kInvalid;
}
API int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  if (fault) return kFault;
  if (++allocations >= number("FAKE_ALLOC", 1 << 30)) return kNoMemory;
  *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  ++pinned;
  return kOk;
}
API int cuMemFreeHost(void* memory) {
  --pinned;
  std::free(memory);
  return result();
}
API int cuMemHostGetDevicePointer_v2(unsigned long long* address, void* memory, unsigned) {
  *address = reinterpret_cast<unsigned long long>(memory);
  return result();
}
API int cuMemcpyHtoD_v2(unsigned long long to, const void* from, std::size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return result();
}
API int cuMemcpyDtoH_v2(void* to, unsigned long long from, std::size_t bytes) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return result();
}
API int cuMemsetD8_v2(unsigned long long to, unsigned char value, std::size_t bytes) {
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return result();
}
API int cuMemsetD32_v2(unsigned long long to, unsigned value, std::size_t words) {
  std::fill_n(reinterpret_cast<unsigned*>(to), words, value);
  return result();
}
API int cuLaunchKernel(const Entry* entry, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                       unsigned, const void* const* stream, void** arguments, void**) {
  if (fault) return kFault;
  if (*stream != current) return kWrongContext;
  ++launches;
  if (launches == number("FAKE_TERM", 0)) ::kill(::getpid(), SIGTERM);
  if (launches == number("FAKE_KILL", 0)) ::kill(::getpid(), SIGKILL);
  if (launches == number("FAKE_FAULT", 0)) {
    fault = true;
    return kOk;  // told by the next call that waits
  }
  hang = launches == number("FAKE_HANG", 0);
  switch (entry->kernel) {
    case Kernel::kHash:
      hash(argument<Job>(arguments, 0));
      break;
    case Kernel::kCopy:
      std::memcpy(reinterpret_cast<void*>(argument<std::uint64_t>(arguments, 1)),
                  reinterpret_cast<const void*>(argument<std::uint64_t>(arguments, 0)),
                  argument<std::uint64_t>(arguments, 2));
      break;
    case Kernel::kStore:
      std::fill_n(reinterpret_cast<std::uint32_t*>(argument<std::uint64_t>(arguments, 0)),
                  argument<std::uint64_t>(arguments, 2), argument<std::uint32_t>(arguments, 1));
      break;
    case Kernel::kCanary:
      canary(blocks, arguments);
      break;
    case Kernel::kSelftest:
      if (entry->module->words.size() != 1) return kInvalid;
      for (unsigned i = 0; i < threads; ++i)
        reinterpret_cast<float*>(argument<std::uint64_t>(arguments, 0))[i] =
            reinterpret_cast<const float*>(argument<std::uint64_t>(arguments, 1))[i] +
            *reinterpret_cast<const float*>(entry->module->words[0]);
      break;
  }
  return kOk;
}
API int cuStreamCreateWithPriority(const void*** stream, unsigned, int) {
  ++streams;
  *stream = new const void*(current);
  return result();
}
API int cuStreamDestroy_v2(const void** stream) {
  --streams;
  delete stream;
  return result();
}
API int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return kOk;
}
API int cuStreamSynchronize(void*) {
  while (hang) ::pause();
  return result();
}
API int cuEventCreate(void** event, unsigned) {
  *event = new char;
  return result();
}
API int cuEventDestroy_v2(void* event) {
  delete static_cast<char*>(event);
  return kOk;
}
API int cuEventRecord(void*, void*) {
  return result();
}
API int cuEventElapsedTime(float* ms, void*, void*) {
  *ms = 0.25f;
  return result();
}
API int cuLinkCreate_v2(unsigned, int*, void**, void** link) {
  *link = new char;
  return kOk;
}
// There is no compiler here.
API int cuLinkAddData_v2(void*, int, void*, std::size_t, const char*, unsigned, int*, void**) {
  return number("FAKE_PTX", 222);
}
API int cuLinkComplete(void*, void**, std::size_t*) {
  return kInvalid;
}
API int cuLinkDestroy(void* link) {
  delete static_cast<char*>(link);
  return kOk;
}
API int cuGetErrorName(int, const char** name) {
  *name = "FAKE_ERROR";
  return kOk;
}
API int cuGetErrorString(int, const char** text) {
  *text = "as the test wants it";
  return kOk;
}
