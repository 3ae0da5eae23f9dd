// SPDX-License-Identifier: Apache-2.0
// A libcuda for gpuwatch-probe whose GPU is this process's memory: it loads cubins
// as the driver was seen to (first fit in blocks of a code heap, with gaps; banks
// and globals beside it; a copy of the text on the way there, in memory that is
// free again; what is unloaded stays), makes the ioctls by which that memory is
// mapped, and does the work of the probe's kernels. It reads what is mapped and
// nothing else: anything else is a fault, after which all calls fail.
//   FAKE_NVIDIA        directory with files nvidia-uvm and nvidiactl; none: no ioctls
//   FAKE_REFUSE        the loader refuses the module of this number, from 0
//   FAKE_TEXT_MAX      bytes of code that fit; more is out of memory
//   FAKE_CHANGE        NAME:OFFSET: a bit of each function of that name is changed when it is loaded
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hash.h"
#include "identify/cubin.h"
#include "kernels/canary.h"
#include "kernels/tree.h"
#include "probe/banks.h"

// Of no interest here, and its file wants the rest of its room.
std::uint32_t gpuwatch::identify::cubin_sm(Bytes) {
  return 90;
}

using namespace gpuwatch;
using namespace gpuwatch::kernels;
using namespace gpuwatch::probe;

#define API extern "C" __attribute__((visibility("default")))

