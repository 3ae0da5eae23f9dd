// SPDX-License-Identifier: Apache-2.0
// Every field of a call, for people and for programs. Appends to a caller's
// buffer; escapes what is untrusted. Which fields there are is decode's.
#pragma once

#include <string>
#include <string_view>

#include "model/call.h"
#include "model/description.h"
#include "publish/text.h"

namespace gpuwatch::publish {

// A call that comes from a text rather than from a recording: without time and
// process, and with the tables it was read by.
struct LoneCall {
  std::string_view driver;       // version; empty: not known
  std::string_view driver_from;  // "flag", "proc", "call", "newest"
  std::string_view branch;       // whose tables were used
  bool inherited = false;
  bool outcome_known = false;
};

// ioctl(nvidiactl, NV_ESC_RM_ALLOC, {client=0xc1d00024 ...}) = 0 NV_OK, then its fields.
void append_lone_call(std::string& out, const LoneCall& lone, const model::Call& call,
                      const model::Description& description, const TextOptions& options = {});
void append_json_lone_call(std::string& out, const LoneCall& lone, const model::Call& call,
                           const model::Description& description);

// Lines with a part's struct and its fields, indented under the call's line.
void append_fields(std::string& out, const model::Description& description);

// The value of the key "parts".
void append_json_parts(std::string& out, const model::Description& description);

}  // namespace gpuwatch::publish
