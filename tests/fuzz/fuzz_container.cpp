// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes as a file that may hold GPU code: scan, containers,
// entries, codecs and hashes, as a worker does it, with small limits. Whatever
// is found lies inside of the file, in order, and within what may be spent.
#include <cstdlib>
#include <vector>

#include "identify/hash_images.h"
#include "identify/scan.h"

using namespace gpuwatch::identify;

namespace {

void must(bool good) {
  if (!good) std::abort();
}

bool inside(std::uint64_t offset, std::uint64_t size, std::uint64_t whole) {
  return offset <= whole && size <= whole - offset;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of the exact size lets the address sanitizer see any overrun.
  const std::vector<std::uint8_t> copy(data, data + size);
  const MemorySource source(copy);
  Limits limits;
  limits.image_bytes = 1 << 20;
  limits.file_inflated_bytes = 4 << 20;
  limits.entries = 1000;
  const Scan found = scan(source, limits);

  std::uint64_t at = 0;
  for (const Container& container : found.containers) {
    must(container.offset >= at && inside(container.offset, container.size, size));
    if (container.unparsed_bytes != 0) must(inside(container.unparsed_offset, container.unparsed_bytes, size));
    at = container.offset + 1;
  }
  must(found.images.size() <= limits.entries);
  at = 0;
  std::uint64_t inflated = 0;
  for (const Image& image : found.images) {
    must(image.offset >= at && inside(image.offset, image.stored_bytes, size));
    at = image.offset + image.stored_bytes;
    if (!image.error.empty() || image.opaque) continue;
    must(image.bytes <= limits.image_bytes);
    if (image.compression != Compression::kNone) must(image.bytes / limits.ratio <= image.compressed_bytes);
    inflated += image.bytes;
  }
  must(inflated <= limits.file_inflated_bytes);

  ImageHasher hasher(limits);
  must(hasher.stored(source, found.images).size() == found.images.size());
  const std::vector<Module> modules = hasher.modules(source, found.images);
  must(modules.size() == found.images.size());
  for (std::size_t i = 0; i < modules.size(); ++i) {
    // Each image has its identity, or says why that is of its stored bytes.
    must(modules[i].r != Digest{});
    if (!found.images[i].error.empty()) must(!modules[i].errors.empty());
  }
  return 0;
}
