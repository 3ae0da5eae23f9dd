// SPDX-License-Identifier: Apache-2.0
// Records of driver calls for decode tests: arguments by offset, node by kind.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "model/call.h"
#include "unit/support.h"

namespace gpuwatch::test {

// An argument being filled: bytes at offsets, as a driver program would.
class Argument {
 public:
  explicit Argument(std::size_t bytes) : bytes_(bytes, '\0') {}
  template <typename T>
  Argument& put(std::size_t offset, T value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
    return *this;
  }
  Argument& u32(std::size_t offset, std::uint32_t value) { return put(offset, value); }
  Argument& u64(std::size_t offset, std::uint64_t value) { return put(offset, value); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

inline gpuwatch_rec head_on(gpuwatch_node_kind kind, std::uint32_t minor = 0) {
  gpuwatch_rec head = make_head(GPUWATCH_REC_IOCTL);
  head.node_kind = static_cast<__u8>(kind);
  head.rdev = (195u << 20) | minor;
  return head;
}

constexpr std::uint32_t escape_request(std::uint32_t number, std::size_t size) {
  return 0xC0004600U | static_cast<std::uint32_t>(size) << 16 | number;
}

// A call whose argument the driver changed from `in` to `out`.
inline Blob escape_call(gpuwatch_rec head, std::uint32_t number, const Argument& in, const Argument& out,
                        std::vector<CaptureSpec> more = {}, std::int64_t ret = 0) {
  std::vector<CaptureSpec> captures{{GPUWATCH_CAP_ARG_IN, in.bytes()}, {GPUWATCH_CAP_ARG_OUT, out.bytes()}};
  captures.insert(captures.end(), more.begin(), more.end());
  return ioctl_record(head, escape_request(number, in.bytes().size()), ret, captures);
}

inline Blob uvm_call(std::uint32_t command, const Argument& argument) {
  return ioctl_record(head_on(GPUWATCH_NODE_UVM), command, 0,
                      {{GPUWATCH_CAP_ARG_IN, argument.bytes()}, {GPUWATCH_CAP_ARG_OUT, argument.bytes()}});
}

inline model::RawRecord parsed(const Blob& blob) {
  return model::parse_record(blob).value();
}

}  // namespace gpuwatch::test
