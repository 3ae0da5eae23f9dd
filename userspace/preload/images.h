// SPDX-License-Identifier: Apache-2.0
// The module images that recorded processes left beside their shards, by the
// id of their record. Recorded programs could have put anything there: only
// plain files under a bound are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace gpuwatch::preload {

// Ids of all images in the directory, ascending.
base::Result<std::vector<std::uint64_t>> image_ids(const std::string& directory);

base::Result<std::vector<std::byte>> read_image(const std::string& directory, std::uint64_t id,
                                                std::uint64_t max_bytes);

base::Status remove_images(const std::string& directory);

}  // namespace gpuwatch::preload
