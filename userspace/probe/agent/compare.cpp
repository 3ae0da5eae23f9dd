// SPDX-License-Identifier: Apache-2.0
#include "probe/agent/compare.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/escape.h"

namespace gpuwatch::probe::agent {

namespace {

constexpr std::size_t kForeignLines = 64;

// Where the SM is not told exactly, the images for each that it may be.
Modules modules_for(const std::vector<Source>& sources, const std::vector<std::uint32_t>& sms, const HeapIndex* index) {
  Modules out;
  std::set<std::string> labels;
  for (std::size_t i = 0; i < sms.size(); ++i) {
    Modules some = modules_of(sources, sms[i], index);
    const bool first = i == 0;
    if (first) {
      out.reasons = std::move(some.reasons);
      out.looked_at = some.looked_at;
      out.elsewhere = some.elsewhere;
      out.skipped = some.skipped;
    }
    for (LiveModule& module : some.modules) {
      if (!labels.insert(module.label).second) continue;
      out.looked_at += first ? 0 : 1;
      out.modules.push_back(std::move(module));
    }
  }
  return out;
}

// One GPU of the process. It is opened twice, with all the work on images in
// between: to learn which images are worth comparing, and to compare.
class Live {
 public:
  Live(const LiveOptions& options, Way& way, const std::vector<Source>& sources, Report& report)
      : options_(options), way_(way), sources_(sources), report_(report) {}

  Failure device(std::uint32_t number, const std::vector<std::uint32_t>& sms, bool& finding);

 private:
  Failure compare(std::uint32_t number, const Modules& modules);
  void print(const LiveVerdict& verdict, int gpu);
  Failure sum(const ResidentCode& code, int gpu);

  const LiveOptions& options_;
  Way& way_;
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

Failure Live::device(std::uint32_t number, const std::vector<std::uint32_t>& sms, bool& finding) {
  const int gpu = static_cast<int>(number);
  std::optional<HeapIndex> index;
  if (options_.image.empty()) {
    std::unique_ptr<CodeAccess> access;
    std::vector<Span> heap;
    if (Failure failure = way_.open(number, access, heap)) return failure;
    ResidentCode code(*access, fresh_nonce);
    if (Failure failure = code.read(heap, options_.read_max)) return failure;
    if (Failure failure = code.read_rest()) return failure;
    index.emplace(code.copies());
  }
  const Modules modules = modules_for(sources_, sms, index ? &*index : nullptr);
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
  std::unique_ptr<CodeAccess> access;
  std::vector<Span> heap;
  if (Failure failure = way_.open(number, access, heap)) return failure;
  ResidentCode code(*access, fresh_nonce);
  if (Failure failure = code.read(heap, options_.read_max)) return failure;
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
                        {"read_by", report_.read_by()},
                        {"modules", totals_.modules},
                        {"modules_not_probed", totals_.skipped},
                        {"read_bytes", code.read_bytes()},
                        {"surveyed_bytes", code.surveyed_bytes()},
                        {"unread_bytes", code.unread_bytes()},
                        {"hashed_bytes", code.hashed_bytes()},
                        {"foreign_blocks", foreign.size()},
                        {"foreign_bytes", foreign_bytes}};
  std::string text = "  " + std::to_string(code.read_bytes()) + " bytes read, " + std::to_string(code.hashed_bytes()) +
                     (report_.read_by() == "gpu" ? " hashed in place:"
                                                 : " hashed as the driver read them, no instruction cache seen:");
  add_counts(totals_, object, text);
  text += "; " + std::to_string(foreign.size()) + " blocks of code that no image explains (" +
          std::to_string(foreign_bytes) + " bytes; the driver's own and what was unloaded among them)";
  if (code.unread_bytes() != 0) {
    object["unread_reason"] = base::to_utf8(code.unread_reason());
    text += "; " + std::to_string(code.unread_bytes()) + " bytes not read: " + code.unread_reason();
  }
  const std::string tool = way_.tool();
  if (!tool.empty()) {
    object["tool"] = tool;
    text += "; a " + tool + " is attached to it, which changes code by itself";
  }
  report_.line(object, text);
  // Nothing differs, because nothing was looked at: that is not in order.
  if (code.read_bytes() == 0 && code.unread_bytes() != 0)
    return {Outcome::kTrouble,
            "not-probed: none of the memory that may hold code could be read: " + code.unread_reason()};
  return {};
}

}  // namespace

Failure compare_device(const LiveOptions& options, Way& way, std::uint32_t device,
                       const std::vector<std::uint32_t>& sms, const std::vector<Source>& sources, Report& report,
                       bool& finding) {
  return Live(options, way, sources, report).device(device, sms, finding);
}

}  // namespace gpuwatch::probe::agent
