// SPDX-License-Identifier: Apache-2.0
// The GPU memory of a process, read from outside through the driver, by handles:
// no agent, nothing launched, nothing made in the process. Digests are computed
// here. It is the driver that answers: what lies in memory, not what an
// instruction cache holds.
#pragma once

#include "probe/agent/compare.h"
#include "probe/outside/process_files.h"

namespace gpuwatch::probe::outside {

class OutsideAccess : public agent::CodeAccess {
 public:
  // `file`: the control file that the device's client was made through.
  OutsideAccess(TargetFiles& files, int file, Device device);

  Failure read(const Span& span, std::vector<std::uint8_t>& out, std::string& refused) override;
  Failure survey(const std::vector<Span>& spans, std::vector<agent::SpanCount>& counts, std::string& refused) override;
  Failure hash(const std::vector<Span>& spans, const Nonce& nonce, bool refresh, std::vector<identify::Digest>& roots,
               std::string& refused) override;

 private:
  TargetFiles& files_;
  int file_;
  Device device_;
  std::size_t debugger_ = 0;  // the one that answered last
};

// Which of the process's control files knows the client; -1 and why: none does.
Failure file_of(TargetFiles& files, Handle client, int& file, std::string& why);

// What may be code heap, the likeliest first.
std::vector<Span> heap_of(const Device& device);

}  // namespace gpuwatch::probe::outside
