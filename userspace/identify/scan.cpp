// SPDX-License-Identifier: Apache-2.0
#include "identify/scan.h"

#include <algorithm>
#include <cstring>

#include "identify/cubin.h"
#include "identify/elf.h"
#include "identify/ptx.h"
#include "identify/sections.h"

namespace gpuwatch::identify {

namespace {

constexpr std::size_t kWindow = 1 << 20;
constexpr std::size_t kOverlap = 256;                  // what a check of a mark may need behind it
constexpr std::uint64_t kElfIdent = 0x010102464c457f;  // \177ELF, 64 bits, little endian, version 1
constexpr std::uint64_t kElfIdentMask = 0xffffffffffffff;

class Scanner {
 public:
  Scanner(const ByteSource& source, const Limits& limits, Scan& out)
      : source_(source), limits_(limits), out_(out), window_(kWindow + kOverlap) {}

  void run(const std::function<void(std::uint64_t)>& progress) {
    std::uint64_t at = whole_file();
    while (at < source_.size()) {
      const std::size_t got = source_.read(at, window_);
      if (got == 0) {
        out_.errors.push_back("file ends early, at " + std::to_string(at));
        break;
      }
      at = window(at, Bytes(window_).first(got));
      if (progress) progress(std::min(at, source_.size()));
    }
    std::sort(out_.images.begin(), out_.images.end(),
              [](const Image& a, const Image& b) { return a.offset < b.offset; });
  }

 private:
  // What the file itself claims to be at its start is taken at its word, so
  // that a broken header is reported and not skipped. Gives the end of it.
  std::uint64_t whole_file() {
    std::uint8_t head[kElfHeader];
    const std::size_t got = source_.read(0, head);
    if (got >= kContainerHeader && load<std::uint32_t>(head, 0) == kContainerMagic) return container(0);
    if (got >= 20 && std::memcmp(head, "\177ELF", 4) == 0) {
      // In whichever byte order: one that lies about its own is to be named, too.
      const int little = head[19] << 8 | head[18];
      const int big = head[18] << 8 | head[19];
      if (little != kMachineCuda && big != kMachineCuda) return 0;
      const std::uint64_t size = cubin_extent(0).value_or(source_.size());
      raw(Kind::kElf, 0, size, cubin_sm({head, got}), 0);
      return (size + 7) & ~std::uint64_t{7};
    }
    return 0;
  }

  std::uint64_t window(std::uint64_t base, Bytes bytes) {
    const bool last = base + bytes.size() >= source_.size();
    const std::size_t end = last ? bytes.size() : bytes.size() - kOverlap;
    std::size_t mark = next_mark(bytes, 0);
    std::size_t at = (8 - base % 8) % 8;
    while (at < end) {
      // Most words are neither: this loop is the scan's speed.
      while (at + 8 <= bytes.size() && mark >= at + 8 && !interesting(load<std::uint64_t>(bytes, at))) at += 8;
      if (at >= end) break;
      std::uint64_t next = 0;
      if (at + 8 <= bytes.size()) {
        const auto word = load<std::uint64_t>(bytes, at);
        if (static_cast<std::uint32_t>(word) == kContainerMagic && container_plausible(source_, base + at))
          next = container(base + at);
        else if ((word & kElfIdentMask) == kElfIdent)
          next = cubin(base + at);
      }
      if (next == 0 && mark < at + 8 && mark < end) {
        next = text(base, bytes, mark);
        mark = next_mark(bytes, mark + 1);
        if (next == 0) continue;  // there may be another in this word
      }
      if (next == 0) {
        at += 8;
        continue;
      }
      next = std::max(next, base + at + 8);
      if (next >= base + end) return next;
      at = static_cast<std::size_t>(((next + 7) & ~std::uint64_t{7}) - base);
      if (mark < next - base) mark = next_mark(bytes, static_cast<std::size_t>(next - base));
    }
    return base + end;
  }

  static bool interesting(std::uint64_t word) {
    return static_cast<std::uint32_t>(word) == kContainerMagic || (word & kElfIdentMask) == kElfIdent;
  }

  static std::size_t next_mark(Bytes bytes, std::size_t from) {
    if (from >= bytes.size()) return ~std::size_t{0};
    const void* found = ::memmem(bytes.data() + from, bytes.size() - from, kPtxMark.data(), kPtxMark.size());
    return found == nullptr ? ~std::size_t{0}
                            : static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - bytes.data());
  }

  std::uint64_t container(std::uint64_t offset) {
    std::uint64_t end = 0;
    out_.containers.push_back(walk_container(source_, offset, limits_, out_.images, end));
    return end;
  }

