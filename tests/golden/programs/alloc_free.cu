// SPDX-License-Identifier: Apache-2.0
// Allocates and frees in a loop, one phase per way and size. Argument: malloc
// (cudaMalloc), async (cudaMallocAsync, pool that gives back at every
// synchronisation, then one that keeps) or host (cudaMallocHost).
#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "check.h"
#include "phase.h"

struct Size {
  const char* name;
  std::size_t bytes;
  int rounds;
};
constexpr Size kSizes[] = {{"4KiB", 4ull << 10, 200},
                           {"1MiB", 1ull << 20, 200},
                           {"2MiB", 2ull << 20, 200},
                           {"64MiB", 64ull << 20, 200},
                           {"1GiB", 1ull << 30, 50}};

template <typename Round>
static void loop(const std::string& name, int rounds, Round round) {
  round();  // what is made once is not the loop's
  const std::uint64_t begin = phase(name.c_str());
  for (int i = 0; i < rounds; ++i) round();
  per_round(name.c_str(), begin, rounds);
  phase("between");
}

static void set_threshold(std::uint64_t bytes) {
  cudaMemPool_t pool;
  RT(cudaDeviceGetDefaultMemPool(&pool, 0));
  RT(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &bytes));
}

int main(int argc, char** argv) {
  const std::string way = argc == 2 ? argv[1] : "";
  void* memory;
  phase("start");
  RT(cudaFree(nullptr));
  for (const Size& size : kSizes) {
    if (way == "malloc")
      loop(std::string("malloc-") + size.name, size.rounds, [&] {
        RT(cudaMalloc(&memory, size.bytes));
        RT(cudaFree(memory));
      });
    if (way == "host" && size.bytes <= 64ull << 20)
      loop(std::string("host-") + size.name, size.rounds / 4, [&] {
        RT(cudaMallocHost(&memory, size.bytes));
        RT(cudaFreeHost(memory));
      });
    if (way == "async")
      for (const bool keep : {false, true}) {
        set_threshold(keep ? UINT64_MAX : 0);
        loop(std::string(keep ? "async-keep-" : "async-") + size.name, size.rounds, [&] {
          RT(cudaMallocAsync(&memory, size.bytes, nullptr));
          RT(cudaFreeAsync(memory, nullptr));
          RT(cudaStreamSynchronize(nullptr));
        });
      }
  }
  phase("exit");
  return way == "malloc" || way == "host" || way == "async" ? 0 : 2;
}
