// SPDX-License-Identifier: Apache-2.0
#include "probe/agent/live.h"

#include <algorithm>
#include <memory>

#include "probe/agent/ask.h"
#include "probe/agent/compare.h"
#include "probe/tool.h"

namespace gpuwatch::probe::agent {

namespace {

class Access : public CodeAccess {
 public:
  Access(int pid, const Connect& connect, std::uint32_t device) : connection_(pid, {}, connect), device_(device) {}

  Failure open(Facts& facts) { return connection_.open(facts); }
  Failure read(const Span& span, std::vector<std::uint8_t>& out, std::string& refused) override {
    Refusal refusal;
    Failure failure = connection_.read(device_, span, out, refusal);
    refused = refusal.text;
    return failure ? failure : fatal(refusal);
  }
  Failure survey(const std::vector<Span>& spans, std::vector<SpanCount>& counts, std::string& refused) override {
    Refusal refusal;
    Failure failure = connection_.survey({device_, spans}, counts, refusal);
    refused = refusal.text;
    return failure ? failure : fatal(refusal);
  }
  Failure hash(const std::vector<Span>& spans, const Nonce& nonce, bool refresh, std::vector<identify::Digest>& roots,
               std::string& refused) override {
    AskHash ask;
    ask.device = device_;
    ask.refresh = refresh;
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

  Connection connection_;
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

// The agent holds things in the process as long as a connection lasts.
class AgentWay : public Way {
 public:
  AgentWay(int pid, const Connect& connect, std::string tool) : pid_(pid), connect_(connect), tool_(std::move(tool)) {}
  Failure open(std::uint32_t device, std::unique_ptr<CodeAccess>& access, std::vector<Span>& heap) override {
    auto opened = std::make_unique<Access>(pid_, connect_, device);
    Facts facts;
    if (Failure failure = opened->open(facts)) return failure;
    heap = heap_ranges(facts, device);
    access = std::move(opened);
    return {};
  }
  std::string tool() const override { return tool_; }

 private:
  int pid_;
  const Connect& connect_;
  std::string tool_;
};

// What needs rights, done before they are gone.
struct Prepared {
  std::string driver, tool;
  std::vector<Source> sources;
};

int probe(const LiveOptions& options, const Prepared& prepared, const Connect& connect, Report& report) {
  Facts facts;
  {
    Connection connection(options.pid, {}, connect);
    if (Failure failure = connection.open(facts)) return report.failure(failure, -1);
  }
  report.line({{"type", "process"},
               {"pid", options.pid},
               {"agent", word(facts.sight)},
               {"cuda_version", facts.cuda_version},
               {"driver", prepared.driver},
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
  AgentWay way(options.pid, connect, prepared.tool);
  bool finding = false;
  bool any = false;
  for (std::uint32_t number = 0; number < facts.devices.size(); ++number) {
    if (options.gpu >= 0 && number != static_cast<std::uint32_t>(options.gpu)) continue;
    const DeviceFact& device = facts.devices[number];
    if (!device.context) continue;
    any = true;
    report.line({{"type", "gpu"}, {"gpu", number}, {"sm", device.sm}, {"multiprocessors", device.multiprocessors}},
                "GPU " + std::to_string(number) + " of the process: sm_" + std::to_string(device.sm));
    if (Failure failure = compare_device(options, way, number, {device.sm}, prepared.sources, report, finding))
      return report.failure(failure, static_cast<int>(number));
  }
  if (!any)
    return report.failure({Outcome::kNoGpu, "the process has no live primary context on " +
                                                std::string(options.gpu >= 0 ? "this GPU" : "any GPU") +
                                                "; contexts that cuCtxCreate made are not looked into"},
                          options.gpu);
  return static_cast<int>(finding ? Outcome::kFinding : Outcome::kOk);
}

}  // namespace

int probe_process(const LiveOptions& options, Report& report, const std::function<int()>& otherwise) {
  std::string path;
  if (Failure failure = find_agent(options.pid, path))
    return failure.outcome == Outcome::kNoAgent && otherwise ? otherwise() : report.failure(failure, -1);
  const std::string folder = "/proc/" + std::to_string(options.pid);
  Prepared prepared{driver_of(folder), watching_tool(folder), {}};
  if (Failure failure = options.image.empty() ? sources_of_process(options.pid, prepared.sources)
                                              : source_of_file(options.image, prepared.sources))
    return report.failure(failure, -1);
  const Connect connect = [&](base::Fd& fd, bool& full) { return connect_agent(options.pid, fd, full); };
  return run_without_rights(connect, [&](const Connect& ask) { return probe(options, prepared, ask, report); });
}

}  // namespace gpuwatch::probe::agent
