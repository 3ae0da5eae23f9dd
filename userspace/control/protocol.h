// SPDX-License-Identifier: Apache-2.0
// The lines of the daemon's control socket: one JSON object as the request, one
// as the answer, each on a line of its own. Both sides read hostile bytes, so
// length and depth are bounded here, once. No socket is touched here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuwatch::control {

inline constexpr const char* kSocketPath = "/run/gpuwatch/control.sock";
inline constexpr std::size_t kRequestMax = 8 << 10;  // bytes, without the newline
inline constexpr std::size_t kAnswerMax = 16 << 20;
inline constexpr int kDepthMax = 16;

enum class Verb : std::uint8_t { kStatus, kHoldings, kDump, kReload };
std::string_view verb_name(Verb verb);

struct Request {
  Verb verb = Verb::kStatus;
  std::string path;  // dump: the file to write, absolute; empty: one in the directory for dumps
};

// Unknown requests, unknown keys and wrong types are errors that name them.
base::Result<Request> parse_request(std::string_view line);
std::string format_request(const Request& request);  // without newline

// {"ok":true,"KEY":BODY}; `body` is JSON already.
std::string format_answer(Verb verb, std::string_view body);
// {"ok":false,"error":"..."}
std::string format_refusal(std::string_view why);

// The body of a good answer as JSON text; the other side's words as the error
// of a bad one.
base::Result<std::string> parse_answer(std::string_view line, Verb verb);

}  // namespace gpuwatch::control
