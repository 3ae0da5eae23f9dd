// SPDX-License-Identifier: Apache-2.0
// The program that the agent lives in: sets up the libcuda that LD_LIBRARY_PATH
// names, lays the functions of a cubin into the code heap as the driver would,
// and then does what lines on its input say, with a line of answer each.
//
// usage: agent-host CUBIN
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "probe/banks.h"
#include "probe/code.h"

using namespace gpuwatch::probe;

namespace {

template <typename F>
F find(void* library, const char* name) {
  F function;
  void* symbol = ::dlsym(library, name);
  if (symbol == nullptr) std::_Exit(9);
  std::memcpy(&function, &symbol, sizeof function);
  return function;
}

// First fit with the gap that was measured; gives the end.
std::size_t place(std::uint8_t* heap, std::size_t at, const Code& code) {
  for (const Function& function : code.functions) {
    at = (at + 255) / 256 * 256;
    std::memcpy(heap + at, function.text.data(), function.text.size());
    at += function.text.size() + 0x880;
  }
  return at;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 9;
  std::ifstream file(argv[1], std::ios::binary);
  const std::vector<std::uint8_t> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Code code;
  if (!read_code(bytes, code).empty()) return 9;
  void* cuda = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (cuda == nullptr) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    return 9;
  }
  if (find<int (*)(unsigned)>(cuda, "cuInit")(0) != 0) return 9;
  void* context = nullptr;
  if (find<int (*)(void**, int)>(cuda, "cuDevicePrimaryCtxRetain")(&context, 0) != 0) return 9;
  auto* heap = static_cast<std::uint8_t*>(find<void* (*)()>(cuda, "fake_heap")());
  std::size_t end = place(heap, 0x100000, code);
  // Jump tables at 256-byte steps, away from the code.
  std::vector<Bank> banks;
  (void)read_banks(bytes, banks);
  constexpr std::size_t kTables = 0x74300;
  for (std::size_t i = 0, table = 0; i < banks.size(); ++i)
    if (banks[i].number == 2) std::memcpy(heap + kTables + 256 * table++, banks[i].bytes.data(), banks[i].bytes.size());
  std::puts("ready");
  std::fflush(stdout);
  char line[128];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    line[std::strcspn(line, "\n")] = 0;
    std::size_t offset = 0;
    if (std::sscanf(line, "flip %zu", &offset) == 1) {  // in the first function of the last copy
      heap[0x100000 + offset] ^= 0x40;
      std::puts("ok");
    } else if (std::sscanf(line, "table %zu", &offset) == 1) {  // in the first jump table
      heap[kTables + offset] ^= 0x40;
      std::puts("ok");
    } else if (std::strcmp(line, "copy") == 0) {
      end = place(heap, end + 0x4000, code);
      std::puts("ok");
    } else if (std::strcmp(line, "foreign") == 0) {
      std::memcpy(heap + 0x1c0000, code.functions.front().text.data(), code.functions.front().text.size());
      for (std::size_t i = 0; i < code.functions.front().text.size() / 2; i += 16) heap[0x1c0000 + i + 4] ^= 0xff;
      std::puts("ok");
    } else if (std::strcmp(line, "spill") == 0) {  // a copy of all where data is
      place(static_cast<std::uint8_t*>(find<void* (*)()>(cuda, "fake_data")()), 0x5a0000, code);
      std::puts("ok");
    } else if (std::strcmp(line, "unmap") == 0) {
      find<void (*)()>(cuda, "fake_unmap")();
      std::puts("ok");
    } else if (std::strcmp(line, "release") == 0) {
      find<int (*)(int)>(cuda, "cuDevicePrimaryCtxRelease_v2")(0);
      std::puts("ok");
    } else if (std::strcmp(line, "counts") == 0) {
      int counts[6];
      find<void (*)(int*)>(cuda, "fake_counts")(counts);
      std::printf("%d %d %d %d %d %d\n", counts[0], counts[1], counts[2], counts[3], counts[4], counts[5]);
    } else if (std::strcmp(line, "fork") == 0) {
      // A child that waits for its end, which is told by its number.
      const pid_t child = ::fork();
      if (child == 0) {
        ::pause();
        ::_exit(0);
      }
      std::printf("%d\n", static_cast<int>(child));
    } else {
      std::puts("what?");
    }
    std::fflush(stdout);
  }
  return 0;
}
