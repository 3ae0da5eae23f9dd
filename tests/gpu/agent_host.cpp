// SPDX-License-Identifier: Apache-2.0
// A program with code on a real GPU, for tests/gpu/agent to ask its agent about:
// loads a cubin and the self test's module, finds where the code lies, and does
// what lines on its input say, an answer each. It judges nothing.
//
//   patch OFFSET kernel|memset   a word of the cubin's first function, by a kernel or cuMemsetD32
//   restore                      that word
//   run                          the self test's kernel: what it computes
//   table ENTRY                  an entry of the jump table of TABLES: where the next one leads
//   untable                      that entry
//   jump WHICH                   the kernel that goes by it: what it computes
//
// usage: gpu-agent-host CUBIN TABLES      77: no GPU, or no code for it in a file
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "kernels/images.h"
#include "probe/own_calls.h"
#include "probe/verify.h"

using namespace gpuwatch;
using namespace gpuwatch::probe;

namespace {

void must(const Failure& failure) {
  if (!failure) return;
  std::printf("failed: %s\n", failure.text.c_str());
  std::exit(static_cast<int>(failure.outcome));
}

Nonce nonce() {
  static std::mt19937_64 dice(1);
  Nonce out{};
  for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>(dice());
  return out;
}

[[noreturn]] void skip(const std::string& why) {
  std::printf("skip: %s\n", why.c_str());
  std::exit(77);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  auto api = open_driver("libcuda.so.1");
  if (!api.ok() || api->init(0) != kCuOk) skip("no GPU");
  DeviceFacts facts;
  Session session(*api, own_ranges);
  must(Session::facts(*api, 0, facts));
  must(session.open(facts));
  const auto sm = static_cast<std::uint32_t>(facts.major * 10 + facts.minor);
  auto images = images_of_file(argv[1], sm);
  if (!images.ok()) must({Outcome::kTrouble, images.error().message()});
  if (images->size() != 1) skip("the cubin has no code for this GPU");
  const identify::MemorySource source(
      {gpuwatch_selftest_image, static_cast<std::size_t>(gpuwatch_selftest_image_end - gpuwatch_selftest_image)});
  const auto selftests = images_for(source, sm);
  if (selftests.size() != 1) skip("no self test for this GPU");
  auto table_images = images_of_file(argv[2], sm);
  if (!table_images.ok()) must({Outcome::kTrouble, table_images.error().message()});
  if (table_images->size() != 1) skip("the tables have no code for this GPU");
  ImageProbe cubin(session, nonce), selftest(session, nonce), tables(session, nonce);
  must(cubin.load(images->front()));
  must(selftest.load(selftests.front()));
  must(tables.load(table_images->front()));
  CuFunction function = nullptr;
  if (api->module_function(&function, selftest.module(), "gpuwatch_selftest") != kCuOk) skip("no self test");
  ModuleVerdict verdict;
  must(cubin.check("", verdict));
  if (verdict.functions.empty() || verdict.functions.front().address == 0) must({Outcome::kTrouble, "no code found"});
  CuFunction jump = nullptr;
  CuPointer jumped = 0;
  ModuleVerdict table_verdict;
  must(tables.check("", table_verdict));
  std::uint64_t table = 0;
  std::vector<std::uint8_t> entries;
  for (const FunctionVerdict& bank : table_verdict.banks)
    if (bank.name == ".nv.constant2.jump") table = bank.address;
  if (table == 0 || api->module_function(&jump, tables.module(), "jump") != kCuOk ||
      api->memory_allocate(&jumped, 256) != kCuOk)
    skip("no jump table");
  must(session.read({table, 32}, entries));
  const std::uint64_t address = verdict.functions.front().address;
  const std::vector<std::uint8_t>& text = cubin.code().functions.front().text;
  std::printf("ready %s %zu\n", verdict.functions.front().name.c_str(), text.size());
  std::fflush(stdout);
  std::uint64_t patched = 0;
  unsigned entry = 0;
  char line[128];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    unsigned long long offset = 0;
    char how[16] = {};
    const auto put = [&](std::uint64_t at, std::uint32_t value) {
      if (std::strcmp(how, "memset") == 0) {
        if (const CuResult result = api->memory_fill_32(address + at, value, 1); result != kCuOk)
          must(session.failed(result, "cuMemsetD32"));
        must({api->synchronize() == kCuOk ? Outcome::kOk : Outcome::kFault, "after cuMemsetD32"});
      } else {
        must(session.store(address + at, value, 1));
      }
    };
    if (std::sscanf(line, "patch %llu %15s", &offset, how) == 2 && offset % 4 == 0 && offset + 4 <= text.size()) {
      patched = offset;
      put(patched, identify::load<std::uint32_t>(text, patched) ^ 0x00010000u);
      std::puts("ok");
    } else if (std::strncmp(line, "restore", 7) == 0) {
      put(patched, identify::load<std::uint32_t>(text, patched));
      std::puts("ok");
    } else if (std::sscanf(line, "table %u", &entry) == 1 && entry < 8) {
      must(session.store(table + 4 * entry, identify::load<std::uint32_t>(entries, 4 * ((entry + 1) % 8)), 1));
      std::puts("ok");
    } else if (std::strncmp(line, "untable", 7) == 0) {
      must(session.store(table + 4 * entry, identify::load<std::uint32_t>(entries, 4 * entry), 1));
      std::puts("ok");
    } else if (unsigned which = 0; std::sscanf(line, "jump %u", &which) == 1) {
      void* arguments[] = {&jumped, &which};
      std::uint32_t value = 0;
      if (api->launch(jump, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr) != kCuOk || api->synchronize() != kCuOk ||
          api->memory_to_host(&value, jumped, sizeof value) != kCuOk)
        must({Outcome::kFault, "the kernel that goes by a table"});
      std::printf("%u\n", value);
    } else if (std::strncmp(line, "run", 3) == 0) {
      float out = 0;
      must(session.run_selftest(function, out));
      std::printf("%.1f\n", static_cast<double>(out));
    } else {
      std::puts("what?");
    }
    std::fflush(stdout);
  }
  return 0;
}
