// SPDX-License-Identifier: Apache-2.0
// Finds GPU code in the bytes of a file by its magics, wherever it lies:
// containers, cubins and PTX outside of containers. Sections of a host file
// give names only. Headers are read, payloads are not.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "identify/container.h"
#include "identify/image.h"
#include "identify/limits.h"

namespace gpuwatch::identify {

struct Scan {
  std::vector<Container> containers;
  std::vector<Image> images;
  std::vector<std::string> errors;  // of the file as a whole
};

// `progress` is told how far the scan is; it may be empty.
Scan scan(const ByteSource& source, const Limits& limits, const std::function<void(std::uint64_t)>& progress = {});

}  // namespace gpuwatch::identify
