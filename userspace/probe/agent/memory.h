// SPDX-License-Identifier: Apache-2.0
// What this process has mapped on its GPUs, by its own driver calls, and the
// gate between reading and unmapping: while something is read, a call that would
// take it away waits; what such a call names is unproven from its beginning on.
// It makes no driver call itself.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "probe/agent/wire.h"
#include "probe/ranges.h"

namespace gpuwatch::probe::agent {

class MappedMemory {
 public:
  void call(RangeRecord::Node node, unsigned long request, identify::Bytes argument, identify::Bytes parameters);
  std::vector<MappedRange> ranges();

  // Runs `read` with unmapping held off, if all spans are mapped on `gpu` now, in
  // memory that code can lie in. `read` must be short and must not wait for a
  // thread that may be in such a call: it makes no call into libcuda.
  bool while_mapped(const std::vector<Span>& spans, const Uuid* gpu, const std::function<void()>& read);

  // Around fork(): the child has none of it.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  void abandon();  // in the child, locked

 private:
  std::mutex mutex_;
  // Never destroyed: calls come until the very end of the process.
  RangeRecord* record_ = nullptr;
  bool broken_ = false;  // something was missed: nothing is proven any more
};

// Is [span) mapped on `gpu` (null: any) by video memory, without a gap?
bool proven(const std::vector<MappedRange>& ranges, const Span& span, const Uuid* gpu);

}  // namespace gpuwatch::probe::agent
