// SPDX-License-Identifier: Apache-2.0
// Keys that lines of calls and of events share: head, who, which GPU. Internal
// to publish.
#pragma once

#include "publish/json.h"
#include "publish/json_object.h"

namespace gpuwatch::publish {

void write_head(json::Object& json, std::string_view type, const gpuwatch_rec& head, const JsonOptions& options);
void write_actor(json::Object& json, const gpuwatch_rec& head, const model::Actor& actor);
void write_process(json::Object& json, const model::Actor& actor);
void write_gpu(json::Object& json, std::int32_t minor, const JsonOptions& options);
void write_mig(json::Object& json, const model::Actor& actor, const JsonOptions& options);
void write_state_values(json::Object& json, std::uint32_t event, std::uint32_t value, std::int64_t error,
                        std::string_view module);
void write_recorder(json::Object& json, const gpuwatch_rec& head);

}  // namespace gpuwatch::publish
