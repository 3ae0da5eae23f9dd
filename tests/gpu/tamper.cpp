// SPDX-License-Identifier: Apache-2.0
// On a real GPU: code in GPU memory is changed in every way that a program of
// the same context has, each so many times, and the probe must name the function
// and the offset; and what changes nothing must not be an alarm. Prints TAP;
// ends with 77 and the reason where there is no GPU.
//
// usage: gpu-tamper CUBIN TABLES [TIMES]
//   CUBIN: for this GPU, of several functions      TABLES: of tests/gpu/tables.ptx
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>

#include "kernels/images.h"
#include "probe/own_calls.h"
#include "probe/verify.h"

using namespace gpuwatch;
using namespace gpuwatch::probe;

namespace {

constexpr std::uint32_t kAdds = 0x449a5000;     // 1234.5f, see kernels/selftest.cu
constexpr std::uint32_t kPatched = 0x449a6000;  // 1235.0f

std::mt19937_64 dice(20261130);

Nonce nonce() {
  Nonce out{};
  for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>(dice());
  return out;
}

[[noreturn]] void give_up(const Failure& failure) {
  std::printf("Bail out! %s\n", failure.text.c_str());
  std::exit(static_cast<int>(failure.outcome));
}

void must(const Failure& failure) {
  if (failure) give_up(failure);
}

int tests = 0;
int failed = 0;

// Runs `once` so many times; all must be right. `note` adds what it has counted.
void all_of(const std::string& what, int times, const std::function<bool()>& once,
            const std::function<std::string()>& note = {}) {
  const auto begin = std::chrono::steady_clock::now();
  int right = 0;
  for (int i = 0; i < times; ++i) right += once() ? 1 : 0;
  const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ++tests;
  failed += right == times ? 0 : 1;
  std::printf("%s %d - %s: %d of %d, %.1f s%s\n", right == times ? "ok" : "not ok", tests, what.c_str(), right, times,
              s, note ? ("; " + note()).c_str() : "");
  std::fflush(stdout);
}

bool good(Verdict verdict) {
  return verdict == Verdict::kMatch || verdict == Verdict::kMatchRelocated;
}

bool all_good(const ModuleVerdict& verdict) {
  for (const FunctionVerdict& function : verdict.functions)
    if (!good(function.verdict)) return false;
  return !verdict.functions.empty();
}

ModuleVerdict check(ImageProbe& probe) {
  ModuleVerdict verdict;
  must(probe.check("", verdict));
  return verdict;
}

LoadableImage selftest_image(std::uint32_t sm) {
  const identify::MemorySource source(
      {gpuwatch_selftest_image, static_cast<std::size_t>(gpuwatch_selftest_image_end - gpuwatch_selftest_image)});
  auto images = images_for(source, sm);
  if (images.size() != 1) give_up({Outcome::kTooOld, "no self test for this GPU"});
  return std::move(images.front());
}

// A word of a random function, away from its edges' alignment only.
struct Spot {
  std::size_t function = 0;
  std::uint64_t offset = 0;
  std::uint32_t before = 0, after = 0;
};

Spot spot_in(const ModuleVerdict& clean, const Code& code) {
  Spot spot;
  spot.function = dice() % clean.functions.size();
  const FunctionVerdict& function = clean.functions[spot.function];
  for (const Function& text : code.functions) {
    if (text.name != function.name) continue;
    spot.offset = dice() % (text.text.size() / 4) * 4;
    spot.before = identify::load<std::uint32_t>(text.text, spot.offset);
  }
  // One bit to all of them.
  do spot.after = dice() % 2 == 0 ? spot.before ^ (1u << dice() % 32) : static_cast<std::uint32_t>(dice());
  while (spot.after == spot.before);
  return spot;
}

bool told(const ModuleVerdict& verdict, const Spot& spot) {
  std::uint64_t first = spot.offset;
  for (int byte = 0; byte < 4; ++byte)
    if ((spot.before ^ spot.after) >> (8 * byte) & 0xff) {
      first += static_cast<std::uint64_t>(byte);
      break;
    }
  bool right = true;
  for (std::size_t i = 0; i < verdict.functions.size(); ++i) {
    const FunctionVerdict& function = verdict.functions[i];
    right = right && (i == spot.function ? function.verdict == Verdict::kDiffer && function.first_offset == first
                                         : good(function.verdict));
    if (!right)
      std::printf("# %s: %s at %llu %s, wanted %zu at %llu\n", function.name.c_str(), to_string(function.verdict),
                  static_cast<unsigned long long>(function.first_offset), function.reason.c_str(), spot.function,
                  static_cast<unsigned long long>(first));
    if (!right) break;
  }
  return right;
}

using Store = std::function<void(std::uint64_t, std::uint32_t)>;

void stores(Session& session, const LoadableImage& image, int times, const std::string& how, const Store& store) {
  ImageProbe probe(session, nonce);
  must(probe.load(image));
  const ModuleVerdict clean = check(probe);
  if (!all_good(clean)) give_up({Outcome::kTrouble, "the module does not match before anything was done"});
  all_of(how, times, [&] {
    const Spot spot = spot_in(clean, probe.code());
    const std::uint64_t address = clean.functions[spot.function].address + spot.offset;
    store(address, spot.after);
    const bool right = told(check(probe), spot);
    store(address, spot.before);
    return right;
  });
  all_of("after the last was put back", 1, [&] { return all_good(check(probe)); });
  must(probe.unload());
}

// The self test's module, whose one kernel can be run.
class Runnable {
 public:
  Runnable(Session& session, const LoadableImage& image) : session_(session), probe_(session, nonce) {
    must(probe_.load(image));
    if (session.api().module_function(&function_, probe_.module(), "gpuwatch_selftest") != kCuOk)
      give_up({Outcome::kTrouble, "the self test's kernel is not in its module"});
    for (const Function& text : probe_.code().functions)
      for (std::uint64_t at = 0; at + 16 <= text.text.size(); at += 16)
        if (identify::load<std::uint32_t>(text.text, at + 4) == kAdds) offset_ = at + 4;
  }