  // Size of the cubin at `offset` by its header tables, if they fit.
  std::optional<std::uint64_t> cubin_extent(std::uint64_t offset) {
    std::uint8_t head[kElfHeader];
    if (source_.read(offset, head) < sizeof head) return std::nullopt;
    const std::uint64_t room = source_.size() - offset;
    const auto phoff = load<std::uint64_t>(head, 32);
    const auto shoff = load<std::uint64_t>(head, 40);
    const std::uint64_t phsize = 56ull * load<std::uint16_t>(head, 56);
    const std::uint64_t shsize = 64ull * load<std::uint16_t>(head, 60);
    if (load<std::uint16_t>(head, 18) != kMachineCuda || (head[7] != 0x33 && head[7] != 0x41) ||
        load<std::uint16_t>(head, 52) != kElfHeader || load<std::uint16_t>(head, 58) != 64 || shsize == 0 ||
        !fits(shoff, shsize, room) || (phsize != 0 && !fits(phoff, phsize, room)))
      return std::nullopt;
    return std::max(shoff + shsize, phsize != 0 ? phoff + phsize : 0);
  }

  std::uint64_t cubin(std::uint64_t offset) {
    const auto size = cubin_extent(offset);
    if (!size) return 0;
    std::uint8_t head[kElfHeader];
    if (source_.read(offset, head) < sizeof head) return 0;
    raw(Kind::kElf, offset, *size, cubin_sm(head), 0);
    return offset + *size;
  }

  std::uint64_t text(std::uint64_t base, Bytes bytes, std::size_t at) {
    const auto header = ptx_header(bytes.subspan(at));
    if (!header) return 0;
    const std::uint64_t start = base + at - lead(base, bytes, at);
    const std::uint64_t end = text_end(base + at);
    raw(Kind::kPtx, start, end - start, header->sm, header->suffix);
    return end;
  }

  std::size_t lead(std::uint64_t base, Bytes bytes, std::size_t at) {
    constexpr std::size_t kBefore = 4096;
    const std::uint64_t mark = base + at;
    std::uint64_t floor = mark > kBefore ? mark - kBefore : 0;
    if (!out_.images.empty()) {
      const Image& previous = out_.images.back();
      floor = std::max(floor, std::min(mark, previous.offset + previous.stored_bytes));
    }
    if (floor >= base) return ptx_lead(bytes.subspan(floor - base, mark - floor));
    std::vector<std::uint8_t> before(mark - floor);
    before.resize(source_.read(floor, before));
    return ptx_lead(before);
  }

  // The first NUL, or the limit.
  std::uint64_t text_end(std::uint64_t from) const {
    std::vector<std::uint8_t> piece(64 << 10);
    const std::uint64_t stop = from + std::min(limits_.ptx_bytes, source_.size() - from);
    for (std::uint64_t at = from; at < stop;) {
      const std::size_t want = std::min<std::uint64_t>(piece.size(), stop - at);
      const std::size_t got = source_.read(at, std::span(piece).first(want));
      if (got == 0) return at;
      if (const void* nul = std::memchr(piece.data(), 0, got))
        return at + static_cast<std::uint64_t>(static_cast<const std::uint8_t*>(nul) - piece.data());
      at += got;
    }
    return stop;
  }

  void raw(Kind kind, std::uint64_t offset, std::uint64_t size, std::uint32_t sm, char suffix) {
    if (out_.images.size() >= limits_.entries) return;
    Image image;
    image.kind = kind;
    image.sm = sm;
    image.sm_suffix = suffix;
    image.container_offset = offset;
    image.offset = offset;
    image.stored_bytes = size;
    image.bytes = size;
    if (size > limits_.image_bytes) image.error = "declared size";
    out_.images.push_back(std::move(image));
  }

  const ByteSource& source_;
  const Limits& limits_;
  Scan& out_;
  std::vector<std::uint8_t> window_;
};

// What all images together may inflate to.
void bound_total(Scan& out, std::uint64_t file_size, const Limits& limits) {
  std::uint64_t total = 0;
  const std::uint64_t most =
      std::min(limits.file_inflated_bytes,
               file_size > ~std::uint64_t{0} / limits.ratio ? ~std::uint64_t{0} : file_size * limits.ratio);
  for (Image& image : out.images) {
    if (!image.error.empty() || image.opaque) continue;
    if (image.bytes > most - total)
      image.error = "declared size: all images together";
    else
      total += image.bytes;
  }
}

}  // namespace

Scan scan(const ByteSource& source, const Limits& limits, const std::function<void(std::uint64_t)>& progress) {
  Scan out;
  Scanner(source, limits, out).run(progress);
  bound_total(out, source.size(), limits);
  name_sections(source, out.containers);
  return out;
}

}  // namespace gpuwatch::identify
