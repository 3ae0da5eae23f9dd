// SPDX-License-Identifier: Apache-2.0
#include "cli/image_files.h"

#include <fcntl.h>

#include "base/fd.h"
#include "base/io.h"
#include "cli/output.h"
#include "model/definitions.h"

namespace gpuwatch::cli {

using base::Error;
using base::Status;

Status write_image(source::Source& source, const model::RawRecord& record, const std::string& directory) {
  if (record.head.type != GPUWATCH_REC_IMAGE) return {};
  const auto image = model::parse_image(record);
  if (!image || image->fixed.id == 0) return {};
  auto bytes = source.take_image(image->fixed);
  if (!bytes) {
    say(bytes.error().message());
    return {};
  }
  const std::string path = directory + "/" + std::to_string(image->fixed.id) + ".image";
  // Never over a file that is there: ids of two recordings may be equal.
  const base::Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) {
    const int error = errno;
    return Error(base::Code::kIo,
                 Error::from_errno("--images: " + path, error).message() +
                     (error == EEXIST ? "; name an empty directory" : "; name a directory that can be written"),
                 error);
  }
  if (Status status = base::write_all(fd.get(), bytes->bytes()); !status.ok())
    return std::move(status.error()).with_context("--images: " + path);
  return {};
}

}  // namespace gpuwatch::cli
