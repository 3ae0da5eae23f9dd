// SPDX-License-Identifier: Apache-2.0
// main() for a fuzz target without libFuzzer: runs the given files, then for
// SECONDS mutations of them by a fixed pseudo-random sequence. It has no
// coverage feedback: it is for compilers without a fuzzer, and for the corpus.
//   fuzz-TARGET [--seconds N] FILE...
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void run(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

std::string mutate(std::string bytes, std::mt19937_64& random, const std::vector<std::string>& seeds) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random() % n); };
  for (std::size_t steps = 1 + below(6); steps > 0; --steps) {
    const std::size_t at = below(bytes.size());
    switch (below(7)) {
      case 0:
        if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        if (!bytes.empty()) bytes[at] = static_cast<char>(random());
        break;
      case 2: {  // numbers that lengths and counts dislike
        constexpr std::uint32_t kOdd[] = {0,      1,       7,          8,          0x7f,       0xff,      0x7fff,
                                          0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff};
        const std::uint32_t value = kOdd[below(std::size(kOdd))];
        if (bytes.size() >= 4) std::memcpy(bytes.data() + below(bytes.size() - 3), &value, sizeof value);
        break;
      }
      case 3:
        bytes.resize(at);
        break;
      case 4:
        bytes.erase(at, below(32));
        break;
      case 5:
        bytes.insert(at, bytes.substr(below(bytes.size()), below(256)));
        break;
      default: {
        const std::string& other = seeds[below(seeds.size())];
        bytes = bytes.substr(0, at) + other.substr(below(other.size()));
      }
    }
  }
  if (bytes.size() > (1 << 20)) bytes.resize(1 << 20);
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> seeds;
  long seconds = 0;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
      seconds = std::strtol(argv[++i], nullptr, 10);
      continue;
    }
    std::ifstream in(argv[i], std::ios::binary);
    if (!in) {
      std::fprintf(stderr, "%s: cannot be read\n", argv[i]);
      return 2;
    }
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    run(seeds.back());
  }
  if (seeds.empty()) {
    std::fprintf(stderr, "usage: %s [--seconds N] FILE...\n", argv[0]);
    return 2;
  }
  std::mt19937_64 random(1);
  std::uint64_t runs = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  for (; seconds > 0 && std::chrono::steady_clock::now() < end; ++runs)
    run(mutate(seeds[runs % seeds.size()], random, seeds));
  std::printf("%zu seeds, %llu mutations\n", seeds.size(), static_cast<unsigned long long>(runs));
  return 0;
}
