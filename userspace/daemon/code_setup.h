// SPDX-License-Identifier: Apache-2.0
// From settings to what judges GPU code: baselines, policy, and the story of
// loads. `files` gets the baselines in use.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/settings.h"
#include "pipeline/code_story.h"

namespace gpuwatch::daemon {

base::Result<pipeline::CodeJudge> make_judge(const Settings& settings, std::vector<std::string>& files);

// Nothing where loads are not to be told. `source` outlives it.
base::Result<std::unique_ptr<pipeline::CodeStory>> make_code(const Settings& settings, bool live,
                                                             source::Source& source, std::vector<std::string>& files);

}  // namespace gpuwatch::daemon
