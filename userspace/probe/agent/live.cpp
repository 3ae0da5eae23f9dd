// SPDX-License-Identifier: Apache-2.0
#include "probe/agent/live.h"

#include <algorithm>
#include <functional>

#include "base/escape.h"
#include "probe/agent/ask.h"
#include "probe/agent/resident.h"
#include "probe/images.h"
#include "probe/tool.h"
#include "scan/process_scan.h"

namespace gpuwatch::probe::agent {

namespace {

constexpr std::uint64_t kHeapBlockMax = 64ull << 20;
constexpr std::uint64_t kScanMemory = 8ull << 30;
constexpr std::uint64_t kScanStep = 256ull << 20;
constexpr std::uint32_t kHeapFlags = 0x1c101;
constexpr std::size_t kForeignLines = 64;

// The images of one file or of one place in memory.
struct Source {
  std::string label;
  std::function<base::Result<std::vector<LoadableImage>>(std::uint32_t sm)> images;
};

class Collect : public scan::ScanSink {
 public:
  void file(scan::MappedFile file) override {
    auto fd = std::make_shared<base::Fd>(std::move(file.fd));
    sources.push_back({file.path, [fd, size = file.size](std::uint32_t sm) {
                         return base::Result<std::vector<LoadableImage>>(
                             images_for(identify::FileSource(fd->get(), size), sm));
                       }});
  }
  void memory(scan::MemoryImage image) override {
    auto bytes = std::make_shared<std::vector<std::byte>>(std::move(image.bytes));
    char label[64];
    std::snprintf(label, sizeof label, "memory at 0x%llx", static_cast<unsigned long long>(image.address));
    sources.push_back({label, [bytes](std::uint32_t sm) {
                         const identify::Bytes span(reinterpret_cast<const std::uint8_t*>(bytes->data()),
                                                    bytes->size());
                         return base::Result<std::vector<LoadableImage>>(images_for(identify::MemorySource(span), sm));
                       }});
  }
  std::vector<Source> sources;
};

class Access : public CodeAccess {
 public:
  Access(Connection& connection, std::uint32_t device) : connection_(connection), device_(device) {}

  Failure read(const Span& span, std::vector<std::uint8_t>& out, std::string& refused) override {
    Refusal refusal;
    Failure failure = connection_.read(device_, span, out, refusal);
    refused = refusal.text;
    return failure ? failure : fatal(refusal);
  }
  Failure hash(const std::vector<Span>& spans, const Nonce& nonce, std::vector<identify::Digest>& roots,
               std::string& refused) override {
    AskHash ask;
    ask.device = device_;
    ask.refresh = true;
    ask.nonce = nonce;
    ask.spans = spans;
    Refusal refusal;
    Failure failure = connection_.hash(ask, roots, refusal);
    refused = refusal.text;
    return failure ? failure : fatal(refusal);
  }

 private:
  // What will not be better with the next request.
  static Failure fatal(const Refusal& refusal) {
    if (refusal.text.empty() || refusal.reason == Reason::kUnproven || refusal.reason == Reason::kOccupied) return {};
    const Outcome outcome = refusal.reason == Reason::kOutOfMemory ? Outcome::kOutOfMemory
                            : refusal.reason == Reason::kNoContext ? Outcome::kNoGpu
                            : refusal.reason == Reason::kBusy      ? Outcome::kNoAnswer
                                                                   : Outcome::kTrouble;
    return {outcome, "the agent: " + refusal.text};
  }

