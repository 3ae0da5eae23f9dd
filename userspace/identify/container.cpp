// SPDX-License-Identifier: Apache-2.0
#include "identify/container.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace gpuwatch::identify {

namespace {

constexpr std::uint64_t kFlagLz4 = 0x2000;
constexpr std::uint64_t kFlagZstd = 0x8000;
constexpr std::uint64_t kFlagScrambled = 0x10000;
constexpr std::uint64_t kFlagSuffixA = 0x100000;
constexpr std::uint64_t kFlagSuffixF = 0x200000;
constexpr std::uint16_t kEntryVersion = 0x0101;
constexpr std::size_t kTextMax = 4096;  // identifier, options

Kind kind_of(std::uint16_t raw) {
  switch (raw) {
    case 1:
      return Kind::kPtx;
    case 2:
      return Kind::kElf;
    case 8:
      return Kind::kLtoIr;
    default:
      return Kind::kOther;
  }
}

// Text at `at` from the entry's start, inside its header or not at all.
std::string header_text(const ByteSource& source, std::uint64_t entry, std::uint32_t header, std::uint64_t at,
                        std::uint64_t length) {
  if (at < kEntryHeader || length == 0 || length > kTextMax || !fits(at, length, header)) return {};
  std::string text(length, '\0');
  text.resize(source.read(entry + at, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()}));
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

// What is wrong with the sizes, in the words that reports use; empty: nothing.
std::string size_error(const Image& image, std::uint64_t flags, const Limits& limits) {
  if ((flags & kFlagLz4) != 0 && (flags & kFlagZstd) != 0) return "both compression bits";
  if (image.compression != Compression::kNone) {
    if (image.compressed_bytes == 0 || image.compressed_bytes > image.stored_bytes) return "compressed size";
    if (image.bytes / limits.ratio > image.compressed_bytes) return "declared size";
  }
  return image.bytes > limits.image_bytes ? "declared size" : "";
}

}  // namespace

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::kElf:
      return "elf";
    case Kind::kPtx:
      return "ptx";
    case Kind::kLtoIr:
      return "ltoir";
    default:
      return "other";
  }
}

std::size_t MemorySource::read(std::uint64_t offset, std::span<std::uint8_t> out) const {
  if (offset >= bytes_.size()) return 0;
  const std::size_t n = std::min<std::uint64_t>(out.size(), bytes_.size() - offset);
  if (n != 0) std::memcpy(out.data(), bytes_.data() + offset, n);
  return n;
}

