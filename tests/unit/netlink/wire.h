// SPDX-License-Identifier: Apache-2.0
// Messages of the family made by hand, as the kernel would send them, and wrong
// ones too.
#pragma once

#include <linux/genetlink.h>
#include <linux/gpuwatch_genl.h>
#include <linux/netlink.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace gpuwatch::netlink::test {

inline constexpr int kFamily = 0x21;

class Wire {
 public:
  explicit Wire(std::uint8_t command, int family = kFamily) {
    bytes_.resize(NLMSG_HDRLEN + GENL_HDRLEN);
    bytes_[NLMSG_HDRLEN] = std::byte{command};
    nlmsghdr header{};
    header.nlmsg_type = static_cast<std::uint16_t>(family);
    std::memcpy(bytes_.data(), &header, sizeof header);
  }
  Wire& put(int type, const void* data, std::size_t size) {
    nlattr attribute{static_cast<std::uint16_t>(NLA_HDRLEN + size), static_cast<std::uint16_t>(type)};
    append(&attribute, sizeof attribute);
    append(data, size);
    bytes_.resize((bytes_.size() + 3) / 4 * 4);
    return *this;
  }
  Wire& u32(int type, std::uint32_t value) { return put(type, &value, sizeof value); }
  Wire& u64(int type, std::uint64_t value) { return put(type, &value, sizeof value); }
  Wire& text(int type, const char* value) { return put(type, value, std::strlen(value) + 1); }
  Wire& stamp(std::uint64_t seq, std::uint64_t instance = 7) {
    return u64(GPUWATCH_A_SEQ, seq)
        .u64(GPUWATCH_A_TIME_NS, 1000 + seq)
        .u64(GPUWATCH_A_REALTIME_NS, 1'700'000'000'000'000'000 + seq)
        .u64(GPUWATCH_A_INSTANCE, instance);
  }
  Wire& nest(int type, const Wire& inner) {
    const auto payload = inner.payload();
    return put(type | NLA_F_NESTED, payload.data(), payload.size());
  }
  std::vector<std::byte> payload() const { return {bytes_.begin() + NLMSG_HDRLEN + GENL_HDRLEN, bytes_.end()}; }
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> out = bytes_;
    const auto size = static_cast<std::uint32_t>(out.size());
    std::memcpy(out.data(), &size, sizeof size);
    return out;
  }

 private:
  void append(const void* data, std::size_t size) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + size);
  }
  std::vector<std::byte> bytes_;
};

inline Wire open_event(std::uint64_t seq, std::uint64_t instance = 7) {
  return Wire(GPUWATCH_CMD_EVENT)
      .stamp(seq, instance)
      .u32(GPUWATCH_A_EVENT, GPUWATCH_EVENT_OPEN)
      .u32(GPUWATCH_A_PID, 42)
      .text(GPUWATCH_A_COMM, "python3")
      .u32(GPUWATCH_A_NODE_KIND, 2)
      .u32(GPUWATCH_A_GPU_MINOR, 3);
}

inline Wire heartbeat(std::uint64_t seq, int group = GPUWATCH_GROUP_EVENTS, std::uint64_t instance = 7) {
  return Wire(GPUWATCH_CMD_HEARTBEAT)
      .stamp(seq, instance)
      .u32(GPUWATCH_A_GROUP, static_cast<std::uint32_t>(group))
      .u32(GPUWATCH_A_HEARTBEAT_MS, 1000);
}

inline Wire verdict(std::uint64_t seq) {
  return Wire(GPUWATCH_CMD_VERDICT)
      .stamp(seq)
      .u32(GPUWATCH_A_SUBMITTER_PID, 99)
      .u32(GPUWATCH_A_SUBMITTER_UID, 0)
      .u32(GPUWATCH_A_VERDICT, GPUWATCH_VERDICT_UNKNOWN)
      .u32(GPUWATCH_A_SEVERITY, GPUWATCH_SEVERITY_ERROR)
      .text(GPUWATCH_A_RULE, "unknown-module");
}

}  // namespace gpuwatch::netlink::test
