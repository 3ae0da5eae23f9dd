// SPDX-License-Identifier: Apache-2.0
// Records of containers whose name is being looked up: a choice by name, as of
// --container, would miss what a container did before its name was known. They
// wait here, in order, until there are news of names or the time is up, within
// a bound on memory; whoever keeps one never waits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/raw_record.h"

namespace gpuwatch::cli {

struct HeldLimits {
  std::size_t bytes = 2u << 20;           // all are looked at again when a name came: keeps that short
  std::size_t containers = 4096;          // whose time is remembered
  std::uint64_t wait_ns = 3'000'000'000;  // of a container, from its first record on
};

class HeldRecords {
 public:
  explicit HeldRecords(HeldLimits limits = {}) : limits_(limits) {}

  class Held {
   public:
    explicit Held(const model::RawRecord& record)
        : head_(record.head), payload_(record.payload.begin(), record.payload.end()) {}
    model::RawRecord record() const { return {head_, payload_}; }
    std::size_t bytes() const { return sizeof *this + payload_.capacity(); }

   private:
    gpuwatch_rec head_;
    std::vector<std::byte> payload_;
  };

  // False: its container's time is up, or there is no room, which is counted.
  bool keep(const model::RawRecord& record, std::string_view container, std::uint64_t now_ns);

  bool empty() const { return held_.empty(); }
  // It is worth looking again: names changed, or the first one's time is up.
  bool due(std::uint64_t generation, std::uint64_t now_ns);
  // All of them, in the order they came.
  std::vector<Held> take();

  std::uint64_t dropped() const { return dropped_; }

 private:
  HeldLimits limits_;
  std::vector<Held> held_;
  std::unordered_map<std::string, std::uint64_t> until_ns_;  // by container
  std::size_t bytes_ = 0;
  std::uint64_t first_until_ns_ = 0;
  std::uint64_t generation_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace gpuwatch::cli
