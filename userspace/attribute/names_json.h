// SPDX-License-Identifier: Apache-2.0
// Names out of the JSON that runtimes write or send. The text is untrusted:
// size and depth are bounded before it is parsed, a value of another type is
// as good as absent. No file or socket is touched here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attribute/names_source.h"

namespace gpuwatch::attribute {

inline constexpr std::size_t kJsonBytesMax = std::size_t{8} << 20;
inline constexpr int kJsonDepthMax = 32;

// The engine API's answer to /containers/ID/json, and docker's config.v2.json.
std::optional<NameAnswer> names_from_engine(std::string_view json);

// config.json of an OCI bundle, with the annotations of containerd and cri-o.
std::optional<NameAnswer> names_from_bundle(std::string_view json);

// CDI devices, "vendor/class=name", of the annotations cdi.k8s.io/... of the
// config.json of an OCI bundle; at most kCdiDevicesMax.
inline constexpr std::size_t kCdiDevicesMax = 64;
std::vector<std::string> cdi_devices_from_bundle(std::string_view json);

// containers.json of containers/storage: the entry of that id.
std::optional<NameAnswer> names_from_store(std::string_view json, std::string_view container_id);

}  // namespace gpuwatch::attribute
