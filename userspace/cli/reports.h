// SPDX-License-Identifier: Apache-2.0
// Reports: what --summary and --timeline ask for, fed by View with the calls and
// events that the user selected, given out once the records end.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "model/call.h"
#include "model/loss.h"
#include "model/story.h"
#include "report/summary.h"
#include "report/timeline.h"
#include "source/gwcap_format.h"

namespace gpuwatch::cli {

// The part of the records that --since and --until name.
struct Window {
  std::uint64_t since_ns = 0;  // after the first call
  std::uint64_t until_ns = ~std::uint64_t{0};
};

class Reports {
 public:
  // Nothing when the flags ask for no report.
  static base::Result<std::unique_ptr<Reports>> from_flags(const Flags& flags);

  void start(report::Summary::ActorLookup who);
  void observe(const model::Call& call);
  void observe(const model::StoryEvent& event);

  // Prints the summary and writes the picture; `name` is what was read.
  base::Status finish(Output& output, const source::GwcapHeader& header, const model::LossCounts& lost,
                      const std::string& name);

 private:
  bool summary_wanted_ = false;
  bool json_ = false;
  std::string timeline_path_;  // empty: none
  report::GroupBy by_ = report::GroupBy::kProcess;
  Window window_;
  std::optional<report::Summary> summary_;
  std::optional<report::Timeline> timeline_;
};

}  // namespace gpuwatch::cli
