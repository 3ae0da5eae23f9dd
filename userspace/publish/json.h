// SPDX-License-Identifier: Apache-2.0
// JSON lines for programs: one object and a newline per call or event, schema
// documented key by key in man/gpuwatch-json.5.md. Appends to a caller's
// buffer. Always valid UTF-8: bytes that are not become U+FFFD.
#pragma once

#include <cstdint>
#include <string>

#include "model/actor.h"
#include "model/call.h"
#include "model/description.h"
#include "model/gpu.h"
#include "model/story.h"

namespace gpuwatch::publish {

// Bumped when a key changes meaning or goes away; new keys do not count.
inline constexpr int kJsonSchema = 2;

struct JsonOptions {
  // CLOCK_REALTIME - CLOCK_MONOTONIC of the recording machine; 0: unknown, the
  // key "time_unix_ns" is left out.
  std::int64_t realtime_offset_ns = 0;
  const model::GpuList* gpus = nullptr;  // which cards the minors are, where known
};

// With `fields`, every field of the call's arguments too.
void append_json_line(std::string& out, const model::Call& call, const model::Actor& actor,
                      const JsonOptions& options = {}, const model::Description* fields = nullptr);
void append_json_line(std::string& out, const model::StoryEvent& event, const model::Actor& actor,
                      const JsonOptions& options = {});

}  // namespace gpuwatch::publish
