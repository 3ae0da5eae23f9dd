// SPDX-License-Identifier: Apache-2.0
// The modules of a file that the driver would take for one GPU: of each
// container the machine code for its SM, else PTX. Bytes are untrusted.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "identify/container.h"

namespace gpuwatch::probe {

struct LoadableImage {
  std::string label;  // "entry 3 of container at 4096"
  bool ptx = false;
  std::vector<std::uint8_t> bytes;  // PTX with its closing NUL
  std::string error;                // it could not be taken out of the file
};

// Images that are taken one at a time, as often as wanted.
class ImageList {
 public:
  virtual ~ImageList() = default;
  virtual std::size_t size() const = 0;
  virtual LoadableImage take(std::size_t number) const = 0;
};

// Those of a file; a library's together are gigabytes.
class ImageFile : public ImageList {
 public:
  // Machine code comes first; PTX, which takes the driver's time, last or not at all.
  static base::Result<ImageFile> open(const std::string& path, std::uint32_t sm, bool ptx = true);

  std::size_t size() const override { return images_.size(); }
  LoadableImage take(std::size_t number) const override;
  std::size_t left_out() const { return left_out_; }  // PTX

 private:
  base::Fd fd_;
  std::uint64_t bytes_ = 0;
  std::size_t left_out_ = 0;
  std::vector<identify::Image> images_;
};

std::vector<LoadableImage> images_for(const identify::ByteSource& source, std::uint32_t sm);
base::Result<std::vector<LoadableImage>> images_of_file(const std::string& path, std::uint32_t sm);

}  // namespace gpuwatch::probe
