// SPDX-License-Identifier: Apache-2.0
// One ioctl from texts that somebody has: a bug report, strace, a debugger. It
// becomes a record as the kernel module makes them, so that everything behind
// reads it as any other. Texts are untrusted; what does not fit together is an
// error that says what to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/raw_record.h"

namespace gpuwatch::cli {

struct OneCallTexts {
  std::string device;   // "nvidiactl", "/dev/nvidia0"
  std::string request;  // "0xc030462b", "_IOC(_IOC_READ|_IOC_WRITE, 0x46, 0x2b, 0x30)", "43"
  // Bytes as hex digits or in strace's escapes; absent: not known.
  std::optional<std::string> arg, out, params, params_out;
  std::string ret;  // "0", "-13", "EACCES"; empty: not known
};

struct OneCall {
  std::vector<std::byte> record;  // model::parse_record() takes it
  bool outcome_known = false;     // what it returned or left in the argument was given
};

base::Result<OneCall> make_one_call(const OneCallTexts& texts);

// The bytes a text stands for. Errors name the column.
base::Result<std::string> bytes_from_text(std::string_view text);

}  // namespace gpuwatch::cli