  // Finds the code; then it can be patched.
  bool clean() {
    const ModuleVerdict verdict = check(probe_);
    address_ = verdict.functions.front().address;
    return all_good(verdict) && offset_ != 0;
  }
  void patch(std::uint32_t value) { must(session_.store(address_ + offset_, value, 1)); }
  float run() {
    float out = 0;
    must(session_.run_selftest(function_, out));
    return out;
  }
  bool differs() {
    const FunctionVerdict verdict = check(probe_).functions.front();
    return verdict.verdict == Verdict::kDiffer && verdict.first_offset / 4 == offset_ / 4;
  }
  void refresh() { must(session_.refresh()); }
  void unload() { must(probe_.unload()); }

 private:
  Session& session_;
  ImageProbe probe_;
  CuFunction function_ = nullptr;
  std::uint64_t offset_ = 0, address_ = 0;
};

void runs(Session& session, const LoadableImage& image, int times) {
  all_of("patched before the first launch", times, [&] {
    Runnable code(session, image);
    if (!code.clean()) return false;
    code.patch(kPatched);
    const bool right = code.differs() && code.run() == 1236.0f;
    code.unload();
    return right;
  });
  Runnable code(session, image);
  if (!code.clean()) give_up({Outcome::kTrouble, "the self test does not match before anything was done"});
  all_of("patched after the first launch", times, [&] {
    code.patch(kAdds);
    code.refresh();
    if (code.run() != 1235.5f) return false;
    code.patch(kPatched);
    return code.differs() && code.run() == 1236.0f;
  });
  // Memory is clean again, while an instruction cache may hold the patch: after a
  // match what runs is what memory has.
  int stale = 0;
  all_of(
      "patched, run, put back: a match, and the file's code runs", times,
      [&] {
        code.patch(kPatched);
        code.refresh();
        if (code.run() != 1236.0f) return false;
        code.patch(kAdds);
        stale += code.run() == 1236.0f ? 1 : 0;
        return code.clean() && code.run() == 1235.5f;
      },
      [&] { return "before the check the patch still ran in " + std::to_string(stale); });
  code.unload();
}

void no_alarms(Session& session, const LoadableImage& image, int times) {
  all_of("loaded again after an unload that leaves its code behind", times, [&] {
    {
      ImageProbe leaves(session, nonce);
      must(leaves.load(image));
    }
    ImageProbe probe(session, nonce);
    must(probe.load(image));
    const bool right = all_good(check(probe));
    must(probe.unload());
    return right;
  });
  all_of("two copies at a time", times, [&] {
    ImageProbe one(session, nonce), two(session, nonce);
    must(one.load(image));
    const bool first = all_good(check(one));
    must(two.load(image));
    const bool right = first && all_good(check(two)) && all_good(check(one));
    must(two.unload());
    must(one.unload());
    return right;
  });
}

// Kernels that go by constant banks, and where those lie.
class Tables {
 public:
  Tables(Session& session, const LoadableImage& image) : session_(session), probe_(session, nonce) {
    must(probe_.load(image));
    const DriverApi& api = session.api();
    if (api.module_function(&jump_, probe_.module(), "jump") != kCuOk ||
        api.module_function(&addresses_, probe_.module(), "addresses") != kCuOk ||
        api.memory_allocate(&out_, 256) != kCuOk)
      give_up({Outcome::kTrouble, "the tables' kernels cannot be run"});
  }
  ~Tables() { session_.api().memory_free(out_); }
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;

