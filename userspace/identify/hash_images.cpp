// SPDX-License-Identifier: Apache-2.0
#include "identify/hash_images.h"

#include <algorithm>

#include "identify/cubin.h"
#include "identify/ptx.h"

namespace gpuwatch::identify {

namespace {

// Images begin on cache lines: the hash unit then reads whole ones.
std::uint64_t aligned(std::uint64_t size) {
  return (size + 63) & ~std::uint64_t{63};
}

bool needs_inflating(const Image& image) {
  return image.error.empty() && !image.opaque && image.compression != Compression::kNone;
}

constexpr std::uint64_t kStoredGroup = 8 << 20;

// Too long to be held: only its bytes as they are get hashed, piece by piece.
bool in_pieces(const Image& image, const Limits& limits) {
  return (image.opaque || !image.error.empty()) && image.stored_bytes > limits.image_bytes;
}

Digest sha256_of(const ByteSource& source, std::uint64_t offset, std::uint64_t size) {
  Sha256 hash;
  std::vector<std::uint8_t> piece(1 << 20);
  while (size > 0) {
    const std::size_t got = source.read(offset, std::span(piece).first(std::min<std::uint64_t>(piece.size(), size)));
    if (got == 0) break;
    hash.update(Bytes(piece).first(got));
    offset += got;
    size -= got;
  }
  return hash.finish();
}

}  // namespace

std::uint64_t working_bytes(const Image& image) {
  return aligned(image.stored_bytes) + (needs_inflating(image) ? aligned(image.bytes) : 0);
}

std::vector<Digest> ImageHasher::stored(const ByteSource& source, std::span<const Image> images) {
  std::vector<Digest> out;
  out.reserve(images.size());
  while (!images.empty()) {
    if (images.front().stored_bytes > 8 * kStoredGroup) {
      out.push_back(sha256_of(source, images.front().offset, images.front().stored_bytes));
      images = images.subspan(1);
      continue;
    }
    std::uint64_t total = 0;
    std::size_t count = 0;
    while (count < images.size() && (count == 0 || total + aligned(images[count].stored_bytes) <= kStoredGroup))
      total += aligned(images[count++].stored_bytes);
    if (!stored_.reserve(total)) return out;
    batch_.clear();
    std::uint64_t at = 0;
    for (const Image& image : images.first(count)) {
      const std::size_t got = source.read(image.offset, stored_.span().subspan(at, image.stored_bytes));
      batch_.begin();
      batch_.add(stored_.bytes().subspan(at, got));
      at += aligned(image.stored_bytes);
    }
    batch_.run();
    for (std::size_t i = 0; i < count; ++i) out.push_back(batch_.result(i));
    images = images.subspan(count);
  }
  return out;
}

std::vector<Module> ImageHasher::modules(const ByteSource& source, std::span<const Image> images) {
  constexpr std::size_t kNone = ~std::size_t{0};
  struct Plan {
    std::size_t r = kNone;  // numbers in batch_
    std::size_t p = kNone;
    CubinPlan cubin;
  };
  std::vector<Module> modules(images.size());
  std::vector<Plan> plans(images.size());
  std::uint64_t stored_total = 0;
  std::uint64_t inflated_total = 0;
  std::uint64_t normal_total = 0;  // PTX
  for (const Image& image : images) {
    if (in_pieces(image, limits_)) continue;
    // Compressed bytes are needed until they are inflated, others to the end.
    if (needs_inflating(image)) {
      stored_total = std::max(stored_total, aligned(image.stored_bytes));
      inflated_total += aligned(image.bytes);
    } else {
      inflated_total += aligned(image.stored_bytes);
    }
    if (image.kind == Kind::kPtx && !image.opaque && image.error.empty())
      normal_total += aligned(ptx_normal_room(needs_inflating(image) ? image.bytes : image.stored_bytes));
  }
  if (!stored_.reserve(stored_total) || !inflated_.reserve(inflated_total) || !normal_.reserve(normal_total)) {
    for (Module& module : modules) module.errors.push_back("out of memory");
    return modules;
  }

  batch_.clear();
  std::uint64_t at = 0;
  std::uint64_t normal_at = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const Image& image = images[i];
    Module& module = modules[i];
    Plan& plan = plans[i];
    module.kind = image.kind;
    module.sm = image.sm;
    std::string error = image.error;
    bool opaque = image.opaque || !error.empty();
    Bytes bytes;
    if (in_pieces(image, limits_)) {
      module.errors.push_back(error.empty() ? "declared size" : error);
      module.bytes = image.stored_bytes;
      module.r = sha256_of(source, image.offset, image.stored_bytes);
      continue;
    }
    if (needs_inflating(image)) {
      const std::uint64_t want = image.compressed_bytes;
      const std::size_t got = source.read(image.offset, stored_.span().first(want));
      const std::span<std::uint8_t> out = inflated_.span().subspan(at, image.bytes);
      if (got == want)
        error = inflate(image.compression, stored_.bytes().first(want), out);
      else
        error = "file ends early";
      if (error.empty()) {
        bytes = out;
      } else {
        // The place was made for the inflated image; it may be too small.
        opaque = true;
        const std::size_t room = std::min<std::uint64_t>(image.stored_bytes, stored_.size());
        bytes = stored_.bytes().first(source.read(image.offset, stored_.span().first(room)));
        module.errors.push_back(error);
        module.bytes = bytes.size();
        module.r = sha256(bytes);
        continue;
      }
      at += aligned(image.bytes);
    } else {
      const std::size_t got = source.read(image.offset, inflated_.span().subspan(at, image.stored_bytes));
      bytes = inflated_.bytes().subspan(at, got);
      if (got < image.stored_bytes && error.empty()) error = "file ends early";
      at += aligned(image.stored_bytes);
    }
    if (!error.empty()) module.errors.push_back(error);
    module.bytes = bytes.size();
    if (image.kind == Kind::kPtx && !opaque) bytes = ptx_text(bytes);
    plan.r = batch_.begin();
    batch_.add(bytes);
    if (opaque) continue;
    if (image.kind == Kind::kElf) {
      plan.cubin.plan(bytes, limits_, batch_, module);
      if (module.sm == 0) module.sm = image.sm;
    } else if (image.kind == Kind::kPtx) {
      if (module.sm == 0) module.sm = find_ptx_header(bytes).sm;
      const std::uint64_t room = aligned(ptx_normal_room(bytes.size()));
      const std::size_t size = ptx_normal_form(bytes, normal_.span().subspan(normal_at, room));
      plan.p = batch_.begin();
      batch_.add(normal_.bytes().subspan(normal_at, size));
      normal_at += room;
    }
  }
  batch_.run();
  for (std::size_t i = 0; i < images.size(); ++i) {
    Module& module = modules[i];
    if (plans[i].r != kNone) module.r = batch_.result(plans[i].r);
    if (plans[i].p != kNone) module.p = batch_.result(plans[i].p);
    plans[i].cubin.finish(batch_, module);
  }
  return modules;
}

}  // namespace gpuwatch::identify