  Connection& connection_;
  std::uint32_t device_;
};

struct Modules {
  std::vector<LiveModule> modules;
  std::size_t skipped = 0;
  std::string reason;
};

Modules modules_of(const Source& source, std::uint32_t sm) {
  Modules out;
  auto images = source.images(sm);
  if (!images.ok()) {
    out.skipped = 1;
    out.reason = images.error().message();
    return out;
  }
  for (LoadableImage& image : *images) {
    LiveModule module;
    module.label = source.label + ", " + image.label;
    std::string error = image.error;
    if (error.empty() && image.ptx) error = "PTX: what the driver makes of it when it is loaded is not known here";
    if (error.empty()) error = read_code(image.bytes, module.code);
    if (error.empty() && module.code.relocatable) error = "relocatable code, which the driver does not load by itself";
    if (!error.empty()) {
      ++out.skipped;
      out.reason = error;
      continue;
    }
    out.modules.push_back(std::move(module));
  }
  return out;
}

// Ranges that may be code heap, the likeliest first.
std::vector<Span> heap_ranges(const Facts& facts, std::uint32_t device) {
  std::vector<RangeFact> ranges;
  for (const RangeFact& range : facts.ranges)
    if ((range.devices >> device & 1) != 0 && range.memory_class == kClassVideoMemory &&
        range.span.bytes <= kHeapBlockMax && range.span.address % 16 == 0 && range.span.bytes % 16 == 0)
      ranges.push_back(range);
  std::stable_partition(ranges.begin(), ranges.end(), [](const RangeFact& range) { return range.flags == kHeapFlags; });
  std::vector<Span> out;
  for (const RangeFact& range : ranges) out.push_back(range.span);
  return out;
}

const char* word(Sight sight) {
  return sight == Sight::kPreloaded ? "preloaded" : sight == Sight::kImport ? "injected" : "none";
}

class Live {
 public:
  Live(const LiveOptions& options, Connection& connection, const Facts& facts, const std::vector<Source>& sources,
       Report& report)
      : options_(options), connection_(connection), facts_(facts), sources_(sources), report_(report) {}

  Failure device(std::uint32_t number, bool& finding);

 private:
  void print(const LiveVerdict& verdict, int gpu);

