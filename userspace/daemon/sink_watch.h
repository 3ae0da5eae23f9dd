// SPDX-License-Identifier: Apache-2.0
// SinkWatch: tells when an output begins to fail and when it takes items again,
// each of them at most once a minute. Looks at counts; the queues know nothing
// of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/outputs.h"

namespace gpuwatch::daemon {

struct SinkState {
  std::string name;
  bool failing = false;
  std::string error;
};

class SinkWatch {
 public:
  // What changed of how many outputs do, to be told now.
  std::vector<SinkState> changed(const std::vector<SinkState>& states, std::uint64_t now_ns);
  // Looks at all outputs and says it, to the journal with its MESSAGE_ID.
  void look(const Outputs& outputs, std::uint64_t now_ns);

 private:
  struct Told {
    bool failing = false;
    std::uint64_t at_ns = 0;  // 0: never
  };
  std::map<std::string, Told> told_;
};

}  // namespace gpuwatch::daemon
