// SPDX-License-Identifier: Apache-2.0
// `gpuwatch-probe`: a process of its own, so that a fault on the GPU ends this
// one alone. `gpuwatch probe` starts it. Exit codes are probe::Outcome's.
#include <getopt.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/escape.h"
#include "kernels/images.h"
#include "probe/agent/live.h"
#include "probe/canary.h"
#include "probe/file_run.h"
#include "probe/outside/outside.h"
#include "probe/own_calls.h"
#include "probe/print.h"
#include "probe/tool.h"
#include "probe/watchdog.h"

namespace gpuwatch::probe {
namespace {

struct Options {
  bool json = false;
  bool with_text = false;  // with json: what people are told stands beside
  bool selftest = false;
  bool no_ptx = false;
  std::string image;
  std::string kernel;
  std::string library = "libcuda.so.1";
  int gpu = -1;
  int timeout_s = 120;
  int gave_up_fd = -1;  // a byte into it: this process ends, but may not be able to
  int pid = 0;          // of a process that is looked at
  std::string records;
  bool outside = false;
};

std::uint64_t fresh_seed() {
  return identify::load<std::uint64_t>(identify::Bytes(fresh_nonce()), 0);
}

Failure canary(Session& session, const DeviceFacts& facts, Report& report, bool& good) {
  const auto begin = std::chrono::steady_clock::now();
  CanaryRun run;
  if (Failure failure = session.canary(fresh_seed(), run)) return failure;
  const double host_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  const CanaryVerdict verdict = judge(run);
  good = verdict.good(facts.multiprocessors);
  report.line({{"type", "canary"},
               {"gpu", facts.number},
               {"pass", good},
               {"results", verdict.results},
               {"wrong", verdict.wrong},
               {"multiprocessors_seen", verdict.multiprocessors},
               {"clock_mhz", verdict.clock_mhz},
               {"timers_ran", verdict.timers_ran},
               {"gpu_ms", verdict.gpu_ms},
               {"host_ms", host_ms}},
              std::string("  canary ") + (good ? "pass" : "FAIL") + ": " + std::to_string(verdict.results) +
                  " results, " + std::to_string(verdict.wrong) + " wrong, " + std::to_string(verdict.multiprocessors) +
                  " of " + std::to_string(facts.multiprocessors) + " multiprocessors, " +
                  format("%.0f MHz", verdict.clock_mhz) + format(", %.2f ms on the GPU", verdict.gpu_ms) +
                  format(", %.2f ms in all", host_ms));
  return {};
}

// Prints what comes, and counts.
class Printer : public RunSink {
 public:
  Printer(int gpu, Report& report) : gpu_(gpu), report_(report) {}

  void module(const std::string& label, const ModuleVerdict& module) override {
    for (const FunctionVerdict& verdict : module.functions) {
      ++totals.counts[static_cast<int>(verdict.verdict)];
      // For people what is in order is counted; JSON has all.
      print_function(verdict, label, gpu_, module.functions.size() > 8, report_);
    }
    for (const FunctionVerdict& verdict : module.banks) {
      ++totals.banks[static_cast<int>(verdict.verdict)];
      print_bank(verdict, label, gpu_, true, report_);
    }
    totals.bytes += module.hashed_bytes;
    ++totals.modules;
  }
  void not_probed(const std::string& label, const Failure& failure) override {
    // One image of many: named, and on to the next.
    ++totals.skipped;
    last = failure;
    report_.line({{"type", "module"},
                  {"gpu", gpu_},
                  {"image", label},
                  {"verdict", "not-probed"},
                  {"reason", base::to_utf8(failure.text)}},
                 "  not-probed " + label + ": " + failure.text);
  }
  void batch(const BatchFigures& figures) override {
    ++totals.batches;
    for (int i = 0; i < 2; ++i) totals.reading_ms[i] += static_cast<double>(figures.gpu_ms[i]);
    print_batch(figures, totals.batches, gpu_, report_);
  }

