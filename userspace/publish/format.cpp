// SPDX-License-Identifier: Apache-2.0
// See format.h. Written by hand rather than with printf: these run once per
// call at full rate.
#include "publish/format.h"

#include <charconv>
#include <cstring>

namespace gpuwatch::publish::format {

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

template <typename T>
void append_charconv(std::string& out, T value, int base) {
  char digits[24];
  const auto result = std::to_chars(digits, digits + sizeof digits, value, base);
  out.append(digits, result.ptr);
}

}  // namespace

void append_number(std::string& out, std::uint64_t value) {
  append_charconv(out, value, 10);
}
void append_signed(std::string& out, std::int64_t value) {
  append_charconv(out, value, 10);
}

void append_hex(std::string& out, std::uint64_t value) {
  out += "0x";
  append_charconv(out, value, 16);
}

void append_padded(std::string& out, std::uint64_t value, unsigned digits) {
  char text[24];
  const auto result = std::to_chars(text, text + sizeof text, value);
  const auto length = static_cast<unsigned>(result.ptr - text);
  if (length < digits) out.append(digits - length, '0');
  out.append(text, result.ptr);
}

void append_errno(std::string& out, std::int64_t negative_errno) {
  const char* name =
      negative_errno < 0 && negative_errno >= -4095 ? strerrorname_np(static_cast<int>(-negative_errno)) : nullptr;
  if (name != nullptr) {
    out += name;
  } else {
    out += "errno ";
    append_signed(out, negative_errno);
  }
}

void append_time(std::string& out, std::uint64_t time_ns, std::int64_t realtime_offset_ns, std::int32_t utc_offset_s,
                 unsigned fraction) {
  std::uint64_t ns = time_ns;
  if (realtime_offset_ns != 0)
    ns += static_cast<std::uint64_t>(realtime_offset_ns) +
          static_cast<std::uint64_t>(std::int64_t{utc_offset_s} * static_cast<std::int64_t>(kSecond));
  const std::uint64_t seconds = ns / kSecond;
  if (realtime_offset_ns != 0) {
    append_padded(out, seconds / 3600 % 24, 2);
    out += ':';
    append_padded(out, seconds / 60 % 60, 2);
    out += ':';
    append_padded(out, seconds % 60, 2);
  } else {
    append_number(out, seconds);
  }
  out += '.';
  std::uint64_t rest = ns % kSecond;
  for (unsigned i = fraction; i < 9; ++i) rest /= 10;
  append_padded(out, rest, fraction);
}

void append_duration(std::string& out, std::uint64_t ns) {
  if (ns < 1'000'000) {
    append_number(out, ns / 1000);
    out += '.';
    append_padded(out, ns % 1000, 3);
    out += "us";
  } else if (ns < kSecond) {
    append_number(out, ns / 1'000'000);
    out += '.';
    append_padded(out, ns / 1000 % 1000, 3);
    out += "ms";
  } else {
    append_number(out, ns / kSecond);
    out += '.';
    append_padded(out, ns / 1'000'000 % 1000, 3);
    out += 's';
  }
}

void append_node(std::string& out, std::string_view family, unsigned node_kind, std::uint32_t rdev) {
  const std::uint32_t minor = rdev & 0xFFFFF;
  switch (node_kind) {
    case GPUWATCH_NODE_GPU:
      out += family;
      append_number(out, minor);
      break;
    case GPUWATCH_NODE_CAPS:
      out += "nvidia-caps/nvidia-cap";
      append_number(out, minor);
      break;
    case GPUWATCH_NODE_IMEX:
      out += "nvidia-caps-imex-channels/channel";
      append_number(out, minor);
      break;
    case GPUWATCH_NODE_NVSWITCH:
      out += minor == 255 ? "nvidia-nvswitchctl" : "nvidia-nvswitch";
      if (minor != 255) append_number(out, minor);
      break;
    case GPUWATCH_NODE_OTHER:
      out += "char-";
      append_number(out, rdev >> 20);
      out += ':';
      append_number(out, minor);
      break;
    default:
      out += family;
  }
}

void pad_to(std::string& out, std::size_t from, std::size_t width) {
  const std::size_t used = out.size() - from;
  out.append(used < width ? width - used : 1, ' ');
}

std::string_view image_kind_name(std::uint32_t kind) {
  constexpr std::string_view kNames[] = {"unknown", "fatbin", "elf", "text", "path", "call"};
  return kind < std::size(kNames) ? kNames[kind] : kNames[0];
}

std::string_view state_name(std::uint32_t event) {
  switch (event) {
    case GPUWATCH_STATE_ATTACHED:
      return "attached";
    case GPUWATCH_STATE_DETACHED:
      return "detached";
    case GPUWATCH_STATE_DRIVER_LIVE:
      return "driver_live";
    case GPUWATCH_STATE_DRIVER_GOING:
      return "driver_going";
    case GPUWATCH_STATE_HOOKED:
      return "hooked";
    case GPUWATCH_STATE_HOOK_FAILED:
      return "hook_failed";
    case GPUWATCH_STATE_PLAN:
      return "plan";
    default:
      return {};
  }
}

}  // namespace gpuwatch::publish::format
