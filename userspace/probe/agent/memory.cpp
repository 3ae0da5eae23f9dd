// SPDX-License-Identifier: Apache-2.0
#include "probe/agent/memory.h"

#include <algorithm>

namespace gpuwatch::probe::agent {

bool proven(const std::vector<MappedRange>& ranges, const Span& span, const Uuid* gpu) {
  std::uint64_t at = span.address;
  const std::uint64_t end = span.address + span.bytes;
  if (end < at) return false;
  auto it = std::upper_bound(ranges.begin(), ranges.end(), at,
                             [](std::uint64_t address, const MappedRange& range) { return address < range.address; });
  if (it == ranges.begin()) return false;
  for (--it; at < end; ++it) {
    if (it == ranges.end() || it->address > at || it->address + it->bytes <= at) return false;
    if (it->memory_class != kClassVideoMemory) return false;
    if (gpu != nullptr && !it->gpus.empty() && std::find(it->gpus.begin(), it->gpus.end(), *gpu) == it->gpus.end())
      return false;
    at = it->address + it->bytes;
  }
  return true;
}

void MappedMemory::call(RangeRecord::Node node, unsigned long request, identify::Bytes argument,
                        identify::Bytes parameters) {
  const std::lock_guard guard(mutex_);
  if (broken_) return;
  try {
    if (record_ == nullptr) record_ = new RangeRecord;
    record_->call(node, request, argument, parameters);
  } catch (...) {
    // Out of memory in somebody else's process: better to know nothing than to
    // disturb it or to know something wrong.
    broken_ = true;
  }
}

std::vector<MappedRange> MappedMemory::ranges() {
  const std::lock_guard guard(mutex_);
  if (broken_ || record_ == nullptr) return {};
  return record_->ranges();
}

bool MappedMemory::while_mapped(const std::vector<Span>& spans, const Uuid* gpu, const std::function<void()>& read) {
  const std::lock_guard guard(mutex_);
  if (broken_ || record_ == nullptr) return false;
  const std::vector<MappedRange> now = record_->ranges();
  for (const Span& span : spans)
    if (!proven(now, span, gpu)) return false;
  read();
  return true;
}

void MappedMemory::abandon() {
  // Left where it is: the allocator of a forked child is not to be trusted.
  record_ = nullptr;
  broken_ = false;
}

}  // namespace gpuwatch::probe::agent
