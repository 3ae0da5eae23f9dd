// SPDX-License-Identifier: Apache-2.0
#include "source/kept_images.h"

#include <zstd.h>

#include <cstring>

#include "source/gwcap_format.h"

namespace gpuwatch::source {

using base::Code;
using base::Error;
using base::Result;

void KeptImages::drop(std::map<std::uint64_t, Image>::iterator image) {
  kept_ -= image->second.kept;
  images_.erase(image);
}

void KeptImages::add(std::span<const std::byte> stored, std::uint32_t raw_bytes) {
  ImagePieceHead head{};
  if (stored.size() <= sizeof head) return;
  std::memcpy(&head, stored.data(), sizeof head);
  if (head.id == 0 || head.bytes > kGwcapImageMax || raw_bytes == 0) return;
  const auto frame = stored.subspan(sizeof head);
  const std::lock_guard hold(lock_);
  Image& image = images_[head.id];
  if (head.at == 0 && image.pieces.empty()) image.bytes = head.bytes;
  // Out of order, or of another size than said before: it can't be whole.
  if (head.at != image.next_at || head.bytes != image.bytes || raw_bytes > image.bytes - head.at) {
    drop(images_.find(head.id));
    return;
  }
  image.pieces.push_back({head.at, raw_bytes, {frame.begin(), frame.end()}});
  image.next_at += raw_bytes;
  image.kept += frame.size();
  kept_ += frame.size();
  while (kept_ > kGwcapKeptMax && images_.size() > 1) drop(images_.begin());
}

Result<std::vector<std::byte>> KeptImages::take(std::uint64_t id) {
  Image image;
  {
    const std::lock_guard hold(lock_);
    const auto found = images_.find(id);
    if (found == images_.end())
      return Error(Code::kNotFound, "image " + std::to_string(id) + " is not in the file, or was left out of memory");
    image = std::move(found->second);
    drop(found);
  }
  if (image.next_at != image.bytes)
    return Error(Code::kBadInput, "image " + std::to_string(id) + " ends after " + std::to_string(image.next_at) +
                                      " of " + std::to_string(image.bytes) + " bytes");
  std::vector<std::byte> bytes(image.bytes);
  for (const Piece& piece : image.pieces) {
    const std::size_t n =
        ZSTD_decompress(bytes.data() + piece.at, piece.raw_bytes, piece.frame.data(), piece.frame.size());
    if (ZSTD_isError(n) != 0 || n != piece.raw_bytes)
      return Error(Code::kBadInput, "image " + std::to_string(id) + ": its piece at byte " + std::to_string(piece.at) +
                                        " does not decompress");
  }
  return bytes;
}

}  // namespace gpuwatch::source