  const LiveOptions& options_;
  Connection& connection_;
  const Facts& facts_;
  const std::vector<Source>& sources_;
  Report& report_;
  Totals totals_;
};

void Live::print(const LiveVerdict& verdict, int gpu) {
  if (!options_.kernel.empty() && verdict.function.name != options_.kernel) return;
  ++totals_.counts[static_cast<int>(verdict.function.verdict)];
  // Of all the code that a process has at hand most is not loaded.
  if (verdict.function.verdict == Verdict::kNotResident && options_.image.empty()) return;
  print_function(verdict.function, base::to_utf8(verdict.module->label), gpu, false, report_);
}

Failure Live::device(std::uint32_t number, bool& finding) {
  const DeviceFact& device = facts_.devices[number];
  const int gpu = static_cast<int>(number);
  Access access(connection_, number);
  ResidentCode code(access, fresh_nonce);
  if (Failure failure = code.read(heap_ranges(facts_, number), options_.read_max)) return failure;
  for (const bool changed : {false, true})
    for (const Source& source : sources_) {
      const Modules modules = modules_of(source, device.sm);
      if (!changed) {
        totals_.modules += modules.modules.size();
        totals_.skipped += modules.skipped;
        if (modules.skipped != 0 && !options_.image.empty())
          report_.line({{"type", "module"},
                        {"gpu", gpu},
                        {"image", base::to_utf8(source.label)},
                        {"verdict", "not-probed"},
                        {"reason", base::to_utf8(modules.reason)}},
                       "  not-probed " + source.label + ": " + modules.reason);
      }
      std::vector<LiveVerdict> verdicts;
      if (Failure failure =
              changed ? code.find_changed(modules.modules, verdicts) : code.find_whole(modules.modules, verdicts))
        return failure;
      for (const LiveVerdict& verdict : verdicts) print(verdict, gpu);
    }
  const std::vector<ForeignBlock> foreign = code.foreign();
  std::uint64_t foreign_bytes = 0;
  for (std::size_t i = 0; i < foreign.size(); ++i) {
    foreign_bytes += foreign[i].span.bytes;
    if (i >= kForeignLines || !report_.json()) continue;
    report_.line({{"type", "foreign_code"},
                  {"gpu", gpu},
                  {"address", foreign[i].span.address},
                  {"bytes", foreign[i].span.bytes},
                  {"sha256", identify::to_hex(foreign[i].sha256)}},
                 "");
  }
  nlohmann::json object{{"type", "resident"},
                        {"gpu", gpu},
                        {"pid", options_.pid},
                        {"modules", totals_.modules},
                        {"modules_not_probed", totals_.skipped},
                        {"read_bytes", code.read_bytes()},
                        {"unread_bytes", code.unread_bytes()},
                        {"hashed_bytes", code.hashed_bytes()},
                        {"foreign_blocks", foreign.size()},
                        {"foreign_bytes", foreign_bytes}};
  std::string text = "  " + std::to_string(code.read_bytes()) + " bytes read, " + std::to_string(code.hashed_bytes()) +
                     " hashed in place:";
  add_counts(totals_, object, text);
  text += "; " + std::to_string(foreign.size()) + " blocks of code that no image explains (" +
          std::to_string(foreign_bytes) + " bytes; the driver's own and what was unloaded among them)";
  if (code.unread_bytes() != 0) {
    object["unread_reason"] = base::to_utf8(code.unread_reason());
    text += "; " + std::to_string(code.unread_bytes()) + " bytes not read: " + code.unread_reason();
  }
  const std::string tool = watching_tool("/proc/" + std::to_string(options_.pid));
  if (!tool.empty()) {
    object["tool"] = tool;
    text += "; a " + tool + " is attached to it, which changes code by itself";
  }
  report_.line(object, text);
  finding = finding || totals_.counts[static_cast<int>(Verdict::kDiffer)] != 0;
  if (!options_.kernel.empty() &&
      std::all_of(std::begin(totals_.counts), std::end(totals_.counts), [](std::size_t count) { return count == 0; }))
    return {Outcome::kTrouble, "no image that was looked at has a kernel " + options_.kernel};
  return {};
}

Failure collect(const LiveOptions& options, std::vector<Source>& out) {
  if (!options.image.empty()) {
    const std::string path = options.image;
    auto first = images_of_file(path, 0);
    if (!first.ok()) return {Outcome::kTrouble, first.error().message()};
    out.push_back({path, [path](std::uint32_t sm) { return images_of_file(path, sm); }});
    return {};
  }
  scan::ScanOptions limits;
  limits.memory_bytes = kScanMemory;
  scan::ProcessScan scan(limits);
  Collect sink;
  for (;;) {
    const auto done = scan.step(static_cast<std::uint32_t>(options.pid), kScanStep, sink);
    if (!done.ok())
      return {done.error().code() == base::Code::kPermission ? Outcome::kDenied : Outcome::kNoProcess,
              done.error().message()};
    if (done.value()) break;
  }
  out = std::move(sink.sources);
  return {};
}

}  // namespace

int probe_process(const LiveOptions& options, Report& report) {
  std::vector<Source> sources;
  Facts facts;
  Connection connection(options.pid, {});
  if (Failure failure = connection.open(facts)) return report.failure(failure, -1);
  report.line({{"type", "process"},
               {"pid", options.pid},
               {"agent", word(facts.sight)},
               {"cuda_version", facts.cuda_version},
               {"gpus", facts.devices.size()},
               {"ranges", facts.ranges.size()}},
              "process " + std::to_string(options.pid) + ": agent " + word(facts.sight) + ", CUDA " +
                  std::to_string(facts.cuda_version / 1000) + "." + std::to_string(facts.cuda_version % 1000 / 10) +
                  ", " + std::to_string(facts.devices.size()) + " GPU(s), " + std::to_string(facts.ranges.size()) +
                  " ranges mapped");
  if (options.gpu >= static_cast<int>(facts.devices.size()))
    return report.failure({Outcome::kNoGpu, "the process sees no GPU of that number"}, options.gpu);
  if (facts.sight == Sight::kNone)
    return report.failure({Outcome::kTrouble,
                           "not-probed: the agent does not see the driver calls of this process, so that no address is "
                           "proven to be mapped; start it with the agent in LD_PRELOAD, too"},
                          -1);
  if (Failure failure = collect(options, sources)) return report.failure(failure, -1);
  bool finding = false;
  bool any = false;
  for (std::uint32_t number = 0; number < facts.devices.size(); ++number) {
    if (options.gpu >= 0 && number != static_cast<std::uint32_t>(options.gpu)) continue;
    const DeviceFact& device = facts.devices[number];
    if (!device.context) continue;
    any = true;
    report.line({{"type", "gpu"}, {"gpu", number}, {"sm", device.sm}, {"multiprocessors", device.multiprocessors}},
                "GPU " + std::to_string(number) + " of the process: sm_" + std::to_string(device.sm));
    Live live(options, connection, facts, sources, report);
    if (Failure failure = live.device(number, finding)) return report.failure(failure, static_cast<int>(number));
  }
  if (!any)
    return report.failure({Outcome::kNoGpu, "the process has no live primary context on " +
                                                std::string(options.gpu >= 0 ? "this GPU" : "any GPU") +
                                                "; contexts that cuCtxCreate made are not looked into"},
                          options.gpu);
  return static_cast<int>(finding ? Outcome::kFinding : Outcome::kOk);
}

}  // namespace gpuwatch::probe::agent
