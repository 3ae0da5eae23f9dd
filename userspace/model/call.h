// SPDX-License-Identifier: Apache-2.0
// Call: what decode makes of one record. Passive: numbers and views into
// static tables, nothing is owned or allocated. `record.payload` and `path`
// live as long as the buffer the record was parsed from.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/raw_record.h"

namespace gpuwatch::model {

enum class CallKind : std::uint8_t {
  kUnknown,    // a record type this build does not know
  kMalformed,  // a known type whose payload does not have the promised form
  kOpen,
  kIoctl,
  kMmap,
  kRelease,
  kTask,
  kCgroup,
  kState,
  kImage,
};

// Which number space `Call::number` belongs to.
enum class Space : std::uint8_t { kNone, kFrontend, kUvm, kNvkms, kOther };

// What an allocated object is; from the class table.
enum class Category : std::uint8_t {
  kNone,
  kClient,
  kDevice,
  kSubdevice,
  kVaspace,
  kChannelGroup,
  kChannel,
  kContextShare,
  kCompute,
  kCopy,
  kGraphics,
  kVideo,  // decoders, encoders, JPEG, optical flow
  kInlineToMemory,
  kMemoryGpu,
  kMemoryHost,
  kMemoryPinned,  // pages of the process
  kMemoryVirtual,
  kMemoryOther,
  kPeer,
  kFabric,
  kDebugger,
  kProfiler,
  kMig,
  kMps,
  kVgpu,
  kEvent,
  kDisplay,
  kUsermode,
  kSemaphore,
  kConfidential,
  kManagement,
  kOther,
};

// What a call does, as far as the default view cares; from tables/tags.in.
enum class Tag : std::uint8_t {
  kNone,
  kAlloc,
  kFree,
  kControl,
  kDup,
  kShare,
  kExport,
  kImport,
  kSchedule,  // a channel group or channel starts to run
  kMapGpu,    // into a GPU address space
  kUnmapGpu,
  kMapCpu,  // into the process
  kUnmapCpu,
  kPeerOn,
  kPeerOff,
  kExportDmabuf,
  kSync,   // sets up an event or semaphore
  kSign,   // of MIG or MPS being used
  kFault,  // asks for the state after a GPU fault
  kHeapControl,
  kAllocMemory,
  kDenial,  // of a status: somebody was refused, rather than asked for what is not there
};

// Values a call carries, by role. Which struct holds which role at which offset
// is data: decode/tables/fields.in.
enum class Field : std::uint8_t {
  kClient,   // RM client handle
  kParent,   // parent or device handle
  kObject,   // the object made, freed, controlled or mapped
  kClass,    // RM class number
  kControl,  // RM control command
  kStatus,   // NV_STATUS
  kFd,       // file descriptor number in the caller
  kAddress,  // address in the caller or the GPU, see name
  kLength,   // bytes
  kOffset,
  kFlags,
  kParamsAddress,  // user address of nested parameters
  kParamsSize,     // their size as the caller declares it
  kSourceClient,
  kSourceObject,
  kBytes,    // size of the memory object
  kEntries,  // GPFIFO entries of a channel
  kEngine,   // engine type
  kDevice,   // RM device instance
  kVaspace,  // handle of the address space of a channel or group
  kFunction,
  kCount,
};

// Field::kFlags of an mmap: PROT_* bits and this one for MAP_SHARED.
inline constexpr std::uint32_t kMmapShared = 0x100;

inline constexpr std::size_t kFieldCount = static_cast<std::size_t>(Field::kCount);

struct Call {
  RawRecord record;  // time, process, cgroup, node: see record.head

  CallKind kind = CallKind::kUnknown;
  Space space = Space::kNone;
  Category category = Category::kNone;
  Tag tag = Tag::kNone;
  Tag class_tag = Tag::kNone;  // of the class of an allocation
  bool failed = false;         // ret < 0, or a status that is neither OK nor a warning
  bool denied = false;         // failed because the caller may not
  bool truncated = false;      // a capture faulted, was cut short or left out
  bool named = false;          // every number of this call has a name

  std::uint32_t minor = 0;    // of the device node
  std::uint32_t number = 0;   // escape, UVM command or NVKMS command; of XFER the inner one
  std::uint32_t request = 0;  // request word of the ioctl as it came
  std::int64_t ret = 0;
  std::uint64_t duration_ns = 0;

  std::string_view node;         // family of the device node: "nvidiactl", "nvidia", "nvidia-uvm", ...
  std::string_view name;         // escape, UVM or NVKMS command; "open", "mmap", ...; empty: not known
  std::string_view detail;       // class of RM_ALLOC, command of RM_CONTROL; empty: none or not known
  std::string_view interface;    // family of a control command, "GPU", "FIFO", ...
  std::string_view privilege;    // who may call a control: "user", "admin", "kernel", "internal"
  std::string_view status_name;  // "NV_OK", ...; empty: no status or not known
  std::string_view path;         // of a definition record: untrusted bytes

  std::uint32_t arg_bytes = 0;              // size of the argument as the caller declares it
  std::uint32_t expected_bytes = 0;         // size by the table; 0 not known
  std::uint32_t params_expected_bytes = 0;  // size of the nested parameters by the table; 0 not known

  std::uint32_t present = 0;                      // bit per Field
  std::array<std::uint64_t, kFieldCount> values;  // set where present: clearing all costs as much as reading some

  bool has(Field field) const { return (present >> static_cast<unsigned>(field)) & 1U; }
  // 0 where the field is absent.
  std::uint64_t get(Field field) const { return has(field) ? values[static_cast<std::size_t>(field)] : 0; }
  std::uint32_t get32(Field field) const { return static_cast<std::uint32_t>(get(field)); }
  void set(Field field, std::uint64_t value) {
    present |= 1U << static_cast<unsigned>(field);
    values[static_cast<std::size_t>(field)] = value;
  }
};

}  // namespace gpuwatch::model
