// SPDX-License-Identifier: Apache-2.0
#include "probe/agent/live.h"

#include <algorithm>
#include <optional>

#include "base/escape.h"
#include "probe/agent/ask.h"
#include "probe/agent/sources.h"
#include "probe/tool.h"

namespace gpuwatch::probe::agent {

namespace {

constexpr std::uint64_t kHeapBlockMax = 64ull << 20;
constexpr std::uint32_t kHeapFlags = 0x1c101;
constexpr std::size_t kForeignLines = 64;

class Access : public CodeAccess {
 public:
  Access(Connection& connection, std::uint32_t device) : connection_(connection), device_(device) {}

  Failure read(const Span& span, std::vector<std::uint8_t>& out, std::string& refused) override {
    Refusal refusal;
    Failure failure = connection_.read(device_, span, out, refusal);
    refused = refusal.text;
    return failure ? failure : fatal(refusal);
  }
  Failure survey(const std::vector<Span>& spans, std::vector<std::uint32_t>& counts, std::string& refused) override {
    Refusal refusal;
    Failure failure = connection_.survey({device_, spans}, counts, refusal);
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

// One GPU of the process. The agent holds things in the process as long as a
// connection lasts, so there are two, with all the work on images between them:
// one to learn which images are worth comparing, one to compare.
class Live {
 public:
  Live(const LiveOptions& options, const std::vector<Source>& sources, Report& report)
      : options_(options), sources_(sources), report_(report) {}

  Failure device(std::uint32_t number, const Facts& facts, bool& finding);

 private:
  Failure compare(std::uint32_t number, const Modules& modules);
  void print(const LiveVerdict& verdict, int gpu);
  Failure sum(const ResidentCode& code, int gpu);

  const LiveOptions& options_;
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

Failure Live::device(std::uint32_t number, const Facts& facts, bool& finding) {
  const int gpu = static_cast<int>(number);
  std::optional<HeapIndex> index;
  if (options_.image.empty()) {
    Connection connection(options_.pid, {});
    Facts now;
    if (Failure failure = connection.open(now)) return failure;
    Access access(connection, number);
    ResidentCode code(access, fresh_nonce);
    if (Failure failure = code.read(heap_ranges(now, number), options_.read_max)) return failure;
    index.emplace(code.copies());
  }
  const Modules modules = modules_of(sources_, facts.devices[number].sm, index ? &*index : nullptr);
  totals_.modules = modules.looked_at;
  totals_.skipped = modules.skipped;
  if (options_.kernel.empty()) totals_.counts[static_cast<int>(Verdict::kNotResident)] = modules.elsewhere;
  if (!options_.image.empty())
    for (const Skipped& skipped : modules.reasons)
      report_.line({{"type", "module"},
                    {"gpu", gpu},
                    {"image", base::to_utf8(skipped.label)},
                    {"verdict", "not-probed"},
                    {"reason", base::to_utf8(skipped.reason)}},
                   "  not-probed " + skipped.label + ": " + skipped.reason);
  if (Failure failure = compare(number, modules)) return failure;
  finding = finding || totals_.counts[static_cast<int>(Verdict::kDiffer)] != 0 ||
            totals_.banks[static_cast<int>(Verdict::kDiffer)] != 0;
  if (!options_.kernel.empty() &&
      std::all_of(std::begin(totals_.counts), std::end(totals_.counts), [](std::size_t count) { return count == 0; }))
    return {Outcome::kTrouble, "no image that was looked at has a kernel " + options_.kernel};
  return {};
}

Failure Live::compare(std::uint32_t number, const Modules& modules) {
  const int gpu = static_cast<int>(number);
  Connection connection(options_.pid, {});
  Facts facts;
  if (Failure failure = connection.open(facts)) return failure;
  Access access(connection, number);
  ResidentCode code(access, fresh_nonce);
  if (Failure failure = code.read(heap_ranges(facts, number), options_.read_max)) return failure;
  std::vector<LiveVerdict> verdicts;
  if (Failure failure = code.find_whole(modules.modules, verdicts)) return failure;
  if (Failure failure = code.find_changed(modules.modules, verdicts)) return failure;
  for (const LiveVerdict& verdict : verdicts) print(verdict, gpu);
  verdicts.clear();
  if (Failure failure = code.find_banks(modules.modules, verdicts)) return failure;
  for (const LiveVerdict& verdict : verdicts) {
    ++totals_.banks[static_cast<int>(verdict.function.verdict)];
    print_bank(verdict.function, base::to_utf8(verdict.module->label), gpu, true, report_);
  }
  return sum(code, gpu);
}

Failure Live::sum(const ResidentCode& code, int gpu) {
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
                        {"surveyed_bytes", code.surveyed_bytes()},
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
  return {};
}

}  // namespace

int probe_process(const LiveOptions& options, Report& report) {
  std::vector<Source> sources;
  Facts facts;
  {
    Connection connection(options.pid, {});
    if (Failure failure = connection.open(facts)) return report.failure(failure, -1);
  }
  report.line({{"type", "process"},
               {"pid", options.pid},
               {"agent", word(facts.sight)},
               {"cuda_version", facts.cuda_version},
               {"driver", driver_of("/proc/" + std::to_string(options.pid))},
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
  if (Failure failure =
          options.image.empty() ? sources_of_process(options.pid, sources) : source_of_file(options.image, sources))
    return report.failure(failure, -1);
  bool finding = false;
  bool any = false;
  for (std::uint32_t number = 0; number < facts.devices.size(); ++number) {
    if (options.gpu >= 0 && number != static_cast<std::uint32_t>(options.gpu)) continue;
    const DeviceFact& device = facts.devices[number];
    if (!device.context) continue;
    any = true;
    report.line({{"type", "gpu"}, {"gpu", number}, {"sm", device.sm}, {"multiprocessors", device.multiprocessors}},
                "GPU " + std::to_string(number) + " of the process: sm_" + std::to_string(device.sm));
    Live live(options, sources, report);
    if (Failure failure = live.device(number, facts, finding)) return report.failure(failure, static_cast<int>(number));
  }
  if (!any)
    return report.failure({Outcome::kNoGpu, "the process has no live primary context on " +
                                                std::string(options.gpu >= 0 ? "this GPU" : "any GPU") +
                                                "; contexts that cuCtxCreate made are not looked into"},
                          options.gpu);
  return static_cast<int>(finding ? Outcome::kFinding : Outcome::kOk);
}

}  // namespace gpuwatch::probe::agent
