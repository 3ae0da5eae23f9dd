// SPDX-License-Identifier: Apache-2.0
#include "probe/checks.h"

#include <chrono>

#include "base/escape.h"
#include "kernels/images.h"
#include "probe/file_run.h"
#include "probe/tool.h"

namespace gpuwatch::probe {

namespace {

std::uint64_t fresh_seed() {
  return identify::load<std::uint64_t>(identify::Bytes(fresh_nonce()), 0);
}

// Where the line that names the GPU was some rounds ago, the canary's does.
std::string where(const DeviceFacts& facts, const Report& report) {
  if (report.round() < 2) return "  ";
  return "GPU " + std::to_string(facts.number) + ", round " + std::to_string(report.round()) + ": ";
}

Failure canary(Gpu& gpu, Report& report, bool& good) {
  const DeviceFacts& facts = gpu.facts;
  const auto begin = std::chrono::steady_clock::now();
  if (Failure failure = gpu.session->canary(fresh_seed(), gpu.canary)) return failure;
  const double host_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  const CanaryVerdict verdict = judge(gpu.canary);
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
              where(facts, report) + "canary " + (good ? "pass" : "FAIL") + ": " + std::to_string(verdict.results) +
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

}  // namespace

Failure check_gpu(Gpu& gpu, const Options& options, Report& report, bool& finding) {
  bool good = true;
  if (Failure failure = canary(gpu, report, good)) return failure;
  finding = !good;
  if (options.selftest) {
    if (Failure failure = selftest(*gpu.session, gpu.facts, report, good)) return failure;
    finding = finding || !good;
  }
  return options.image.empty() ? Failure{} : probe_image(*gpu.session, gpu.facts, options, report, finding);
}

}  // namespace gpuwatch::probe
