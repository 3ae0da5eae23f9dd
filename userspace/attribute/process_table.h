// SPDX-License-Identifier: Apache-2.0
// ProcessTable: what is known of the processes that made calls, by (tgid,
// start time), so that a pid used again is another process. Definition records
// fill it; live, a process without one is looked up in /proc once, in the
// background. Bounded: the least recently used process goes first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "attribute/counters.h"
#include "model/process.h"
#include "model/raw_record.h"

namespace gpuwatch::attribute {

class ProcessTable {
 public:
  explicit ProcessTable(std::size_t limit);
  ~ProcessTable();
  ProcessTable(const ProcessTable&) = delete;
  ProcessTable& operator=(const ProcessTable&) = delete;

  // The records are made on this machine, now: /proc may be asked.
  void go_live(const std::string& proc = "/proc");

  // Takes a TASK record; false when it is malformed.
  bool learn(const model::RawRecord& task);
  // Takes an OPEN record: remembers capability nodes.
  void learn_open(const model::RawRecord& open);

  // Who made the call; null where nothing is known. Valid until the next call
  // of learn() or find().
  const model::Process* find(const gpuwatch_rec& head);

  ProcessCounters counters() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuwatch::attribute
