// SPDX-License-Identifier: Apache-2.0
// `gpuwatch-probe`: a process of its own, so that a fault on the GPU ends this
// one alone. `gpuwatch probe` starts it. Exit codes are probe::Outcome's.
#include <getopt.h>
#include <sys/random.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "kernels/images.h"
#include "probe/canary.h"
#include "probe/images.h"
#include "probe/own_calls.h"
#include "probe/verify.h"

namespace gpuwatch::probe {
namespace {

struct Options {
  bool json = false;
  bool selftest = false;
  std::string image;
  std::string kernel;
  std::string library = "libcuda.so.1";
  int gpu = -1;
};

Nonce fresh_nonce() {
  Nonce nonce{};
  if (::getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) std::abort();
  return nonce;
}

std::uint64_t fresh_seed() {
  return identify::load<std::uint64_t>(identify::Bytes(fresh_nonce()), 0);
}

// A debugger or a tool that rewrites code changes what is found.
std::string watching_tool() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("TracerPid:") && std::strtol(line.c_str() + 10, nullptr, 10) != 0) return "debugger";
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("libsanitizer-collection") != std::string::npos) return "compute-sanitizer";
  return {};
}

std::string driver_release() {
  std::ifstream file("/sys/module/nvidia/version");
  std::string line;
  std::getline(file, line);
  return line;
}

class Report {
 public:
  explicit Report(bool json) : json_(json) {}

  void line(const nlohmann::json& object, const std::string& text) {
    std::string out;
    if (json_)
      out = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    else
      base::append_escaped(out, text);
    out += '\n';
    std::fputs(out.c_str(), stdout);
    std::fflush(stdout);
  }
  int failure(const Failure& failure, int gpu) {
    std::fprintf(stderr, "gpuwatch-probe: %s\n", failure.text.c_str());
    if (json_) {
      nlohmann::json object{
          {"type", "error"}, {"reason", base::to_utf8(failure.text)}, {"exit_code", static_cast<int>(failure.outcome)}};
      if (gpu >= 0) object["gpu"] = gpu;
      line(object, "");
    }
    return static_cast<int>(failure.outcome);
  }

 private:
  bool json_;
};

