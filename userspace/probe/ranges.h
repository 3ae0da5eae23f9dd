// SPDX-License-Identifier: Apache-2.0
// Which GPU addresses of this process are mapped, by what memory, as its own
// calls to the kernel driver prove. Fed with every ioctl; it makes none. A range
// that is not here is not read: a read without backing ends the context.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "identify/bytes.h"

namespace gpuwatch::probe {

inline constexpr std::uint32_t kClassSystemMemory = 0x3e;
inline constexpr std::uint32_t kClassVideoMemory = 0x40;

using Uuid = std::array<std::uint8_t, 16>;

struct MappedRange {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t memory_class = 0;  // 0: of an object that was not seen being made
  std::uint32_t flags = 0;         // of its allocation
  std::vector<Uuid> gpus;          // that have it mapped; none: the call did not say
};

class RangeRecord {
 public:
  enum class Node { kControl, kUvm };

  // One finished call. `argument` is what the caller's pointer has afterwards,
  // `parameters` what an allocation's own pointer has.
  void call(Node node, unsigned long request, identify::Bytes argument, identify::Bytes parameters);

  // Bytes of the argument of such a call, 0: of no interest.
  static std::uint64_t argument_bytes(Node node, unsigned long request);
  // Takes such a call something away? Then what it names is no longer proven
  // from the moment it begins.
  static bool takes_away(Node node, unsigned long request);

  std::vector<MappedRange> ranges() const;
  // Without those that are mapped on other GPUs only: for this one they are no proof.
  RangeRecord on(const Uuid& gpu) const;
  std::size_t count() const { return ranges_->size(); }
  // Lies [address, address + bytes) in ranges that follow each other without a gap?
  bool covers(std::uint64_t address, std::uint64_t bytes) const;

 private:
  struct Memory {
    std::uint32_t memory_class;
    std::uint32_t flags;
  };
  void remove(std::uint64_t address, std::uint64_t bytes);
  void remove_gpu(const Uuid& gpu);

  using Ranges = std::map<std::uint64_t, MappedRange>;  // by address
  Ranges& own();

  // Copies of the record share it until one changes: they are taken often.
  std::shared_ptr<Ranges> ranges_ = std::make_shared<Ranges>();
  std::map<std::pair<std::uint32_t, std::uint32_t>, Memory> memory_;  // by client and handle
};

}  // namespace gpuwatch::probe
