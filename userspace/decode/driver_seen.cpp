// SPDX-License-Identifier: Apache-2.0
#include "decode/driver_seen.h"

#include <cstring>

#include "decode/captures.h"

namespace gpuwatch::decode {

namespace {

constexpr std::uint32_t kCheckVersion = 210;  // NV_ESC_CHECK_VERSION_STR, the same in every branch
constexpr std::uint32_t kReplyAt = 4;
constexpr std::uint32_t kTextAt = 8;
constexpr std::uint32_t kTextBytes = 64;
constexpr std::uint32_t kRecognized = 1;

}  // namespace

std::optional<model::DriverVersion> driver_seen(const model::Call& call) {
  if (call.kind != model::CallKind::kIoctl || call.space != model::Space::kFrontend || call.number != kCheckVersion ||
      call.ret < 0)
    return std::nullopt;
  Captures captures;
  if (!captures.parse(call.record.payload)) return std::nullopt;
  const CapturePart after = captures[GPUWATCH_CAP_ARG_OUT];
  const std::byte* const reply_at = after.at(kReplyAt, 4);
  const std::byte* const text_at = after.at(kTextAt, kTextBytes);
  if (reply_at == nullptr || text_at == nullptr) return std::nullopt;
  std::uint32_t reply = 0;
  std::memcpy(&reply, reply_at, sizeof reply);
  if (reply != kRecognized) return std::nullopt;
  const std::string_view all(reinterpret_cast<const char*>(text_at), kTextBytes);
  return model::parse_driver_version(all.substr(0, all.find('\0')));
}

}  // namespace gpuwatch::decode
