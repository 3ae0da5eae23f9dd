// SPDX-License-Identifier: Apache-2.0
// Names from the engine API that docker and podman serve on a Unix socket: one
// GET, HTTP/1.0, read to its end under one deadline for all of it, bounded.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "attribute/names_source.h"

namespace gpuwatch::attribute {

// Sends `request` and gives all that comes back until the other side closes.
// Code::kLimit: time was up or the answer too big; Code::kNotFound: no socket.
base::Result<std::string> exchange(const std::string& socket_path, std::string_view request, const Patience& patience);

// Body of a response with status 200; nothing for another status or a form
// that is no response.
std::optional<std::string_view> http_body(std::string_view response);

std::unique_ptr<NameSource> make_socket_source(std::string runtime, std::string socket_path);

}  // namespace gpuwatch::attribute