namespace {

constexpr std::size_t kBlockBytes = 2u << 20;
constexpr std::size_t kGap = 0x880;
constexpr int kOk = 0, kInvalid = 1, kNoMemory = 2, kRefused = 200, kNotFound = 500, kFault = 700;

// Memory of one purpose, in blocks, given out first fit.
struct Pool {
  struct Block {
    std::uint8_t* base;
    std::size_t bytes;
    std::map<std::size_t, std::size_t> used;  // offset to end
  };
  std::list<Block> blocks;
  std::size_t align, gap;
};

Pool code_pool{{}, 256, kGap}, bank_pool{{}, 256, 0}, global_pool{{}, 256, 0}, user_pool{{}, 4096, 0};

struct Loaded {
  bool own = false;  // the probe's kernels
  Code code;
  std::vector<std::pair<Pool*, std::uint8_t*>> memory;
  std::map<std::string, std::uint64_t> globals, functions;
  std::size_t text_bytes = 0;
};

int uvm = -1, control = -1;
std::uint32_t next_object = 100;
std::size_t loads = 0, text_bytes = 0, changes = 0;
bool fault = false;
std::map<Loaded*, std::unique_ptr<Loaded>> modules;

void put(std::vector<std::uint8_t>& out, std::size_t at, std::uint64_t value, std::size_t bytes) {
  std::memcpy(out.data() + at, &value, bytes);
}

void tell_mapped(const Pool::Block& block) {
  ++changes;
  if (uvm < 0) return;
  std::vector<std::uint8_t> parameters(128), allocate(48), map(9264);
  put(parameters, 8, 0x1c101, 4);
  put(allocate, 0, 0xc1d00001, 4);
  put(allocate, 8, ++next_object, 4);
  put(allocate, 12, 0x40, 4);
  put(allocate, 16, reinterpret_cast<std::uint64_t>(parameters.data()), 8);
  (void)::ioctl(control, 0xc030462b, allocate.data());
  put(map, 0, reinterpret_cast<std::uint64_t>(block.base), 8);
  put(map, 8, block.bytes, 8);
  put(map, 9240, 1, 8);
  put(map, 9248, static_cast<std::uint64_t>(control), 4);
  put(map, 9252, 0xc1d00001, 4);
  put(map, 9256, next_object, 4);
  (void)::ioctl(uvm, 33, map.data());
}

void tell_unmapped(const Pool::Block& block) {
  ++changes;
  if (uvm < 0) return;
  std::vector<std::uint8_t> free(24);
  put(free, 0, reinterpret_cast<std::uint64_t>(block.base), 8);
  put(free, 8, block.bytes, 8);
  (void)::ioctl(uvm, 34, free.data());
}

std::uint8_t* take(Pool& pool, std::size_t bytes) {
  for (Pool::Block& block : pool.blocks) {
    std::size_t at = 0;
    const auto fits = [&](std::size_t end) { return at + bytes <= end; };
    for (const auto& [begin, end] : block.used) {
      if (fits(begin)) break;
      at = (end + pool.gap + pool.align - 1) / pool.align * pool.align;
    }
    auto next = block.used.lower_bound(at);
    if (!fits(next != block.used.end() ? next->first : block.bytes)) continue;
    block.used[at] = at + bytes;
    return block.base + at;
  }
  const std::size_t size = (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  auto* raw = static_cast<std::uint8_t*>(
      ::mmap(nullptr, size + kBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (raw == MAP_FAILED) return nullptr;
  auto* base =
      reinterpret_cast<std::uint8_t*>((reinterpret_cast<std::uintptr_t>(raw) + kBlockBytes - 1) & ~(kBlockBytes - 1));
  pool.blocks.push_back({base, size, {{0, bytes}}});
  tell_mapped(pool.blocks.back());
  return base;
}

bool give(Pool& pool, const std::uint8_t* address) {
  for (auto block = pool.blocks.begin(); block != pool.blocks.end(); ++block) {
    if (address < block->base || address >= block->base + block->bytes) continue;
    if (block->used.erase(static_cast<std::size_t>(address - block->base)) == 0) return false;
    // Blocks of code stay, and what was in them.
    if (&pool != &user_pool || !block->used.empty() || block == pool.blocks.begin()) return true;
    tell_unmapped(*block);
    (void)::munmap(block->base, block->bytes);
    pool.blocks.erase(block);
    return true;
  }
  return false;
}

bool mapped(std::uint64_t address, std::uint64_t bytes) {
  for (const Pool* pool : {&code_pool, &bank_pool, &global_pool, &user_pool})
    for (const Pool::Block& block : pool->blocks) {
      const auto begin = reinterpret_cast<std::uint64_t>(block.base);
      if (address >= begin && address + bytes <= begin + block.bytes) return true;
    }
  return false;
}

std::uint64_t number(const void* address) {
  return reinterpret_cast<std::uint64_t>(address);
}

// The text goes through memory that is free again, and stays there.
void stage(const Function& function) {
  std::uint8_t* way = take(user_pool, function.text.size());
  std::memcpy(way, function.text.data(), function.text.size());
  give(user_pool, way);
}

Addresses addresses_of(Loaded& module) {
  static std::uint8_t* const driver_code = take(code_pool, 4096);
  Addresses out;
  for (std::uint32_t i = 0; i < module.code.symbols.size(); ++i) {
    const CodeSymbol& symbol = module.code.symbols[i];
    const auto function = std::find_if(module.code.functions.begin(), module.code.functions.end(),
                                       [&](const Function& one) { return one.section == symbol.section; });
    if (symbol.section == 0) {
      out[i] = number(driver_code) + 16;
    } else if (function != module.code.functions.end()) {
      out[i] = module.functions[function->name] + symbol.value;
    } else if (!symbol.name.empty()) {
      std::uint8_t* memory = take(global_pool, 64);
      module.memory.emplace_back(&global_pool, memory);
      module.globals[symbol.name] = out[i] = number(memory);
    }
  }
  return out;
}

int load(Loaded& module, const std::vector<std::uint8_t>& image) {
  std::vector<Bank> banks;
  if (!read_code(image, module.code).empty() || !read_banks(image, banks).empty()) return kRefused;
  for (const Function& function : module.code.functions) module.text_bytes += function.text.size();
  const char* most = std::getenv("FAKE_TEXT_MAX");
  if (most != nullptr && text_bytes + module.text_bytes > std::strtoull(most, nullptr, 10)) return kNoMemory;
  for (const Function& function : module.code.functions) {
    stage(function);
    std::uint8_t* memory = take(code_pool, function.text.size());
    module.memory.emplace_back(&code_pool, memory);
    module.functions[function.name] = number(memory);
  }
  const Addresses addresses = addresses_of(module);
  const char* change = std::getenv("FAKE_CHANGE");
  const char* colon = change != nullptr ? std::strrchr(change, ':') : nullptr;
  for (const Function& function : module.code.functions) {
    auto* memory = reinterpret_cast<std::uint8_t*>(module.functions[function.name]);
    const std::vector<std::uint8_t> text = expected_text(function, addresses);
    std::memcpy(memory, text.data(), text.size());
    if (colon != nullptr && function.name == std::string(change, colon)) {
      const std::size_t offset = std::strtoull(colon + 1, nullptr, 10);
      if (offset < text.size()) memory[offset] ^= 0x10;
    }
  }
  for (const Bank& bank : banks) {
    std::vector<std::uint8_t> mask;
    const std::vector<std::uint8_t> bytes = expected_bank(bank, addresses, mask);
    std::uint8_t* memory = take(bank_pool, bytes.size());
    module.memory.emplace_back(&bank_pool, memory);
    std::memcpy(memory, bytes.data(), bytes.size());
  }
  text_bytes += module.text_bytes;
  return kOk;
}

void hash(const Job& job) {
  if (!fake::hash(job, [](std::uint64_t address, std::uint64_t bytes) { return mapped(address, bytes); })) fault = true;
}

template <typename T>
T argument(void** arguments, int i) {
  T value;
  std::memcpy(&value, arguments[i], sizeof value);
  return value;
}

void canary(void** arguments, unsigned blocks) {
  const auto seed = argument<std::uint64_t>(arguments, 0);
  auto* out = reinterpret_cast<CanaryBlock*>(argument<std::uint64_t>(arguments, 2));
  auto* results = reinterpret_cast<std::uint64_t*>(argument<std::uint64_t>(arguments, 3));
  for (std::uint32_t i = 0; i < blocks * kCanaryThreads; ++i) results[i] = canary_work(seed, i);
  for (unsigned i = 0; i < blocks; ++i) out[i] = {i % 4, 9, 1000, 2'001'000, 5000, 5000 + 3'960'000};
}

void copy(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
  if (!mapped(from, bytes) || !mapped(to, bytes))
    fault = true;
  else
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
}

void store(std::uint64_t to, std::uint32_t value, std::uint64_t words) {
  if (!mapped(to, 4 * words)) {
    fault = true;
    return;
  }
  for (std::uint64_t i = 0; i < words; ++i) std::memcpy(reinterpret_cast<void*>(to + 4 * i), &value, 4);
}

const char* const kKernels[] = {"", "gpuwatch_hash", "gpuwatch_copy", "gpuwatch_store", "gpuwatch_canary"};

int state() {
  return fault ? kFault : kOk;
}

}  // namespace

API int cuInit(unsigned) {
  if (const char* directory = std::getenv("FAKE_NVIDIA"); directory != nullptr && uvm < 0) {
    uvm = ::open((std::string(directory) + "/nvidia-uvm").c_str(), O_RDWR | O_CLOEXEC);
    control = ::open((std::string(directory) + "/nvidiactl").c_str(), O_RDWR | O_CLOEXEC);
  }
  return kOk;
}
API int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kOk;
}
API int cuDeviceGetCount(int* count) {
  *count = 1;
  return kOk;
}
API int cuDeviceGet(int* device, int number) {
  *device = number;
  return kOk;
}
API int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "memory", static_cast<std::size_t>(bytes));
  return kOk;
}
API int cuDeviceGetUuid_v2(unsigned char* uuid, int) {
  std::memset(uuid, 7, 16);
  return kOk;
}
API int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : attribute == 16 ? 4 : 0;
  return kOk;
}
API int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = std::size_t{1} << 30;
  return kOk;
}
API int cuDeviceGetPCIBusId(char* bus, int bytes, int) {
  std::strncpy(bus, "0000:00:00.0", static_cast<std::size_t>(bytes));
  return kOk;
}
API int cuDevicePrimaryCtxRetain(void** context, int) {
  static int one;
  *context = &one;
  // Memory that is there from the begin, as of the driver's own code.
  if (code_pool.blocks.empty()) give(code_pool, take(code_pool, 4096));
  if (user_pool.blocks.empty()) give(user_pool, take(user_pool, 4096));
  return kOk;
}
API int cuDevicePrimaryCtxRelease_v2(int) {
  return kOk;
}
API int cuCtxSetCurrent(void*) {
  return kOk;
}
API int cuCtxSynchronize() {
  return state();
}
API int cuModuleLoadData(void** out, const void* image) {
  if (fault) return kFault;
  auto module = std::make_unique<Loaded>();
  const auto* bytes = static_cast<const std::uint8_t*>(image);
  constexpr std::uint8_t kFatbin[] = {0x50, 0xed, 0x55, 0xba};
  if (std::memcmp(bytes, kFatbin, sizeof kFatbin) == 0) {
    module->own = true;
  } else {
    const char* refuse = std::getenv("FAKE_REFUSE");
    const bool refused = refuse != nullptr && loads == std::strtoull(refuse, nullptr, 10);
    ++loads;
    if (refused) return kRefused;
    // As long as its headers say: sections are before the program headers' end.
    std::uint64_t sections = 0, programs = 0;
    std::uint16_t count = 0, program_count = 0;
    std::memcpy(&programs, bytes + 32, 8);
    std::memcpy(&sections, bytes + 40, 8);
    std::memcpy(&program_count, bytes + 56, 2);
    std::memcpy(&count, bytes + 60, 2);
    const std::uint64_t size = std::max<std::uint64_t>(sections + 64ull * count, programs + 56ull * program_count);
    if (const int result = load(*module, {bytes, bytes + size}); result != kOk) {
      if (result == kNoMemory) --loads;
      return result;
    }
  }
  *out = module.get();
  modules[module.get()] = std::move(module);
  return kOk;
}
API int cuModuleUnload(Loaded* module) {
  text_bytes -= module->text_bytes;
  for (const auto& [pool, memory] : module->memory) give(*pool, memory);
  return modules.erase(module) != 0 ? state() : kInvalid;
}
API int cuModuleGetFunction(void** function, Loaded* module, const char* name) {
  for (std::uintptr_t i = 1; module->own && i < std::size(kKernels); ++i)
    if (std::strcmp(kKernels[i], name) == 0) {
      *function = reinterpret_cast<void*>(i);
      return kOk;
    }
  return kNotFound;
}
API int cuModuleGetGlobal_v2(std::uint64_t* address, std::size_t* bytes, Loaded* module, const char* name) {
  const auto it = module->globals.find(name);
  if (it == module->globals.end()) return kNotFound;
  *address = it->second;
  *bytes = 64;
  return kOk;
}
API int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  if (fault) return kFault;
  *address = number(take(user_pool, std::max<std::size_t>(bytes, 1)));
  return kOk;
}
API int cuMemFree_v2(std::uint64_t address) {
  return give(user_pool, reinterpret_cast<const std::uint8_t*>(address)) ? kOk : kInvalid;
}
API int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return state();
}
API int cuMemFreeHost(void* memory) {
  std::free(memory);
  return state();
}
API int cuMemHostGetDevicePointer_v2(std::uint64_t* address, void* memory, unsigned) {
  *address = number(memory);
  return state();
}
API int cuMemcpyHtoD_v2(std::uint64_t to, const void* from, std::size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return state();
}
API int cuMemcpyDtoH_v2(void* to, std::uint64_t from, std::size_t bytes) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return state();
}
API int cuMemsetD8_v2(std::uint64_t to, unsigned char value, std::size_t bytes) {
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return state();
}
API int cuMemsetD32_v2(std::uint64_t to, unsigned value, std::size_t words) {
  store(to, value, words);
  return state();
}
API int cuLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       void*, void** arguments, void**) {
  if (fault) return kFault;
  switch (reinterpret_cast<std::uintptr_t>(function)) {
    case 1:
      hash(argument<Job>(arguments, 0));
      break;
    case 2:
      copy(argument<std::uint64_t>(arguments, 0), argument<std::uint64_t>(arguments, 1),
           argument<std::uint64_t>(arguments, 2));
      break;
    case 3:
      store(argument<std::uint64_t>(arguments, 0), argument<std::uint32_t>(arguments, 1),
            argument<std::uint64_t>(arguments, 2));
      break;
    case 4:
      canary(arguments, blocks);
      break;
    default:
      return kInvalid;
  }
  return kOk;
}
API int cuStreamCreateWithPriority(void** stream, unsigned, int) {
  *stream = &uvm;
  return kOk;
}
API int cuStreamDestroy_v2(void*) {
  return kOk;
}
API int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return kOk;
}
API int cuStreamSynchronize(void*) {
  return state();
}
API int cuEventCreate(void** event, unsigned) {
  *event = &uvm;
  return kOk;
}
API int cuEventDestroy_v2(void*) {
  return kOk;
}
API int cuEventRecord(void*, void*) {
  return kOk;
}
API int cuEventElapsedTime(float* ms, void*, void*) {
  *ms = 0.25f;
  return kOk;
}
API int cuLinkCreate_v2(unsigned, int*, void**, void**) {
  return kRefused;
}
API int cuLinkAddData_v2(void*, int, void*, std::size_t, const char*, unsigned, int*, void**) {
  return kRefused;
}
API int cuLinkComplete(void*, void**, std::size_t*) {
  return kRefused;
}
API int cuLinkDestroy(void*) {
  return kOk;
}
API int cuGetErrorName(int result, const char** name) {
  *name = result == kNoMemory ? "FAKE_OUT_OF_MEMORY" : "FAKE_ERROR";
  return kOk;
}
API int cuGetErrorString(int, const char** text) {
  *text = "as told";
  return kOk;
}

// For tests in this process: what is mapped, how often that changed, and how
// often a load was asked for.
API std::size_t fake_range(std::size_t number, std::uint64_t* address, std::uint64_t* bytes) {
  std::size_t all = 0;
  for (const Pool* pool : {&code_pool, &bank_pool, &global_pool, &user_pool})
    for (const Pool::Block& block : pool->blocks)
      if (all++ == number) {
        *address = reinterpret_cast<std::uint64_t>(block.base);
        *bytes = block.bytes;
      }
  return all;
}
API std::size_t fake_changes() {
  return changes;
}
API std::size_t fake_loads() {
  return loads;
}
