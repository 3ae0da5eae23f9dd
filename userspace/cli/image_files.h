// SPDX-License-Identifier: Apache-2.0
// Writes the module images of a recording into a directory, for other programs
// to look at. It does not look at them.
#pragma once

#include <string>

#include "base/result.h"
#include "model/raw_record.h"
#include "source/source.h"

namespace gpuwatch::cli {

// Where `record` tells of an image that the source has: writes it to
// DIRECTORY/ID.image, readable for its owner. An image that is missing or
// damaged is said on standard error; a file that can't be written is an error.
base::Status write_image(source::Source& source, const model::RawRecord& record, const std::string& directory);

}  // namespace gpuwatch::cli