  Totals totals;
  Failure last;

 private:
  int gpu_;
  Report& report_;
};

Failure probe_image(Session& session, const DeviceFacts& facts, const Options& options, Report& report, bool& finding) {
  const auto begin = std::chrono::steady_clock::now();
  const auto sm = static_cast<std::uint32_t>(facts.major * 10 + facts.minor);
  auto images = ImageFile::open(options.image, sm, !options.no_ptx);
  if (!images.ok()) return {Outcome::kTrouble, images.error().message()};
  if (images->size() == 0)
    return {Outcome::kWrongImage, options.image + " has no " + (images->left_out() != 0 ? "machine code" : "code") +
                                      " for sm_" + std::to_string(sm)};
  Printer printer(facts.number, report);
  const Failure failure = run_images(session, fresh_nonce, *images, options.kernel, BatchLimits{}, printer);
  if (failure) return failure;
  const Totals& totals = printer.totals;
  const double host_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  const std::string tool = watching_tool("/proc/self");
  nlohmann::json object{{"type", "image"},
                        {"gpu", facts.number},
                        {"read_by", report.read_by()},
                        {"file", base::to_utf8(options.image)},
                        {"modules", totals.modules},
                        {"modules_not_probed", totals.skipped},
                        {"batches", totals.batches},
                        {"hashed_bytes", totals.bytes},
                        {"gpu_ms", totals.reading_ms[1]},
                        {"readings_gpu_ms", {totals.reading_ms[0], totals.reading_ms[1]}},
                        {"host_ms", host_ms}};
  if (options.no_ptx) object["ptx_left_out"] = images->left_out();
  std::string text = "  " + std::to_string(totals.modules) + " modules, " + std::to_string(totals.bytes) +
                     " bytes hashed in place" + format(" in %.3f ms", totals.reading_ms[1]) +
                     format(" of %.0f:", host_ms);
  add_counts(totals, object, text);
  if (!tool.empty()) {
    object["tool"] = tool;
    text += "; a " + tool + " is attached, which changes code by itself";
  }
  report.line(object, text);
  if (totals.modules == 0 && printer.last) return printer.last;
  std::size_t all = 0;
  for (const std::size_t count : totals.counts) all += count;
  if (all == 0 && !options.kernel.empty())
    return {Outcome::kTrouble, "no kernel " + options.kernel + " in " + options.image};
  for (const Verdict bad : {Verdict::kDiffer, Verdict::kNotResident})
    finding = finding || totals.counts[static_cast<int>(bad)] != 0 || totals.banks[static_cast<int>(bad)] != 0;
  return {};
}

// Says what a check of the one kernel gives.
Failure one(ImageProbe& probe, FunctionVerdict& out) {
  ModuleVerdict verdict;
  if (Failure failure = probe.check("gpuwatch_selftest", verdict)) return failure;
  if (verdict.functions.size() != 1) return {Outcome::kTrouble, "self test: its kernel is not in its module"};
  out = verdict.functions.front();
  return {};
}

Failure selftest(Session& session, const DeviceFacts& facts, Report& report, bool& good) {
  constexpr std::uint32_t kAdds = 0x449a5000;     // 1234.5f
  constexpr std::uint32_t kPatched = 0x449a6000;  // 1235.0f
  const identify::MemorySource source(
      {gpuwatch_selftest_image, static_cast<std::size_t>(gpuwatch_selftest_image_end - gpuwatch_selftest_image)});
  const auto images = images_for(source, static_cast<std::uint32_t>(facts.major * 10 + facts.minor));
  if (images.size() != 1) return {Outcome::kTooOld, "self test: no code for this GPU"};
  ImageProbe probe(session, fresh_nonce);
  if (Failure failure = probe.load(images.front())) return failure;
  const DriverApi& api = session.api();
  CuFunction function = nullptr;
  if (const CuResult result = api.module_function(&function, probe.module(), "gpuwatch_selftest"); result != kCuOk)
    return session.failed(result, "self test");
  std::uint64_t offset = 0;
  for (const Function& text : probe.code().functions)
    for (std::uint64_t at = 0; text.name == "gpuwatch_selftest" && at + 16 <= text.text.size(); at += 16)
      if (identify::load<std::uint32_t>(text.text, at + 4) == kAdds) offset = at + 4;
  if (offset == 0) return {Outcome::kTrouble, "self test: the instruction to patch is not there"};
  good = true;
  const auto step = [&](const char* what, const FunctionVerdict& verdict, float sum, bool pass) {
    good = good && pass;
    report.line({{"type", "selftest"},
                 {"gpu", facts.number},
                 {"step", what},
                 {"pass", pass},
                 {"verdict", to_string(verdict.verdict)},
                 {"first_offset", verdict.first_offset},
                 {"sum", sum}},
                std::string("  selftest ") + (pass ? "pass" : "FAIL") + ": " + what + ": " +
                    to_string(verdict.verdict) +
                    (verdict.verdict == Verdict::kDiffer ? " at " + std::to_string(verdict.first_offset) : "") +
                    format(", the kernel computes 1 + %.1f", static_cast<double>(sum) - 1));
  };
  const std::pair<const char*, std::uint32_t> steps[] = {
      {"as loaded", kAdds}, {"one instruction patched", kPatched}, {"restored", kAdds}};
  std::uint64_t address = 0;
  for (const auto& [what, value] : steps) {
    if (address != 0)
      if (Failure failure = session.store(address + offset, value, 1)) return failure;
    FunctionVerdict verdict;
    if (Failure failure = one(probe, verdict)) return failure;
    float sum = 0;
    // After check(), so after a refresh: what is in memory is what runs.
    if (Failure failure = session.run_selftest(function, sum)) return failure;
    if (value == kAdds)
      step(what, verdict, sum, verdict.verdict == Verdict::kMatch && sum == 1235.5f);
    else
      step(what, verdict, sum,
           verdict.verdict == Verdict::kDiffer && verdict.first_offset / 4 == offset / 4 && sum == 1236.0f);
    if (address == 0) address = verdict.address;
    if (address == 0) return {Outcome::kFinding, "self test: its code was not found in the heap"};
  }
  return {};
}

int run(const Options& options) {
  Report report(options.json, options.with_text);
  if (options.pid != 0) {
    agent::LiveOptions live;
    live.pid = options.pid;
    live.image = options.image;
    live.kernel = options.kernel;
    live.gpu = options.gpu;
    live.records = options.records;
    const auto outside = [&] { return outside::probe_process(live, report); };
    if (options.outside) return outside();
    return agent::probe_process(live, report, options.records.empty() ? std::function<int()>() : outside);
  }
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
  int exit_code = 0;
  for (int number = 0; number < count; ++number) {
    if (options.gpu >= 0 && number != options.gpu) continue;
    DeviceFacts facts;
    Failure failure = Session::facts(api, number, facts);
    if (failure) return report.failure(failure, number);
    report.line({{"type", "gpu"},
                 {"gpu", number},
                 {"name", base::to_utf8(facts.name)},
                 {"uuid", facts.uuid},
                 {"bus", facts.bus},
                 {"sm", facts.major * 10 + facts.minor},
                 {"multiprocessors", facts.multiprocessors},
                 {"clock_max_mhz", facts.clock_khz / 1000},
                 {"memory_bytes", facts.memory_bytes},
                 {"compute_mode", facts.compute_mode}},
                "GPU " + std::to_string(number) + ": " + facts.name + ", sm_" +
                    std::to_string(facts.major * 10 + facts.minor) + ", " + std::to_string(facts.multiprocessors) +
                    " multiprocessors, " + std::to_string(facts.memory_bytes >> 20) + " MiB, " + facts.bus);
    Session session(api, own_ranges);
    bool good = true;
    bool finding = false;
    failure = session.open(facts);
    if (!failure) failure = canary(session, facts, report, good);
    finding = !good;
    if (!failure && options.selftest) {
      failure = selftest(session, facts, report, good);
      finding = finding || !good;
    }
    if (!failure && !options.image.empty()) failure = probe_image(session, facts, options, report, finding);
    if (failure) {
      exit_code = report.failure(failure, number);
      // Nothing on this device can be used after a fault; others may be.
      continue;
    }
    if (finding && exit_code == 0) exit_code = static_cast<int>(Outcome::kFinding);
  }
  return exit_code;
}

bool number_of(const char* text, long least, long most, int& out) {
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text, &end, 10);
  if (*text == 0 || *end != 0 || errno != 0 || value < least || value > most) return false;
  out = static_cast<int>(value);
  return true;
}

int wrong(const char* what) {
  std::fprintf(stderr, "gpuwatch-probe: %s\n", what);
  return static_cast<int>(Outcome::kTrouble);
}

}  // namespace
}  // namespace gpuwatch::probe

