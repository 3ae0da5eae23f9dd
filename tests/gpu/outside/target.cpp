// SPDX-License-Identifier: Apache-2.0
#include "outside/target.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>

#include "kernels/images.h"
#include "outside/rm_calls.h"
#include "probe/verify.h"

namespace gpuwatch::outside {

namespace {

using namespace gpuwatch::probe;
using identify::load;

struct Client {
  int fd;
  Handle handle;
};
struct Object {
  Handle client, parent, handle;
  std::uint32_t object_class, flags;
  Handle app_client, compute_object;  // of a debugger
};
struct Mapping {
  std::uint64_t address, bytes;
  Handle client, memory;
};
struct Share {
  Handle client;
  std::uint8_t policy[12];
};

struct Notes {
  std::mutex lock;
  bool on = false;
  RangeRecord ranges;
  std::vector<Client> clients;
  std::vector<Object> objects;
  std::vector<Mapping> mappings;
  std::vector<Share> shares;
};
// Never destroyed: libcuda calls ioctl() after main() has returned.
Notes& notes() {
  static Notes* const all = new Notes;
  return *all;
}

constexpr unsigned long kUvmMapExternal = 33;
constexpr unsigned kSetInheritedSharePolicy = 0xd04;

bool of_interest(std::uint32_t object_class) {
  // Memory, devices, debuggers, compute objects (0x..c0 of Volta and later).
  return object_class == kClassVideoMemory || object_class == kClassSystemMemory || object_class == kDevice ||
         object_class == kSubdevice || object_class == kDebugger ||
         ((object_class & 0xff) == 0xc0 && object_class >= 0xc000);
}

void note_allocation(Notes& all, int fd, const std::uint8_t* argument, std::uint32_t bytes) {
  const identify::Bytes span(argument, bytes);
  if (load<std::uint32_t>(span, bytes == 48 ? 40 : 28) != 0) return;
  const auto object_class = load<std::uint32_t>(span, 12);
  const auto pointer = load<std::uint64_t>(span, 16);
  Object object{load<Handle>(span, 0), load<Handle>(span, 4), load<Handle>(span, 8), object_class, 0, 0, 0};
  if (object_class == 0 || object_class == kRootClient) {
    all.clients.push_back({fd, object.handle});
    return;
  }
  if (!of_interest(object_class)) return;
  identify::Bytes parameters;
  if (pointer != 0) parameters = identify::Bytes(reinterpret_cast<const std::uint8_t*>(pointer), 12);
  if (!parameters.empty() && object_class == kDebugger) {
    object.app_client = load<Handle>(parameters, 4);
    object.compute_object = load<Handle>(parameters, 8);
  } else if (!parameters.empty() && (object_class == kClassVideoMemory || object_class == kClassSystemMemory)) {
    object.flags = load<std::uint32_t>(parameters, 8);
  }
  all.objects.push_back(object);
}

void note(int fd, unsigned long request, const void* argument) {
  if (argument == nullptr) return;
  Notes& all = notes();
  const std::lock_guard guard(all.lock);
  if (!all.on) return;
  const auto* bytes = static_cast<const std::uint8_t*>(argument);
  const unsigned type = request >> 8 & 0xff, number = request & 0xff, size = request >> 16 & 0x3fff;
  if (type == 'F' && number == 0x2b && (size == 32 || size == 48)) {
    note_allocation(all, fd, bytes, size);
  } else if (type == 'F' && number == 0x29 && size == 16) {
    const identify::Bytes span(bytes, 16);
    const auto client = load<Handle>(span, 0), handle = load<Handle>(span, 8);
    std::erase_if(all.objects, [&](const Object& o) { return o.client == client && o.handle == handle; });
    if (client == handle) std::erase_if(all.clients, [&](const Client& c) { return c.handle == handle; });
  } else if (type == 'F' && number == 0x2a && size == 32) {
    const identify::Bytes span(bytes, 32);
    const auto pointer = load<std::uint64_t>(span, 16);
    if (load<std::uint32_t>(span, 8) != kSetInheritedSharePolicy || load<std::uint32_t>(span, 24) != 12 ||
        load<std::uint32_t>(span, 28) != 0 || pointer == 0)
      return;
    Share share{load<Handle>(span, 0), {}};
    std::memcpy(share.policy, reinterpret_cast<const void*>(pointer), sizeof share.policy);
    all.shares.push_back(share);
  }
  for (const auto node : {RangeRecord::Node::kUvm, RangeRecord::Node::kControl}) {
    const std::uint64_t want = RangeRecord::argument_bytes(node, request);
    // UVM's requests have no type; those of nvidiactl do.
    if (want == 0 || (node == RangeRecord::Node::kControl) != (type == 'F')) continue;
    const identify::Bytes span(bytes, want);
    identify::Bytes parameters;
    if (node == RangeRecord::Node::kControl && want >= 32) {
      const auto pointer = load<std::uint64_t>(span, 16);
      const auto memory_class = load<std::uint32_t>(span, 12);
      if (pointer != 0 && (memory_class == kClassVideoMemory || memory_class == kClassSystemMemory))
        parameters = identify::Bytes(reinterpret_cast<const std::uint8_t*>(pointer), 12);
    }
    all.ranges.call(node, request, span, parameters);
    if (node == RangeRecord::Node::kUvm && request == kUvmMapExternal && load<std::uint32_t>(span, 9260) == 0)
      all.mappings.push_back({load<std::uint64_t>(span, 0), load<std::uint64_t>(span, 8), load<Handle>(span, 9252),
                              load<Handle>(span, 9256)});
  }
}

RangeRecord noted_ranges() {
  Notes& all = notes();
  const std::lock_guard guard(all.lock);
  return all.ranges;
}

Nonce nonce() {
  static std::mt19937_64 dice(std::random_device{}());
  Nonce out{};
  for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>(dice());
  return out;
}

[[noreturn]] void end(const char* how, const std::string& why, int code) {
  std::printf("%s %s\n", how, why.c_str());
  std::fflush(stdout);
  std::_Exit(code);
}

void must(const Failure& failure) {
  if (failure) end("failed", failure.text, 2);
}

void print_notes() {
  Notes& all = notes();
  const std::lock_guard guard(all.lock);
  for (const Client& client : all.clients) std::printf("client %x %x\n", client.fd, client.handle);
  for (const Share& share : all.shares) {
    std::printf("share %x ", share.client);
    for (const std::uint8_t byte : share.policy) std::printf("%02x", byte);
    std::printf("\n");
  }
  for (const Object& object : all.objects) {
    std::printf("object %x %x %x %x %x\n", object.client, object.parent, object.handle, object.object_class,
                object.flags);
    if (object.object_class == kDebugger)
      std::printf("debugger %x %x %x %x\n", object.client, object.handle, object.app_client, object.compute_object);
  }
  for (const Mapping& mapping : all.mappings)
    if (all.ranges.covers(mapping.address, mapping.bytes))
      std::printf("map %llx %llu %x %x\n", static_cast<unsigned long long>(mapping.address),
                  static_cast<unsigned long long>(mapping.bytes), mapping.client, mapping.memory);
}

}  // namespace

int run_target(const char* cubin) {
  notes().on = true;
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  auto api = open_driver("libcuda.so.1");
  if (!api.ok()) end("skip", api.error().message(), 77);
  if (const CuResult result = api->init(0); result != kCuOk) end("skip", "cuInit: " + api->describe(result), 77);
  DeviceFacts facts;
  Session session(*api, noted_ranges);
  must(Session::facts(*api, 0, facts));
  must(session.open(facts));
  const auto sm = static_cast<std::uint32_t>(facts.major * 10 + facts.minor);
  auto images = images_of_file(cubin, sm);
  if (!images.ok()) must({Outcome::kTrouble, images.error().message()});
  if (images->size() != 1) end("skip", "the cubin has no code for this GPU", 77);
  const identify::MemorySource source(
      {gpuwatch_selftest_image, static_cast<std::size_t>(gpuwatch_selftest_image_end - gpuwatch_selftest_image)});
  const auto selftests = images_for(source, sm);
  if (selftests.size() != 1) end("skip", "no self test for this GPU", 77);
  ImageProbe code(session, nonce), selftest(session, nonce);
  must(code.load(images->front()));
  must(selftest.load(selftests.front()));
  CuFunction function = nullptr;
  if (api->module_function(&function, selftest.module(), "gpuwatch_selftest") != kCuOk) end("failed", "self test", 2);
  ModuleVerdict verdict;
  must(code.check("", verdict));
  CuPointer large = 0;
  constexpr std::size_t kLarge = std::size_t{1} << 30;
  if (api->memory_allocate(&large, kLarge) != kCuOk) large = 0;
  print_notes();
  for (const FunctionVerdict& one : verdict.functions)
    if (one.address != 0)
      std::printf("function %s %llx %llu\n", one.name.c_str(), static_cast<unsigned long long>(one.address),
                  static_cast<unsigned long long>(one.bytes));
  if (large != 0) std::printf("large %llx %zu\n", large, kLarge);
  std::puts("ready");
  std::fflush(stdout);
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    int times = 0;
    if (std::sscanf(line, "run %d", &times) != 1) times = 1;
    std::vector<double> us;
    float out = 0;
    bool same = true;
    for (int i = 0; i < times; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      must(session.run_selftest(function, out));
      us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
      same = same && out == 1235.5f;
    }
    std::sort(us.begin(), us.end());
    std::printf("%s %.1f\n", same ? "right" : "WRONG", us.empty() ? 0.0 : us[us.size() / 2]);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace gpuwatch::outside

extern "C" __attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  const long result = ::syscall(SYS_ioctl, fd, request, argument);
  if (result == 0) {
    const int kept = errno;
    gpuwatch::outside::note(fd, request, argument);
    errno = kept;
  }
  return static_cast<int>(result);
}