std::string format(const char* form, double value) {
  char text[64];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

std::string hex(const std::vector<std::uint8_t>& bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
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

struct Totals {
  std::size_t counts[5] = {};
  std::size_t modules = 0;
  std::size_t skipped = 0;
  std::uint64_t bytes = 0;
  double gpu_ms = 0;
};

void print(const ModuleVerdict& module, const std::string& label, int gpu, Report& report, bool json, Totals& totals) {
  for (const FunctionVerdict& verdict : module.functions) {
    ++totals.counts[static_cast<int>(verdict.verdict)];
    nlohmann::json object{{"type", "kernel"},
                          {"gpu", gpu},
                          {"image", label},
                          {"name", base::to_utf8(verdict.name)},
                          {"verdict", to_string(verdict.verdict)},
                          {"bytes", verdict.bytes},
                          {"relocations", verdict.relocations},
                          {"unchecked_relocations", verdict.unchecked}};
    std::string text = std::string("  ") + to_string(verdict.verdict) + " " + verdict.name;
    if (!verdict.reason.empty()) {
      object["reason"] = base::to_utf8(verdict.reason);
      text += ": " + verdict.reason;
    }
    if (verdict.loader_changes != 0) object["loader_changes"] = verdict.loader_changes;
    if (verdict.verdict == Verdict::kDiffer) {
      object["first_offset"] = verdict.first_offset;
      object["different_bytes"] = verdict.different_bytes;
      for (const CodeDifference& difference : verdict.differences)
        object["differences"].push_back({{"offset", difference.offset},
                                         {"expected", hex(difference.expected)},
                                         {"resident", hex(difference.resident)}});
      text += ", " + std::to_string(verdict.different_bytes) + " bytes, first at offset " +
              std::to_string(verdict.first_offset);
    }
    if (verdict.verdict == Verdict::kMatch || verdict.verdict == Verdict::kMatchRelocated)
      object["resident_sha256"] = identify::to_hex(verdict.resident);
    // For people what is in order is counted; JSON has all.
    const bool plain = verdict.verdict == Verdict::kMatch || verdict.verdict == Verdict::kMatchRelocated;
    if (json || !plain || module.functions.size() <= 8) report.line(object, text);
  }
  totals.bytes += module.hashed_bytes;
  totals.gpu_ms += static_cast<double>(module.gpu_ms);
  ++totals.modules;
}

Failure probe_image(Session& session, const DeviceFacts& facts, const Options& options, Report& report, bool& finding) {
  const auto sm = static_cast<std::uint32_t>(facts.major * 10 + facts.minor);
  auto images = images_of_file(options.image, sm);
  if (!images.ok()) return {Outcome::kTrouble, images.error().message()};
  if (images->empty()) return {Outcome::kWrongImage, options.image + " has no code for sm_" + std::to_string(sm)};
  Totals totals;
  Failure last;
  for (const LoadableImage& image : *images) {
    ImageProbe probe(session, fresh_nonce);
    Failure failure;
    if (!image.error.empty())
      failure = {Outcome::kWrongImage, image.error};
    else
      failure = probe.load(image);
    if (failure && failure.outcome != Outcome::kFault && failure.outcome != Outcome::kOutOfMemory) {
      // One image of many: named, and on to the next.
      ++totals.skipped;
      last = failure;
      report.line({{"type", "module"},
                   {"gpu", facts.number},
                   {"image", image.label},
                   {"verdict", "not-probed"},
                   {"reason", base::to_utf8(failure.text)}},
                  "  not-probed " + image.label + ": " + failure.text);
      continue;
    }
    if (failure) return failure;
    ModuleVerdict verdict;
    if (failure = probe.check(options.kernel, verdict); failure) return failure;
    print(verdict, image.label, facts.number, report, options.json, totals);
    if (failure = probe.unload(); failure) return failure;
  }
  const std::string tool = watching_tool();
  nlohmann::json object{{"type", "image"},
                        {"gpu", facts.number},
                        {"file", base::to_utf8(options.image)},
                        {"modules", totals.modules},
                        {"modules_not_probed", totals.skipped},
                        {"hashed_bytes", totals.bytes},
                        {"gpu_ms", totals.gpu_ms}};
  std::string text = "  " + std::to_string(totals.modules) + " modules, " + std::to_string(totals.bytes) +
                     " bytes hashed in place" + format(" in %.3f ms:", totals.gpu_ms);
  for (int i = 0; i < 5; ++i) {
    object[to_string(static_cast<Verdict>(i))] = totals.counts[i];
    text +=
        std::string(i == 0 ? " " : ", ") + std::to_string(totals.counts[i]) + " " + to_string(static_cast<Verdict>(i));
  }
  if (!tool.empty()) {
    object["tool"] = tool;
    text += "; a " + tool + " is attached, which changes code by itself";
  }
  report.line(object, text);
  if (totals.modules == 0 && last) return last;
  std::size_t all = 0;
  for (const std::size_t count : totals.counts) all += count;
  if (all == 0 && !options.kernel.empty())
    return {Outcome::kTrouble, "no kernel " + options.kernel + " in " + options.image};
  finding = finding || totals.counts[static_cast<int>(Verdict::kDiffer)] != 0 ||
            totals.counts[static_cast<int>(Verdict::kNotResident)] != 0;
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
  Report report(options.json);
  // Before libcuda reads it: all code of a module is to be resident once loaded.
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  auto opened = open_driver(options.library);
  if (!opened.ok()) return report.failure({Outcome::kNoLibrary, opened.error().message()}, -1);
  const DriverApi& api = *opened;
  if (const CuResult result = api.init(0); result != kCuOk)
    return report.failure({result == kCuOutOfMemory ? Outcome::kOutOfMemory
                           : result == kCuStub      ? Outcome::kNoLibrary
                                                    : Outcome::kNoGpu,
                           "no GPU can be used: " + api.describe(result)},
                          -1);
  int version = 0;
  (void)api.driver_version(&version);
  int count = 0;
  if (const CuResult result = api.device_count(&count); result != kCuOk || count == 0)
    return report.failure({Outcome::kNoGpu, "no GPU is visible to this process"}, -1);
  report.line({{"type", "driver"}, {"cuda_version", version}, {"driver", driver_release()}, {"gpus", count}},
              "driver " + driver_release() + ", CUDA " + std::to_string(version / 1000) + "." +
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

}  // namespace
}  // namespace gpuwatch::probe

int main(int argc, char** argv) {
  using gpuwatch::probe::Outcome;
  gpuwatch::probe::Options options;
  static const option kLong[] = {{"json", no_argument, nullptr, 'j'},
                                 {"selftest", no_argument, nullptr, 's'},
                                 {"image", required_argument, nullptr, 'i'},
                                 {"kernel", required_argument, nullptr, 'k'},
                                 {"gpu", required_argument, nullptr, 'g'},
                                 {"library", required_argument, nullptr, 'l'},
                                 {nullptr, 0, nullptr, 0}};
  for (int choice; (choice = ::getopt_long(argc, argv, "", kLong, nullptr)) != -1;) {
    switch (choice) {
      case 'j':
        options.json = true;
        break;
      case 's':
        options.selftest = true;
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
      case 'g': {
        char* end = nullptr;
        const long value = std::strtol(optarg, &end, 10);
        if (*optarg == 0 || *end != 0 || value < 0 || value > 1023) {
          std::fprintf(stderr, "gpuwatch-probe: --gpu: a number from 0 is meant\n");
          return static_cast<int>(Outcome::kTrouble);
        }
        options.gpu = static_cast<int>(value);
        break;
      }
      default:
        return static_cast<int>(Outcome::kTrouble);
    }
  }
  try {
    return gpuwatch::probe::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpuwatch-probe: %s\n", error.what());
    return static_cast<int>(Outcome::kTrouble);
  }
}
