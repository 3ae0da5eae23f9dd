// SPDX-License-Identifier: Apache-2.0
#include "probe/images.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>

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

std::vector<Image> chosen(const identify::ByteSource& source, std::uint32_t sm) {
  identify::Scan scan = identify::scan(source, identify::Limits{});
  std::map<std::uint64_t, std::uint32_t> best;
  for (const Image& image : scan.images) {
    std::uint32_t& value = best[image.container_offset];
    value = std::max(value, rank(image, sm));
  }
  std::vector<Image> out;
  for (Image& image : scan.images) {
    const std::uint32_t value = rank(image, sm);
    if (value != 0 && value == best[image.container_offset]) out.push_back(std::move(image));
  }
  return out;
}

}  // namespace

base::Result<ImageFile> ImageFile::open(const std::string& path, std::uint32_t sm, bool ptx) {
  ImageFile file;
  file.fd_ = base::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.fd_.valid()) return base::Error::from_errno(path);
  struct stat info {};
  if (::fstat(file.fd_.get(), &info) != 0) return base::Error::from_errno(path);
  if (!S_ISREG(info.st_mode)) return base::Error(base::Code::kBadInput, path + " is not a regular file");
  file.bytes_ = static_cast<std::uint64_t>(info.st_size);
  file.images_ = chosen(identify::FileSource(file.fd_.get(), file.bytes_), sm);
  auto& images = file.images_;
  const auto first_ptx =
      std::stable_partition(images.begin(), images.end(), [](const Image& image) { return image.kind != Kind::kPtx; });
  if (!ptx) {
    file.left_out_ = static_cast<std::size_t>(images.end() - first_ptx);
    images.erase(first_ptx, images.end());
  }
  return file;
}

LoadableImage ImageFile::take(std::size_t number) const {
  return probe::take(identify::FileSource(fd_.get(), bytes_), images_[number], identify::Limits{});
}

std::vector<LoadableImage> images_for(const identify::ByteSource& source, std::uint32_t sm) {
  std::vector<LoadableImage> out;
  for (const Image& image : chosen(source, sm)) out.push_back(take(source, image, identify::Limits{}));
  return out;
}

base::Result<std::vector<LoadableImage>> images_of_file(const std::string& path, std::uint32_t sm) {
  auto file = ImageFile::open(path, sm);
  if (!file.ok()) return file.error();
  std::vector<LoadableImage> out;
  for (std::size_t i = 0; i < file->size(); ++i) out.push_back(file->take(i));
  return out;
}

}  // namespace gpuwatch::probe
