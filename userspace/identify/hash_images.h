// SPDX-License-Identifier: Apache-2.0
// From images in a file to modules: reads stored bytes, inflates, hashes. Runs
// in the worker process; in the caller's own only where the caller asks for it.
#pragma once

#include <span>
#include <vector>

#include "identify/container.h"
#include "identify/image.h"
#include "identify/inflate.h"
#include "identify/limits.h"
#include "identify/sha256.h"

namespace gpuwatch::identify {

class ImageHasher {
 public:
  explicit ImageHasher(const Limits& limits, HashBatch::Engine engine = HashBatch::Engine::kBest)
      : limits_(limits), batch_(engine) {}

  // SHA-256 of the stored bytes, padding included.
  std::vector<Digest> stored(const ByteSource& source, std::span<const Image> images);

  // Modules of images, in their order. Memory: the sum of what they take
  // stored and inflated, see working_bytes().
  std::vector<Module> modules(const ByteSource& source, std::span<const Image> images);

 private:
  Limits limits_;
  HashBatch batch_;
  PageBuffer stored_;
  PageBuffer inflated_;
  PageBuffer normal_;
};

// How much one call of modules() should be given. Long sequences are hashed
// beside many short ones: a group that is small against its largest image
// leaves most of the processor's lanes empty.
inline constexpr std::uint64_t kGroupBytes = 48 << 20;  // by working_bytes()
inline constexpr std::size_t kGroupImages = 512;

// Memory that hashing an image takes.
std::uint64_t working_bytes(const Image& image);

}  // namespace gpuwatch::identify
