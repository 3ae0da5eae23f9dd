// SPDX-License-Identifier: Apache-2.0
// ImageBytes: the bytes of one captured module image, in memory of its own or
// mapped from the kernel module. Whoever holds it may read it, from a child
// process too; they are hostile bytes, nothing here looks at them.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace gpuwatch::source {

class ImageBytes {
 public:
  ImageBytes() = default;
  explicit ImageBytes(std::vector<std::byte> bytes) : own_(std::move(bytes)) {}
  // Takes a mapping of `length` bytes, and the descriptor it came from.
  ImageBytes(void* mapping, std::size_t length, base::Fd fd) : mapping_(mapping), length_(length), fd_(std::move(fd)) {}
  ImageBytes(ImageBytes&& other) noexcept
      : own_(std::move(other.own_)),
        mapping_(std::exchange(other.mapping_, nullptr)),
        length_(std::exchange(other.length_, 0)),
        fd_(std::move(other.fd_)) {}
  ImageBytes& operator=(ImageBytes&& other) noexcept {
    std::swap(own_, other.own_);
    std::swap(mapping_, other.mapping_);
    std::swap(length_, other.length_);
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~ImageBytes() {
    if (mapping_ != nullptr) ::munmap(mapping_, length_);
  }

  std::span<const std::byte> bytes() const {
    if (mapping_ != nullptr) return {static_cast<const std::byte*>(mapping_), length_};
    return own_;
  }

  // A descriptor with the same bytes, to pass to another process; -1 where the
  // bytes came from a file.
  int fd() const { return fd_.get(); }

 private:
  std::vector<std::byte> own_;
  void* mapping_ = nullptr;
  std::size_t length_ = 0;
  base::Fd fd_;
};

}  // namespace gpuwatch::source
