// SPDX-License-Identifier: Apache-2.0
// The images that may have been loaded in a process: of a file that was named,
// or of the files that it has mapped and of its memory. It asks no agent.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "probe/agent/heap_index.h"
#include "probe/agent/resident.h"
#include "probe/images.h"

namespace gpuwatch::probe::agent {

// The images of one file or of one place in memory.
struct Source {
  std::string label;
  std::uint64_t bytes = 0;
  std::function<base::Result<std::vector<LoadableImage>>(std::uint32_t sm)> images;
};

// As many files open as this process may have: what is parsed later is held open
// till then, and who is looked at may have mapped many.
void allow_many_files();

Failure source_of_file(const std::string& path, std::vector<Source>& out);
Failure sources_of_process(int pid, std::vector<Source>& out);

struct Skipped {
  std::string label;
  std::string reason;  // of the last image
};

struct Modules {
  std::vector<LiveModule> modules;
  std::size_t looked_at = 0;  // modules
  std::size_t elsewhere = 0;  // functions of modules of which nothing is in memory
  std::size_t skipped = 0;    // images that cannot be compared
  std::vector<Skipped> reasons;
};

// Modules for GPUs of `sm`; with an index only those that may be in memory. Works
// on as many sources at a time as the machine has processors.
Modules modules_of(const std::vector<Source>& sources, std::uint32_t sm, const HeapIndex* index);

}  // namespace gpuwatch::probe::agent