int main(int argc, char** argv) {
  using gpuwatch::probe::number_of;
  using gpuwatch::probe::Outcome;
  using gpuwatch::probe::wrong;
  gpuwatch::probe::Options options;
  static const option kLong[] = {{"json", no_argument, nullptr, 'j'},
                                 {"selftest", no_argument, nullptr, 's'},
                                 {"no-ptx", no_argument, nullptr, 'n'},
                                 {"with-text", no_argument, nullptr, 't'},
                                 {"image", required_argument, nullptr, 'i'},
                                 {"kernel", required_argument, nullptr, 'k'},
                                 {"gpu", required_argument, nullptr, 'g'},
                                 {"pid", required_argument, nullptr, 'p'},
                                 {"library", required_argument, nullptr, 'l'},
                                 {"timeout", required_argument, nullptr, 'w'},
                                 {"gave-up-fd", required_argument, nullptr, 'f'},
                                 {"records", required_argument, nullptr, 'r'},
                                 {"outside", no_argument, nullptr, 'o'},
                                 {nullptr, 0, nullptr, 0}};
  for (int choice; (choice = ::getopt_long(argc, argv, "", kLong, nullptr)) != -1;) {
    switch (choice) {
      case 'j':
        options.json = true;
        break;
      case 't':
        options.json = options.with_text = true;
        break;
      case 's':
        options.selftest = true;
        break;
      case 'n':
        options.no_ptx = true;
        break;
      case 'i':
        options.image = optarg;
        break;
      case 'k':
        options.kernel = optarg;
        break;
      case 'l':
        options.library = optarg;
        break;
      case 'r':
        options.records = optarg;
        break;
      case 'o':
        options.outside = true;
        break;
      case 'g':
        if (!number_of(optarg, 0, 1023, options.gpu)) return wrong("--gpu: a number from 0 is meant");
        break;
      case 'p':
        if (!number_of(optarg, 1, 1 << 22, options.pid)) return wrong("--pid: the number of a process is meant");
        break;
      case 'w':
        if (!number_of(optarg, 1, 86'400, options.timeout_s))
          return wrong("--timeout: seconds from 1 to 86400 are meant");
        break;
      case 'f':
        if (!number_of(optarg, 3, 1 << 20, options.gave_up_fd)) return wrong("--gave-up-fd: a descriptor is meant");
        break;
      default:
        return static_cast<int>(Outcome::kTrouble);
    }
  }
  if (options.pid != 0 && options.selftest) return wrong("--selftest is not for a process that works: leave --pid out");
  if (options.pid == 0 && (options.outside || !options.records.empty()))
    return wrong("--records and --outside are for --pid");
  try {
    return gpuwatch::probe::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpuwatch-probe: %s\n", error.what());
    return static_cast<int>(Outcome::kTrouble);
  }
}
