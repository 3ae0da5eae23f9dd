// SPDX-License-Identifier: Apache-2.0
// On a real GPU: NIST vectors and 10,000 random lengths and offsets against the
// CPU, then the speed of hashing. Prints TAP and JSON figures; ends with 77 and
// the reason where there is no GPU.
#include <cstdio>
#include <random>
#include <string>

#include "probe/own_calls.h"
#include "probe/session.h"

using namespace gpuwatch;
using namespace gpuwatch::probe;

namespace {

int tests = 0;
int failed = 0;

void ok(bool good, const std::string& what) {
  ++tests;
  failed += good ? 0 : 1;
  std::printf("%s %d - %s\n", good ? "ok" : "not ok", tests, what.c_str());
}

// Ten repeats of hashing `spans`; the median, and what it makes per second.
void speed(Session& session, const std::vector<Span>& spans, const char* name) {
  std::vector<float> times;
  std::uint64_t bytes = 0;
  for (const Span& span : spans) bytes += span.bytes;
  for (int i = 0; i < 12; ++i) {
    std::vector<identify::Digest> roots;
    float ms = 0;
    Nonce nonce{};
    nonce[0] = static_cast<std::uint8_t>(i);
    if (Failure failure = session.hash(spans, Form::kTree, nonce, roots, ms)) {
      ok(false, std::string(name) + ": " + failure.text);
      return;
    }
    if (i >= 2) times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  const double median = static_cast<double>(times[times.size() / 2]);
  std::printf("{\"figure\": \"%s\", \"regions\": %zu, \"bytes\": %llu, \"median_ms\": %.4f, \"least_ms\": %.4f, "
              "\"most_ms\": %.4f, \"gb_per_s\": %.1f}\n",
              name, spans.size(), static_cast<unsigned long long>(bytes), median, static_cast<double>(times.front()),
              static_cast<double>(times.back()), static_cast<double>(bytes) / median / 1e6);
}

}  // namespace

int main() {
  auto api = open_driver("libcuda.so.1");
  if (!api.ok() || api->init(0) != kCuOk) {
    std::printf("1..0 # SKIP no GPU: %s\n", api.ok() ? "cuInit fails" : api.error().message().c_str());
    return 77;
  }
  DeviceFacts facts;
  Session session(*api, own_ranges);
  Failure failure = Session::facts(*api, 0, facts);
  if (!failure) failure = session.open(facts);
  if (failure) {
    std::printf("1..0 # SKIP %s\n", failure.text.c_str());
    return 77;
  }
  constexpr std::size_t kPool = 8 << 20;
  std::vector<std::uint8_t> pool(kPool);
  std::mt19937_64 random(42);
  for (auto& byte : pool) byte = static_cast<std::uint8_t>(random());
  const std::string kVectors[] = {"", "abc", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                                  std::string(1'000'000, 'a')};
  const char* kAnswers[] = {"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
                            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
                            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"};
  CuPointer memory = 0;
  constexpr std::size_t kLarge = std::size_t{1} << 30;
  if (const CuResult result = api->memory_allocate(&memory, kLarge); result != kCuOk) {
    std::printf("1..0 # SKIP 1 GiB of GPU memory: %s\n", api->describe(result).c_str());
    return 77;
  }
  std::vector<identify::Digest> roots;
  float ms = 0;
  for (int i = 0; i < 4; ++i) {
    api->memory_to_device(memory, kVectors[i].data(), kVectors[i].size());
    failure = session.hash({{memory, kVectors[i].size()}}, Form::kPlain, {}, roots, ms);
    ok(!failure && identify::to_hex(roots[0]) == kAnswers[i], "NIST vector of " + std::to_string(kVectors[i].size()) + " bytes" +
                                                                  (failure ? ": " + failure.text : ""));
  }
  for (std::size_t at = 0; at < kLarge; at += kPool) api->memory_to_device(memory + at, pool.data(), kPool);
  for (const auto& [form, name] : {std::pair{Form::kTree, "tree"}, {Form::kFlat, "flat"}, {Form::kPlain, "plain"}}) {
    std::vector<Span> spans;
    for (int i = 0; i < 10'000; ++i) {
      const std::uint64_t length = i < 2'100 ? static_cast<std::uint64_t>(i) : random() % (i % 50 == 0 ? 400'000 : 20'000);
      spans.push_back({memory + random() % (kPool - length), length});
    }
    Nonce nonce{};
    for (auto& byte : nonce) byte = static_cast<std::uint8_t>(random());
    failure = session.hash(spans, form, nonce, roots, ms);
    int wrong = 0;
    for (std::size_t i = 0; !failure && i < spans.size(); ++i)
      wrong += roots[i] != host_root({pool.data() + (spans[i].address - memory), spans[i].bytes}, form, nonce) ? 1 : 0;
    ok(!failure && wrong == 0, std::string("10,000 random lengths and offsets, ") + name + ": " + std::to_string(wrong) +
                                   " differ" + (failure ? ": " + failure.text : ""));
  }
  std::vector<Span> functions;  // 16 MiB as 1,024 functions
  for (std::uint64_t i = 0; i < 1'024; ++i) functions.push_back({memory + i * 16'384, 16'384});
  speed(session, functions, "16 MiB in 1,024 regions");
  speed(session, {{memory, 10'000'000}}, "10 MB in one region");
  speed(session, {{memory, kLarge}}, "1 GiB in one region");
  std::printf("1..%d\n# hash_on_gpu: %d passed, %d failed, 0 skipped\n", tests, tests - failed, failed);
  return failed == 0 ? 0 : 1;
}
