// SPDX-License-Identifier: Apache-2.0
#include "daemon/code_setup.h"

#include <unistd.h>

#include "base/io.h"

namespace gpuwatch::daemon {

using base::Error;
using base::Result;
using base::Status;

Result<pipeline::CodeJudge> make_judge(const Settings& settings, std::vector<std::string>& files) {
  std::vector<std::string> names = settings.texts(Key::kBaselines);
  files = names;
  if (names.empty() && ::access(pipeline::kDefaultBaseline, F_OK) == 0) files.emplace_back(pipeline::kDefaultBaseline);
  auto baselines = pipeline::Baselines::open(names);
  if (!baselines) return std::move(baselines.error()).with_context("code.baselines");
  if (Status plain = base::must_be_plain(settings.text(Key::kPolicy)); !plain.ok())
    return std::move(plain.error()).with_context("code.policy");
  auto policy = pipeline::read_policy(settings.text(Key::kPolicy));
  if (!policy) return std::move(policy.error()).with_context("code.policy");
  return pipeline::CodeJudge({}, std::move(*baselines), std::move(*policy));
}

Result<std::unique_ptr<pipeline::CodeStory>> make_code(const Settings& settings, bool live, source::Source& source,
                                                       std::vector<std::string>& files) {
  if (!settings.flag(Key::kImages)) return std::unique_ptr<pipeline::CodeStory>();
  auto judge = make_judge(settings, files);
  if (!judge) return std::move(judge.error());
  pipeline::CodeStoryOptions how;
  how.live = live;
  how.warm_up = true;
  how.identify.workers = 1;
  how.unverified_after_ns = static_cast<std::uint64_t>(settings.duration(Key::kUnverifiedAfter).count()) * 1'000'000;
  std::unique_ptr<pipeline::CodeScan> scan;
  if (live && settings.flag(Key::kScan)) {
    auto second = make_judge(settings, files);
    if (!second) return std::move(second.error());
    if (!second->judges())
      return Error(base::Code::kBadInput, "code.scan: wants a baseline to compare with; name one in code.baselines");
    pipeline::CodeScanOptions scan_how;
    scan_how.identify = how.identify;
    scan = std::make_unique<pipeline::CodeScan>(std::move(scan_how), std::move(*second));
  }
  return std::make_unique<pipeline::CodeStory>(std::move(how), std::move(*judge), std::move(scan), source);
}

}  // namespace gpuwatch::daemon
