// SPDX-License-Identifier: Apache-2.0
// Names for code that was confirmed in GPU memory: the hashes of the image that
// it is of, and a form that is the same wherever the loader puts it. It knows no
// driver and decides nothing.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "identify/digest.h"
#include "probe/code.h"

namespace gpuwatch::probe {

struct FunctionHashes {
  identify::Digest k{};
  identify::Digest t{};
};

// An image as it lies in the file, and the cubin that was loaded of it: the same
// bytes, or what the driver made of PTX. Hashes are made when they are asked for.
class ImageIdentity {
 public:
  // `cubin` empty: the same bytes.
  ImageIdentity(bool ptx, std::vector<std::uint8_t> image, std::vector<std::uint8_t> cubin);

  bool ptx() const { return ptx_; }
  const identify::Digest& r() const;
  const FunctionHashes* of(const std::string& function) const;

 private:
  bool ptx_;
  std::vector<std::uint8_t> image_, cubin_;
  mutable std::optional<identify::Digest> r_;
  mutable std::optional<std::map<std::string, FunctionHashes>> functions_;
};

// SHA-256 of confirmed bytes where nothing is relocated. Else of "gpuwatch-form-v1"
// and a newline, the bytes with the relocated bits cleared, and a line "offset type
// addend symbol" for each relocation, sorted: which value stands there differs from
// load to load, and that it is the address of that symbol was confirmed.
identify::Digest form_of(const Code& code, const Function& function, identify::Bytes confirmed);

}  // namespace gpuwatch::probe
