// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/baseline_resident.h"

#include <map>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/probe_program.h"
#include "cli/signals.h"
#include "probe/answer.h"
#include "probe/session.h"

namespace gpuwatch::cli {

using base::Code;
using base::Error;
using base::Result;
using base::Status;
using nlohmann::json;

namespace {

// What one run of gpuwatch-probe says, put beside the modules it is of.
class Take {
 public:
  Take(std::map<model::Digest, judge::Entry*>& by_r, AskedResidents& asked) : by_r_(by_r), asked_(asked) {}

  Status line(const json& line) {
    const std::string type = probe::answer_text(line, "type");
    if (type == "driver") {
      const std::string driver = probe::answer_text(line, "driver", 64);
      if (driver.empty())
        return Error(Code::kUnsupported, "the version of the driver is not known, so nothing can be stored for it");
      asked_.driver = driver;
    } else if (type == "gpu") {
      sm_ = static_cast<std::uint32_t>(probe::answer_number(line, "sm").value_or(0));
    } else if (type == "canary") {
      if (line.value("pass", json()) != json(true))
        return Error(Code::kIo, "the GPU computes wrongly: what it says of its memory is worth nothing");
    } else if (type == "module") {
      ++asked_.left_out;
      say(probe::answer_text(line, "image") + " left out: " + probe::answer_text(line, "reason"));
    } else if (type == "constant_bank") {
      const std::string verdict = probe::answer_text(line, "verdict", 64);
      if (verdict == "differ" || verdict == "not-resident")
        say("constant bank " + probe::answer_text(line, "name") + " of " + probe::answer_text(line, "image") + ": " +
            verdict);
    } else if (type == "kernel") {
      return kernel(line);
    }
    return {};
  }

 private:
  Status kernel(const json& line) {
    const auto kernel = probe::kernel_answer(line);
    if (!kernel || asked_.driver.empty() || sm_ == 0)
      return Error(Code::kBadInput, "gpuwatch-probe printed a function without what every one has");
    if (!kernel->confirmed) {
      say("function " + kernel->name + " of " + kernel->image + ": " + kernel->verdict +
          (kernel->reason.empty() ? "" : ": " + kernel->reason));
      asked_.exit_code = kExitFinding;
      return {};
    }
    const auto entry = kernel->r ? by_r_.find(*kernel->r) : by_r_.end();
    if (entry == by_r_.end())
      return Error(Code::kBadInput, kernel->image +
                                        ": gpuwatch-probe loaded an image that is not in the file as it was read "
                                        "here; did it change?");
    judge::Resident resident{kernel->name, asked_.driver, sm_, *kernel->form, kernel->bytes, {}, {}};
    if (kernel->ptx) {
      resident.k = kernel->k;
      resident.t = kernel->t;
    }
    entry->second->residents.push_back(std::move(resident));
    ++asked_.functions;
    return {};
  }

  std::map<model::Digest, judge::Entry*>& by_r_;
  AskedResidents& asked_;
  std::uint32_t sm_ = 0;
};

}  // namespace

Result<AskedResidents> ask_residents(std::vector<judge::Entry>& entries) {
  AskedResidents asked;
  std::vector<std::string> files;
  std::map<model::Digest, judge::Entry*> by_r;
  for (judge::Entry& entry : entries) {
    by_r.emplace(entry.module.r, &entry);
    const std::string& path = entry.sources.front().path;
    if (files.empty() || files.back() != path) files.push_back(path);
  }
  if (files.empty()) return Error(Code::kBadInput, "no GPU code in there: nothing was written");
  int last = kExitOk;
  for (const std::string& file : files) {
    if (stop_wanted()) return Error(Code::kIo, "stopped before the end: nothing was written");
    Take take(by_r, asked);
    auto code = run_probe_program({"--json", "--image=" + file}, [&](const json& line) { return take.line(line); });
    if (!code) return std::move(code.error());
    if (*code == static_cast<int>(probe::Outcome::kWrongImage)) {
      // Other files may have code for this GPU.
      last = *code;
      ++asked.left_out;
      continue;
    }
    if (*code != kExitOk) asked.exit_code = *code;
    if (asked.exit_code != kExitOk) {
      say(file + ": nothing was written: " +
          (asked.exit_code == kExitFinding ? "the code in GPU memory is not the file's" : "the probe has no result"));
      return asked;
    }
  }
  if (asked.functions == 0) {
    asked.exit_code = last == kExitOk ? kExitFinding : last;
    say("nothing was written: no function was found in GPU memory");
  }
  return asked;
}

}  // namespace gpuwatch::cli