  ModuleVerdict check() { return ::check(probe_); }
  std::uint32_t jump(std::uint32_t which) {
    void* arguments[] = {&out_, &which};
    return run(jump_, arguments);
  }
  std::uint32_t first() {
    void* arguments[] = {&out_};
    return run(addresses_, arguments);
  }
  CuPointer second() {
    CuPointer address = 0;
    std::size_t bytes = 0;
    session_.api().module_global(&address, &bytes, probe_.module(), "second");
    return address;
  }
  void unload() { must(probe_.unload()); }

 private:
  std::uint32_t run(CuFunction function, void** arguments) {
    const DriverApi& api = session_.api();
    std::uint32_t value = 0;
    if (api.launch(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr) != kCuOk || api.synchronize() != kCuOk ||
        api.memory_to_host(&value, out_, sizeof value) != kCuOk)
      give_up({Outcome::kFault, "a kernel that goes by a table"});
    return value;
  }

  Session& session_;
  ImageProbe probe_;
  CuFunction jump_ = nullptr, addresses_ = nullptr;
  CuPointer out_ = 0;
};

const FunctionVerdict* bank_of(const ModuleVerdict& verdict, const char* name) {
  for (const FunctionVerdict& bank : verdict.banks)
    if (bank.name == name) return &bank;
  return nullptr;
}

bool banks_good(const ModuleVerdict& verdict) {
  return all_good(verdict) && std::all_of(verdict.banks.begin(), verdict.banks.end(),
                                          [](const FunctionVerdict& bank) { return good(bank.verdict); });
}

void tables(Session& session, const LoadableImage& image, int times) {
  Tables code(session, image);
  const ModuleVerdict clean = code.check();
  const FunctionVerdict* jumps = bank_of(clean, ".nv.constant2.jump");
  const FunctionVerdict* addresses = bank_of(clean, ".nv.constant4");
  for (const FunctionVerdict& bank : clean.banks)
    std::printf("# %s: %s at 0x%llx %s\n", bank.name.c_str(), to_string(bank.verdict),
                static_cast<unsigned long long>(bank.address), bank.reason.c_str());
  const auto told_in = [&](const char* name, std::uint64_t word) {
    const ModuleVerdict verdict = code.check();
    const FunctionVerdict* bank = bank_of(verdict, name);
    return all_good(verdict) && bank != nullptr && bank->verdict == Verdict::kDiffer && bank->first_offset / 4 == word;
  };
  if (jumps == nullptr || addresses == nullptr || !banks_good(clean)) {
    all_of("constant banks as loaded", 1, [] { return false; });
    return;
  }
  std::vector<std::uint8_t> table;
  must(session.read({jumps->address, 32}, table));
  int redirected = 0;
  all_of(
      "a jump table's entry changed in constant bank 2", times,
      [&] {
        const std::uint32_t from = static_cast<std::uint32_t>(dice() % 8);
        const std::uint32_t to = (from + 1 + static_cast<std::uint32_t>(dice() % 7)) % 8;
        const std::uint64_t place = jumps->address + 4 * from;
        must(session.store(place, identify::load<std::uint32_t>(table, 4 * to), 1));
        const bool right = told_in(".nv.constant2.jump", from);
        redirected += code.jump(from) == 100 + to ? 1 : 0;
        must(session.store(place, identify::load<std::uint32_t>(table, 4 * from), 1));
        return right && banks_good(code.check()) && code.jump(from) == 100 + from;
      },
      [&] { return "the kernel went the other way in " + std::to_string(redirected); });
  std::vector<std::uint8_t> pointers;
  must(session.read({addresses->address, 16}, pointers));
  const auto first = identify::load<std::uint32_t>(pointers, 0);
  int other = 0;
  all_of(
      "an address changed in constant bank 4", times,
      [&] {
        must(session.store(addresses->address, static_cast<std::uint32_t>(code.second()), 1));
        const bool right = told_in(".nv.constant4", 0);
        other += code.first() == 9 ? 1 : 0;
        must(session.store(addresses->address, first, 1));
        return right && banks_good(code.check()) && code.first() == 7;
      },
      [&] { return "the kernel read the other variable in " + std::to_string(other); });
  code.unload();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: gpu-tamper CUBIN TABLES [TIMES]\n");
    return 2;
  }
  const int times = argc == 4 ? std::atoi(argv[3]) : 100;
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  auto api = open_driver("libcuda.so.1");
  if (!api.ok() || api->init(0) != kCuOk) {
    std::printf("1..0 # SKIP no GPU: %s\n", api.ok() ? "cuInit fails" : api.error().message().c_str());
    return 77;
  }
  DeviceFacts facts;
  Session session(*api, own_ranges);
  must(Session::facts(*api, 0, facts));
  must(session.open(facts));
  const auto sm = static_cast<std::uint32_t>(facts.major * 10 + facts.minor);
  LoadableImage files[2];
  for (int i = 0; i < 2; ++i) {
    auto images = images_of_file(argv[1 + i], sm);
    if (!images.ok()) give_up({Outcome::kTrouble, images.error().message()});
    if (images->size() != 1) {
      std::printf("1..0 # SKIP %s has no code for sm_%u\n", argv[1 + i], sm);
      return 77;
    }
    files[i] = std::move(images->front());
  }
  const LoadableImage selftest = selftest_image(sm);
  stores(session, files[0], times, "stored to by a kernel of the same context",
         [&](std::uint64_t address, std::uint32_t value) { must(session.store(address, value, 1)); });
  stores(session, files[0], times, "cuMemsetD32 from the host", [&](std::uint64_t address, std::uint32_t value) {
    if (const CuResult result = api->memory_fill_32(address, value, 1); result != kCuOk)
      give_up(session.failed(result, "cuMemsetD32"));
    must({api->synchronize() == kCuOk ? Outcome::kOk : Outcome::kFault, "after cuMemsetD32"});
  });
  runs(session, selftest, times);
  tables(session, files[1], times);
  no_alarms(session, files[0], times / 5 + 1);
  std::printf("1..%d\n%d passed, %d failed, 0 skipped\n", tests, tests - failed, failed);
  return failed == 0 ? 0 : 1;
}