std::size_t FileSource::read(std::uint64_t offset, std::span<std::uint8_t> out) const {
  std::size_t done = 0;
  while (done < out.size() && offset + done < size_) {
    const std::size_t want = std::min<std::uint64_t>(out.size() - done, size_ - offset - done);
    const ssize_t got = ::pread(fd_, out.data() + done, want, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

bool container_plausible(const ByteSource& source, std::uint64_t offset) {
  std::uint8_t head[kContainerHeader + kEntryHeader];
  const std::size_t got = source.read(offset, head);
  if (got < kContainerHeader || load<std::uint32_t>(head, 0) != kContainerMagic) return false;
  const bool key = load<std::uint64_t>(head, 0) == kContainerKey;
  const auto body = load<std::uint64_t>(head, 8);
  if (key && body == 0) return true;
  if (got < sizeof head) return false;
  const auto kind = load<std::uint16_t>(head, kContainerHeader);
  const auto version = load<std::uint16_t>(head, kContainerHeader + 2);
  const auto header = load<std::uint32_t>(head, kContainerHeader + 4);
  const bool entry = version == kEntryVersion && header >= kEntryHeader && header <= (1u << 20);
  // A container whose sizes lie is still shown when its first entry is one.
  if (key)
    return entry || (fits(kContainerHeader, body, source.size() - offset) && header >= kEntryHeader &&
                     fits(header, load<std::uint64_t>(head, kContainerHeader + 8), body));
  return entry && kind_of(kind) != Kind::kOther;
}

Container walk_container(const ByteSource& source, std::uint64_t offset, const Limits& limits,
                         std::vector<Image>& images, std::uint64_t& end) {
  Container container;
  container.offset = offset;
  const std::uint64_t rest = source.size() - offset;
  end = offset + 8;

  std::uint8_t head[kContainerHeader];
  if (source.read(offset, head) < sizeof head) {
    container.size = rest;
    container.errors.push_back("container header cut");
    return container;
  }
  const auto version = load<std::uint16_t>(head, 4);
  const auto header = load<std::uint16_t>(head, 6);
  const auto body = load<std::uint64_t>(head, 8);
  container.size = std::min<std::uint64_t>(header, rest);
  if (version != 1) container.errors.push_back("container version " + std::to_string(version));
  if (header < kContainerHeader) {
    container.errors.push_back("container header size " + std::to_string(header));
    return container;
  }
  container.size = rest;
  if (header > rest || body > rest - header) {
    // How far past may itself not fit 64 bits; then the largest number says enough.
    const std::uint64_t room = header > rest ? 0 : rest - header;
    const std::uint64_t extra = header > rest ? header - rest : 0;
    const std::uint64_t past = body - std::min(body, room);
    container.errors.push_back("body past end by " + std::to_string(past > ~extra ? ~std::uint64_t{0} : past + extra));
  } else {
    container.size = header + body;
  }

  std::uint64_t at = header;
  bool broken = container.size < header;
  while (!broken && at < container.size) {
    const std::uint64_t left = container.size - at;
    if (left < kEntryHeader) {
      container.errors.push_back("tail " + std::to_string(left) + " bytes");
      broken = true;
      break;
    }
    std::uint8_t entry[kEntryHeader];
    if (source.read(offset + at, entry) < sizeof entry) {
      container.errors.push_back("file ends early");
      broken = true;
      break;
    }
    const auto entry_header = load<std::uint32_t>(entry, 4);
    const auto payload = load<std::uint64_t>(entry, 8);
    if (entry_header < kEntryHeader || entry_header > left || payload > left - entry_header) {
      char place[32];
      std::snprintf(place, sizeof place, "0x%llx", static_cast<unsigned long long>(at));
      container.errors.push_back("entry at +" + std::string(place) + ": header " + std::to_string(entry_header) +
                                 " payload " + std::to_string(payload) + " past end");
      broken = true;
      break;
    }
    if (images.size() >= limits.entries) {
      container.errors.push_back("more than " + std::to_string(limits.entries) + " entries");
      broken = true;
      break;
    }
    Image image;
    image.in_container = true;
    image.entry = static_cast<std::uint32_t>(container.images++);
    image.raw_kind = load<std::uint16_t>(entry, 0);
    image.kind = load<std::uint16_t>(entry, 2) == kEntryVersion || kind_of(image.raw_kind) != Kind::kOther
                     ? kind_of(image.raw_kind)
                     : Kind::kOther;
    image.flags = load<std::uint64_t>(entry, 40);
    image.sm = load<std::uint32_t>(entry, 28);
    image.sm_suffix = (image.flags & kFlagSuffixA) != 0 ? 'a' : (image.flags & kFlagSuffixF) != 0 ? 'f' : '\0';
    image.version_minor = load<std::uint16_t>(entry, 24);
    image.version_major = load<std::uint16_t>(entry, 26);
    image.container_offset = offset;
    image.offset = offset + at + entry_header;
    image.stored_bytes = payload;
    image.opaque = image.kind == Kind::kOther || (image.kind == Kind::kLtoIr && (image.flags & kFlagScrambled) != 0);
    if ((image.flags & kFlagLz4) != 0) image.compression = Compression::kLz4;
    if ((image.flags & kFlagZstd) != 0) image.compression = Compression::kZstd;
    if (image.compression != Compression::kNone) {
      image.compressed_bytes = load<std::uint32_t>(entry, 16);
      image.bytes = load<std::uint64_t>(entry, 56);
    } else {
      image.bytes = payload;
    }
    image.identifier =
        header_text(source, offset + at, entry_header, load<std::uint32_t>(entry, 32), load<std::uint32_t>(entry, 36));
    const auto options = load<std::uint32_t>(entry, 20);
    std::uint8_t block[8];
    if (options >= kEntryHeader && fits(options, sizeof block, entry_header) &&
        source.read(offset + at + options, block) == sizeof block && image.kind != Kind::kElf)
      image.options =
          header_text(source, offset + at, entry_header, load<std::uint32_t>(block, 0), load<std::uint32_t>(block, 4));
    image.error = size_error(image, image.flags, limits);
    images.push_back(std::move(image));
    at += entry_header + payload;
  }
  if (broken && container.size > at) {
    container.unparsed_offset = offset + at;
    container.unparsed_bytes = container.size - at;
  }
  // A body that lies about its length hides nothing behind it: the scan goes on
  // after the entries that were good.
  const std::uint64_t walked = container.errors.empty() ? container.size : std::min(at, container.size);
  if (walked > 0) end = offset + std::max<std::uint64_t>((walked + 7) & ~std::uint64_t{7}, 8);
  return container;
}

}  // namespace gpuwatch::identify
