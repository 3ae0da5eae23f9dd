// SPDX-License-Identifier: Apache-2.0
// Which section of a host file (.so, .o, executable) holds each container: a
// label for people, nothing that is found depends on it.
#pragma once

#include <vector>

#include "identify/container.h"

namespace gpuwatch::identify {

void name_sections(const ByteSource& source, std::vector<Container>& containers);

}  // namespace gpuwatch::identify
