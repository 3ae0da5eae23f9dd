// SPDX-License-Identifier: Apache-2.0
// The modules of a file that the driver would take for one GPU: of each
// container the machine code for its SM, else PTX. Bytes are untrusted.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "identify/container.h"

namespace gpuwatch::probe {

struct LoadableImage {
  std::string label;  // "entry 3 of container at 4096"
  bool ptx = false;
  std::vector<std::uint8_t> bytes;  // PTX with its closing NUL
  std::string error;                // it could not be taken out of the file
};

std::vector<LoadableImage> images_for(const identify::ByteSource& source, std::uint32_t sm);
base::Result<std::vector<LoadableImage>> images_of_file(const std::string& path, std::uint32_t sm);

}  // namespace gpuwatch::probe
