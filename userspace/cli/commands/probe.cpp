// SPDX-License-Identifier: Apache-2.0
// `gpuwatch probe`: hands its flags to gpuwatch-probe, and with --baseline says of
// each function that was confirmed whether somebody vouched for it.
#include <array>
#include <map>

#include "base/escape.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/probe_program.h"
#include "judge/resident.h"
#include "pipeline/code_prints.h"
#include "probe/answer.h"

namespace gpuwatch::cli {

using base::Code;
using base::Error;
using base::Result;
using base::Status;
using judge::Familiarity;
using nlohmann::json;

namespace {

class Known {
 public:
  Known(const Flags& flags, pipeline::Baselines baselines)
      : json_(flags.has("json")), baselines_(std::move(baselines)) {}

  Status take(const json& line) {
    const std::string type = probe::answer_text(line, "type");
    if (type == "driver" || type == "process") driver_ = probe::answer_text(line, "driver", 64);
    if (type == "gpu")
      sm_[probe::answer_number(line, "gpu").value_or(0)] =
          static_cast<std::uint32_t>(probe::answer_number(line, "sm").value_or(0));
    json out = line;
    out.erase("text");
    std::string text = probe::answer_text(line, "text", probe::kAnswerLineMax);
    if (type == "kernel")
      if (Status status = judge(line, out, text); !status.ok()) return status;
    return put(out, text);
  }

  // At the end, the numbers.
  Status finish() {
    const json out{{"type", "known_code"},
                   {"known", count(Familiarity::kKnown)},
                   {"other-driver", count(Familiarity::kOtherDriver)},
                   {"unknown", count(Familiarity::kUnknown)},
                   {"denied", count(Familiarity::kDenied)}};
    std::string text = " ";
    for (std::size_t i = 0; i < judge::kFamiliarities; ++i)
      text += (i == 0 ? " " : ", ") + std::to_string(counts_[i]) + " " +
              std::string(judge::familiarity_name(static_cast<Familiarity>(i)));
    if (Status status = put(out, text + " to the baselines"); !status.ok()) return status;
    return output_.flush();
  }
  Status flush() { return output_.flush(); }
  // It goes on for long: each line is to be seen when it comes.
  void stream() { streams_ = true; }
  bool closed() const { return output_.closed(); }
  bool finding() const { return count(Familiarity::kUnknown) + count(Familiarity::kDenied) != 0; }
  std::size_t judged() const {
    std::size_t all = 0;
    for (const std::size_t count : counts_) all += count;
    return all;
  }

 private:
  std::size_t count(Familiarity familiarity) const { return counts_[static_cast<std::size_t>(familiarity)]; }

  Status judge(const json& line, json& out, std::string& text) {
    const auto kernel = probe::kernel_answer(line);
    if (!kernel) return Error(Code::kBadInput, "gpuwatch-probe printed a function without what every one has");
    if (!kernel->confirmed) return {};
    const auto sm = sm_.find(static_cast<std::uint64_t>(kernel->gpu));
    auto judged = judge::judge_resident(
        {kernel->name, driver_, sm == sm_.end() ? 0 : sm->second, kernel->ptx, *kernel->form, kernel->k},
        baselines_.all());
    if (!judged) return std::move(judged.error());
    ++counts_[static_cast<std::size_t>(judged->familiarity)];
    out["known"] = judge::familiarity_name(judged->familiarity);
    out["why"] = base::to_utf8(judged->why);
    if (!judged->baseline.empty()) out["baseline"] = base::to_utf8(judged->baseline);
    // What is in order in both respects is told where all functions are.
    const bool plain = judged->familiarity == Familiarity::kKnown;
    if (text.empty() && plain) return {};
    if (text.empty()) text = "  " + kernel->verdict + " " + kernel->name;
    text += "; " + std::string(judge::familiarity_name(judged->familiarity)) + (plain ? "" : ": " + judged->why);
    return {};
  }

  Status put(const json& line, const std::string& text) {
    std::string& out = output_.buffer();
    if (json_) {
      out += line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
    } else if (!text.empty()) {
      base::append_escaped(out, text);
      out += '\n';
    }
    return streams_ ? output_.flush() : output_.flush_if_full();
  }

  bool json_;
  bool streams_ = false;
  pipeline::Baselines baselines_;
  Output output_;
  std::string driver_;
  std::map<std::uint64_t, std::uint32_t> sm_;
  std::array<std::size_t, judge::kFamiliarities> counts_{};
};

Result<int> probe_known(const Flags& flags, std::vector<std::string> words) {
  auto baselines = pipeline::Baselines::open(flags.list("baseline"));
  if (!baselines) return std::move(baselines.error());
  words.emplace_back("--with-text");
  Known known(flags, std::move(*baselines));
  Enough enough;
  if (flags.has("every")) {
    known.stream();
    enough = [&] { return known.finding() || known.closed(); };
  }
  auto code = run_probe_program(
      words, [&](const json& line) { return known.take(line); }, enough);
  if (!code) return std::move(code.error());
  // Without a function there was nothing to judge: the status says why.
  if (known.judged() != 0 || *code <= kExitFinding) {
    if (Status status = known.finish(); !status.ok()) return std::move(status.error());
  } else if (Status status = known.flush(); !status.ok()) {
    return std::move(status.error());
  }
  return *code == kExitOk && known.finding() ? kExitFinding : *code;
}

}  // namespace

Result<int> run_probe(const Flags& flags) {
  const auto pid = flags.number("pid");
  if (flags.has("kernel") && !flags.has("image") && !pid)
    return Error(Code::kBadInput, "--kernel wants --image or --pid");
  if (flags.has("baseline") && !flags.has("image") && !pid)
    return Error(Code::kBadInput, "--baseline wants --image or --pid: without them no code is looked at");
  std::vector<std::string> words;
  if ((flags.has("records") || flags.has("outside")) && !pid)
    return Error(Code::kBadInput, "--records and --outside want --pid");
  if (flags.has("times") && !flags.has("every")) return Error(Code::kBadInput, "--times wants --every");
  for (const char* name : {"json", "no-ptx", "selftest", "outside"})
    if (flags.has(name)) words.push_back(std::string("--") + name);
  for (const char* name : {"image", "kernel", "records"})
    if (flags.has(name)) words.push_back(std::string("--") + name + "=" + flags.text(name));
  if (pid) words.push_back("--pid=" + std::to_string(*pid));
  for (const char* name : {"gpu", "timeout", "every", "times"})
    if (const auto value = flags.number(name)) words.push_back(std::string("--") + name + "=" + std::to_string(*value));
  if (flags.has("baseline")) return probe_known(flags, std::move(words));
  // Where it goes on and on, this program's output being its own, no line is too many.
  return run_probe_program(words, nullptr, flags.has("every") ? Enough([] { return false; }) : nullptr);
}

}  // namespace gpuwatch::cli
