// SPDX-License-Identifier: Apache-2.0
#include "probe/ranges.h"

#include <algorithm>
#include <atomic>

namespace gpuwatch::probe {

namespace {

using identify::load;

constexpr unsigned long kUvmUnregisterSpace = 26;
constexpr unsigned long kUvmMapExternal = 33;
constexpr unsigned long kUvmFree = 34;
constexpr unsigned long kUvmUnregisterGpu = 38;
constexpr unsigned long kUvmUnmapExternal = 66;
constexpr unsigned kRmFree = 0x29;
constexpr unsigned kRmAlloc = 0x2b;
constexpr unsigned kTypeNvidia = 'F';
// UVM_MAP_EXTERNAL_ALLOCATION_PARAMS since 550.54: 256 attributes of 36 bytes.
constexpr std::size_t kMapBytes = 9264;
constexpr std::size_t kMapGpus = 24;
constexpr std::size_t kMapGpuBytes = 36;
constexpr std::size_t kMapGpusMax = 256;
constexpr std::size_t kMapGpuCount = 9240;
constexpr std::size_t kMapClient = 9252;
constexpr std::size_t kMapObject = 9256;
constexpr std::size_t kMapStatus = 9260;

unsigned number_of(unsigned long request) {
  return request & 0xff;
}
unsigned type_of(unsigned long request) {
  return request >> 8 & 0xff;
}
unsigned size_of(unsigned long request) {
  return request >> 16 & 0x3fff;
}

}  // namespace

std::uint64_t RangeRecord::argument_bytes(Node node, unsigned long request) {
  if (node == Node::kUvm) {
    if (request == kUvmMapExternal) return kMapBytes;
    if (request == kUvmFree) return 24;
    if (request == kUvmUnmapExternal) return 36;
    if (request == kUvmUnregisterSpace || request == kUvmUnregisterGpu) return 20;
    return 0;
  }
  if (type_of(request) != kTypeNvidia) return 0;
  if (number_of(request) == kRmFree) return size_of(request) == 16 ? 16 : 0;
  if (number_of(request) != kRmAlloc) return 0;
  return size_of(request) == 32 || size_of(request) == 48 ? size_of(request) : 0;
}

bool RangeRecord::takes_away(Node node, unsigned long request) {
  return node == Node::kUvm && request != kUvmMapExternal && argument_bytes(node, request) != 0;
}

void RangeRecord::call(Node node, unsigned long request, identify::Bytes argument, identify::Bytes parameters) {
  const std::uint64_t want = argument_bytes(node, request);
  if (want == 0 || argument.size() < want) return;
  if (node == Node::kControl && number_of(request) == kRmFree) {
    // A mapping keeps its memory; the handle may come again for another.
    memory_.erase({load<std::uint32_t>(argument, 0), load<std::uint32_t>(argument, 8)});
    return;
  }
  if (node == Node::kControl) {
    const std::size_t status = want == 48 ? 40 : 28;
    if (load<std::uint32_t>(argument, status) != 0) return;
    const std::uint32_t memory_class = load<std::uint32_t>(argument, 12);
    // NV_MEMORY_ALLOCATION_PARAMS: owner, type, flags.
    const std::uint32_t flags = parameters.size() >= 12 ? load<std::uint32_t>(parameters, 8) : 0;
    memory_[{load<std::uint32_t>(argument, 0), load<std::uint32_t>(argument, 8)}] = {memory_class, flags};
    return;
  }
  if (request == kUvmUnregisterSpace || request == kUvmUnregisterGpu) {
    remove_gpu(load<Uuid>(argument, 0));
    return;
  }
  const std::uint64_t address = load<std::uint64_t>(argument, 0);
  const std::uint64_t bytes = load<std::uint64_t>(argument, 8);
  if (bytes == 0 || address + bytes < address) return;
  if (request == kUvmMapExternal) {
    if (load<std::uint32_t>(argument, kMapStatus) != 0) return;
    remove(address, bytes);
    MappedRange range;
    range.address = address;
    range.bytes = bytes;
    const std::uint64_t gpus = load<std::uint64_t>(argument, kMapGpuCount);
    for (std::size_t i = 0; gpus <= kMapGpusMax && i < gpus; ++i)
      range.gpus.push_back(load<Uuid>(argument, kMapGpus + i * kMapGpuBytes));
    const auto memory =
        memory_.find({load<std::uint32_t>(argument, kMapClient), load<std::uint32_t>(argument, kMapObject)});
    if (memory != memory_.end()) {
      range.memory_class = memory->second.memory_class;
      range.flags = memory->second.flags;
    }
    own()[address] = range;
    return;
  }
  // What failed to go may still be gone in part: it is no longer proven.
  remove(address, bytes);
}

RangeRecord::Ranges& RangeRecord::own() {
  if (ranges_.use_count() != 1) ranges_ = std::make_shared<Ranges>(*ranges_);
  // Whoever gave up a copy has done reading it.
  std::atomic_thread_fence(std::memory_order_acquire);
  return *ranges_;
}

void RangeRecord::remove(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t end = address + bytes;
  std::vector<MappedRange> rests;
  Ranges& ranges = own();
  for (auto it = ranges.begin(); it != ranges.end();) {
    MappedRange range = it->second;
    const std::uint64_t range_end = range.address + range.bytes;
    if (range_end <= address || range.address >= end) {
      ++it;
      continue;
    }
    it = ranges.erase(it);
    if (range.address < address) {
      range.bytes = address - range.address;
      rests.push_back(range);
    }
    if (range_end > end) {
      range.address = end;
      range.bytes = range_end - end;
      rests.push_back(range);
    }
  }
  for (const MappedRange& rest : rests) ranges[rest.address] = rest;
}

void RangeRecord::remove_gpu(const Uuid& gpu) {
  std::erase_if(own(), [&](const auto& entry) {
    const std::vector<Uuid>& gpus = entry.second.gpus;
    return gpus.empty() || std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
  });
}

std::vector<MappedRange> RangeRecord::ranges() const {
  std::vector<MappedRange> out;
  for (const auto& [address, range] : *ranges_) out.push_back(range);
  return out;
}

RangeRecord RangeRecord::on(const Uuid& gpu) const {
  RangeRecord out = *this;
  std::erase_if(out.own(), [&](const auto& entry) {
    const std::vector<Uuid>& gpus = entry.second.gpus;
    return !gpus.empty() && std::find(gpus.begin(), gpus.end(), gpu) == gpus.end();
  });
  return out;
}

bool RangeRecord::covers(std::uint64_t address, std::uint64_t bytes) const {
  const std::uint64_t end = address + bytes;
  if (end < address) return false;
  while (address < end) {
    auto it = ranges_->upper_bound(address);
    if (it == ranges_->begin()) return false;
    --it;
    const std::uint64_t range_end = it->second.address + it->second.bytes;
    if (range_end <= address) return false;
    address = std::min(end, range_end);
  }
  return true;
}

}  // namespace gpuwatch::probe
