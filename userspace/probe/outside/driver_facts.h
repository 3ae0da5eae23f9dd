// SPDX-License-Identifier: Apache-2.0
// What a process has in the driver, learnt from the records of its calls: GPU
// memory and the addresses it is mapped at, the debugger object that libcuda
// makes in each context, and of which kind the GPU is. It opens nothing and asks
// nobody; records may be incomplete, of another process, or lies.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "model/call.h"
#include "probe/plan.h"
#include "probe/ranges.h"

namespace gpuwatch::probe::outside {

using Handle = std::uint32_t;

struct MappedMemory {
  Span span;
  Handle client = 0;
  Handle memory = 0;
  std::uint64_t offset = 0;  // of the span's first byte in the memory
  std::uint32_t memory_class = 0;
  std::uint32_t flags = 0;  // of its allocation
  bool held = false;        // the handle is still that memory's
};

// A device object of a client in which a context was made.
struct Device {
  Handle client = 0;
  Handle object = 0;
  std::int32_t instance = -1;  // as the driver counts
  std::vector<Handle> debuggers;
  std::uint32_t compute_class = 0;
  Uuid uuid{};  // zeros: not known
  std::vector<MappedMemory> memory;
};

class DriverFacts {
 public:
  // Calls of one process, in the order in which they ended.
  void call(const model::Call& call);

  // Those with a debugger object, in the order in which they were made.
  std::vector<Device> devices() const;
  std::size_t ranges() const { return ranges_.size(); }
  // More objects, ranges or contexts than are kept: what is there is not all.
  bool cut() const { return cut_ || debuggers_ > kDebuggersMax; }

  static constexpr std::size_t kObjectsMax = 1 << 18;
  static constexpr std::size_t kRangesMax = 32768;
  // Each is a question to the driver, by whoever has the right to ask it. A
  // context has one.
  static constexpr std::size_t kDebuggersMax = 256;

 private:
  using Key = std::pair<Handle, Handle>;  // client and handle
  struct Object {
    Key parent;
    std::uint32_t object_class = 0;
    std::uint32_t flags = 0;
    std::int32_t instance = -1;  // of a device
    Handle compute = 0;          // of a debugger
    std::uint64_t number = 0;    // in the order of their making; handles come again
  };
  struct Range {
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;
    Key memory;
    std::uint64_t number = 0;  // of the object
    std::uint32_t object_class = 0;
    std::uint32_t flags = 0;
    Key device;
    Uuid uuid{};
  };
  void allocated(const model::Call& call);
  void freed(Key key);
  void mapped(const model::Call& call);
  void unmapped(std::uint64_t address, std::uint64_t bytes);
  void unregistered(const model::Call& call);

  std::map<Key, Object> objects_;
  std::map<Key, std::set<Handle>> children_;
  std::map<std::uint64_t, Range> ranges_;  // by address; none overlaps another
  std::size_t debuggers_ = 0;
  std::uint64_t next_ = 1;
  bool cut_ = false;
};

// The SMs that GPUs of this compute class may have; none: the class is not known.
std::vector<std::uint32_t> sms_of(std::uint32_t compute_class);

}  // namespace gpuwatch::probe::outside
