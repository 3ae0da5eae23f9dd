// SPDX-License-Identifier: Apache-2.0
// What this process hands to the driver's nodes, taken for RangeRecord: which
// calls are of interest, and their arguments in the form that it knows. Reads no
// byte that the caller's structure may not have; allocates nothing, makes no
// driver call, and is used by whoever stands in for ioctl().
#pragma once

#include <string_view>

#include "probe/ranges.h"

namespace gpuwatch::probe {

// UVM_MAP_EXTERNAL_ALLOCATION_PARAMS has places for 32 GPUs and 1,200 bytes
// up to 545, for 256 and 9,264 bytes from 550.54.14 on.
enum class MapForm { kUnknown, kSmall, kLarge };
inline constexpr std::size_t kMapSmallBytes = 1200;
inline constexpr std::size_t kMapLargeBytes = 9264;

// Of a release of the driver ("580.159.04"); releases whose headers were not
// seen are unknown.
MapForm map_form_of(std::string_view release);
// Of the driver that is loaded here. Read once.
MapForm map_form();

// Is a call on `fd` one that RangeRecord wants? Which node it is.
bool of_interest(int fd, unsigned long request, RangeRecord::Node& node);

struct OwnCall {
  RangeRecord::Node node = RangeRecord::Node::kUvm;
  unsigned long request = 0;
  std::size_t argument_bytes = 0;
  std::size_t parameter_bytes = 0;
  std::uint8_t argument[kMapLargeBytes];  // as RangeRecord knows it, whatever form it had
  std::uint8_t parameters[12];

  identify::Bytes bytes() const { return {argument, argument_bytes}; }
  identify::Bytes allocation() const { return {parameters, parameter_bytes}; }
};

// Takes the argument of such a call. With `finished` the kernel has copied the
// whole structure just now, which is proof that it is there where the process may
// not ask about its own memory. False: it can't be read, or its form can't be
// told, or it makes an object of no interest.
bool take_call(RangeRecord::Node node, unsigned long request, const void* argument, MapForm form, bool finished,
               OwnCall& out);

}  // namespace gpuwatch::probe
