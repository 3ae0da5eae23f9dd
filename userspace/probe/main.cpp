// SPDX-License-Identifier: Apache-2.0
// `gpuwatch-probe`: a process of its own, so that a fault on the GPU ends this
// one alone. `gpuwatch probe` starts it. Exit codes are probe::Outcome's.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/escape.h"
#include "probe/agent/live.h"
#include "probe/checks.h"
#include "probe/outside/outside.h"
#include "probe/own_calls.h"
#include "probe/rounds.h"
#include "probe/tool.h"
#include "probe/watchdog.h"

namespace gpuwatch::probe {
namespace {

// One round after the other, as long as each is in order.
template <typename Round>
int repeat(Rounds& rounds, Report& report, const Round& round) {
  for (;;) {
    if (rounds.several()) report.set_round(rounds.number());
    if (const int code = round(); code != 0 || !rounds.next()) return code;
  }
}

int look_at_process(const Options& options, Rounds& rounds, Report& report) {
  agent::LiveOptions live;
  live.pid = options.pid;
  live.image = options.image;
  live.kernel = options.kernel;
  live.gpu = options.gpu;
  live.records = options.records;
  const auto outside = [&] { return outside::probe_process(live, report); };
  return repeat(rounds, report, [&] {
    if (options.outside) return outside();
    return agent::probe_process(live, report, options.records.empty() ? std::function<int()>() : outside);
  });
}

void print_gpu(const DeviceFacts& facts, Report& report) {
  report.line({{"type", "gpu"},
               {"gpu", facts.number},
               {"name", base::to_utf8(facts.name)},
               {"uuid", facts.uuid},
               {"bus", facts.bus},
               {"sm", facts.major * 10 + facts.minor},
               {"multiprocessors", facts.multiprocessors},
               {"clock_max_mhz", facts.clock_khz / 1000},
               {"memory_bytes", facts.memory_bytes},
               {"compute_mode", facts.compute_mode}},
              "GPU " + std::to_string(facts.number) + ": " + facts.name + ", sm_" +
                  std::to_string(facts.major * 10 + facts.minor) + ", " + std::to_string(facts.multiprocessors) +
                  " multiprocessors, " + std::to_string(facts.memory_bytes >> 20) + " MiB, " + facts.bus);
}

// All GPUs that are looked at, one at a time.
class Gpus {
 public:
  // `kept`: contexts stay from round to round. Making one and taking it down costs
  // whoever works on the GPU more than all that is done in it.
  Gpus(const DriverApi& api, const Options& options, Report& report, bool kept)
      : api_(api), options_(options), report_(report), kept_(kept) {}

  int round(int first, int count) {
    if (gpus_.empty()) gpus_.resize(static_cast<std::size_t>(count));
    int exit_code = 0;
    for (int i = 0; i < count; ++i) {
      Gpu& gpu = gpus_[static_cast<std::size_t>(i)];
      if (!known_) {
        if (Failure failure = Session::facts(api_, first + i, gpu.facts)) return report_.failure(failure, first + i);
        print_gpu(gpu.facts, report_);
      }
      bool finding = false;
      Failure failure = open(gpu);
      if (!failure) failure = check_gpu(gpu, options_, report_, finding);
      if (!kept_) gpu.session.reset();
      if (failure)
        // Nothing on this device can be used after a fault; others may be.
        exit_code = report_.failure(failure, gpu.facts.number);
      else if (finding && exit_code == 0)
        exit_code = static_cast<int>(Outcome::kFinding);
    }
    known_ = true;
    return exit_code;
  }

 private:
  Failure open(Gpu& gpu) {
    if (gpu.session != nullptr) return gpu.session->enter();
    gpu.session = std::make_unique<Session>(api_, own_ranges);
    return gpu.session->open(gpu.facts);
  }

  const DriverApi& api_;
  const Options& options_;
  Report& report_;
  bool kept_;
  bool known_ = false;  // each was named
  std::vector<Gpu> gpus_;
};

int run(const Options& options) {
  Report report(options.json, options.with_text);
  Rounds rounds(options.every_s, options.times);  // before there are threads
  if (options.pid != 0) return look_at_process(options, rounds, report);
  // Before libcuda reads it: all code of a module is to be resident once loaded.
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  auto opened = open_driver(options.library);
  if (!opened.ok()) return report.failure({Outcome::kNoLibrary, opened.error().message()}, -1);
  const DriverApi api = watched(*opened);
  watch_calls(std::chrono::seconds(options.timeout_s), [&](const char* function, std::chrono::seconds waited) {
    const int code = report.failure(
        {Outcome::kHang, std::string(function) + " has not come back for " + std::to_string(waited.count()) +
                             " s: the GPU or its driver hangs; the kernel log may say why"},
        -1);
    if (options.gave_up_fd >= 0) (void)!::write(options.gave_up_fd, "h", 1);
    ::_exit(code);
  });
  if (const CuResult result = api.init(0); result != kCuOk) {
    const Outcome outcome = outcome_of(result);
    const bool told = outcome == Outcome::kOutOfMemory || outcome == Outcome::kNoLibrary;
    return report.failure({told ? outcome : Outcome::kNoGpu, "no GPU can be used: " + api.describe(result)}, -1);
  }
  int version = 0;
  (void)api.driver_version(&version);
  int count = 0;
  if (const CuResult result = api.device_count(&count); result != kCuOk || count == 0)
    return report.failure({Outcome::kNoGpu, "no GPU is visible to this process"}, -1);
  const std::string driver = driver_of("/proc/self");
  report.line({{"type", "driver"}, {"cuda_version", version}, {"driver", driver}, {"gpus", count}},
              "driver " + driver + ", CUDA " + std::to_string(version / 1000) + "." +
                  std::to_string(version % 1000 / 10) + ", " + std::to_string(count) + " GPU(s) visible");
  if (options.gpu >= count) return report.failure({Outcome::kNoGpu, "there is no GPU of that number"}, options.gpu);
  const int first = std::max(0, options.gpu);
  const int last = options.gpu >= 0 ? options.gpu : count - 1;
  // What one GPU maps is no proof for another: where code is looked for, one context lives at a time.
  const bool reads = options.selftest || !options.image.empty();
  Gpus gpus(api, options, report, rounds.several() && (first == last || !reads));
  return repeat(rounds, report, [&] { return gpus.round(first, last - first + 1); });
}

}  // namespace
}  // namespace gpuwatch::probe

int main(int argc, char** argv) {
  using gpuwatch::probe::Outcome;
  gpuwatch::probe::Options options;
  if (const std::string wrong = gpuwatch::probe::parse_options(argc, argv, options); !wrong.empty()) {
    std::fprintf(stderr, "gpuwatch-probe: %s\n", wrong.c_str());
    return static_cast<int>(Outcome::kTrouble);
  }
  try {
    return gpuwatch::probe::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpuwatch-probe: %s\n", error.what());
    return static_cast<int>(Outcome::kTrouble);
  }
}
