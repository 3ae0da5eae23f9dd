// SPDX-License-Identifier: Apache-2.0
// Inflates one image into memory of exactly the declared size. The codec must
// fill it exactly; anything else is an error in the codec's name.
#pragma once

#include <string>

#include "identify/bytes.h"
#include "identify/image.h"

namespace gpuwatch::identify {

// Memory of its own pages: given back when it goes, and never touched by the
// heap's bookkeeping. Empty when the system refuses it.
class PageBuffer {
 public:
  PageBuffer() = default;
  explicit PageBuffer(std::size_t size);
  PageBuffer(PageBuffer&& other) noexcept;
  PageBuffer& operator=(PageBuffer&& other) noexcept;
  ~PageBuffer();

  std::uint8_t* data() { return data_; }
  std::size_t size() const { return size_; }
  Bytes bytes() const { return {data_, size_}; }
  std::span<std::uint8_t> span() { return {data_, size_}; }

  // At least so many bytes, contents lost; false when the system refuses.
  bool reserve(std::size_t size);

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

// Empty when `out` was filled, else what went wrong: "lz4 error -6".
std::string inflate(Compression compression, Bytes stored, std::span<std::uint8_t> out);

}  // namespace gpuwatch::identify
