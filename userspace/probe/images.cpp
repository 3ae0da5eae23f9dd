// SPDX-License-Identifier: Apache-2.0
#include "probe/images.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "base/fd.h"
#include "identify/inflate.h"
#include "identify/scan.h"

namespace gpuwatch::probe {

namespace {

using identify::Compression;
using identify::Image;
using identify::Kind;

// Higher is better; 0: this GPU does not take it.
std::uint32_t rank(const Image& image, std::uint32_t sm) {
  if (!image.error.empty() || image.opaque) return 0;
  if (image.kind == Kind::kPtx) return image.sm <= sm ? 1 + image.sm : 0;
  if (image.kind != Kind::kElf || image.sm > sm || image.sm / 10 != sm / 10) return 0;
  if (image.sm_suffix == 'a' && image.sm != sm) return 0;
  return 10'000 + 2 * image.sm + (image.sm_suffix != 0 ? 1 : 0);
}

LoadableImage take(const identify::ByteSource& source, const Image& image, const identify::Limits& limits) {
  LoadableImage out;
  out.ptx = image.kind == Kind::kPtx;
  out.label = image.in_container ? "entry " + std::to_string(image.entry) + " of container at " +
                                       std::to_string(image.container_offset)
                                 : "image at " + std::to_string(image.offset);
  const bool packed = image.compression != Compression::kNone;
  const std::uint64_t stored = packed ? image.compressed_bytes : image.stored_bytes;
  const std::uint64_t bytes = packed ? image.bytes : stored;
  if (stored > limits.image_bytes || bytes > limits.image_bytes) {
    out.error = "larger than an image may be";
    return out;
  }
  std::vector<std::uint8_t> raw(stored);
  if (source.read(image.offset, raw) != stored) {
    out.error = "file ends early";
    return out;
  }
  if (packed) {
    out.bytes.resize(bytes);
    out.error = identify::inflate(image.compression, raw, out.bytes);
  } else {
    out.bytes = std::move(raw);
  }
  if (out.ptx) out.bytes.push_back(0);
  return out;
}

}  // namespace

std::vector<LoadableImage> images_for(const identify::ByteSource& source, std::uint32_t sm) {
  const identify::Limits limits;
  const identify::Scan scan = identify::scan(source, limits);
  std::map<std::uint64_t, std::uint32_t> best;
  for (const Image& image : scan.images) {
    std::uint32_t& value = best[image.container_offset];
    value = std::max(value, rank(image, sm));
  }
  std::vector<LoadableImage> out;
  for (const Image& image : scan.images) {
    const std::uint32_t value = rank(image, sm);
    if (value != 0 && value == best[image.container_offset]) out.push_back(take(source, image, limits));
  }
  return out;
}

base::Result<std::vector<LoadableImage>> images_of_file(const std::string& path, std::uint32_t sm) {
  const base::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return base::Error::from_errno(path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return base::Error::from_errno(path);
  if (!S_ISREG(info.st_mode)) return base::Error(base::Code::kBadInput, path + " is not a regular file");
  return images_for(identify::FileSource(fd.get(), static_cast<std::uint64_t>(info.st_size)), sm);
}

}  // namespace gpuwatch::probe
