// SPDX-License-Identifier: Apache-2.0
// Fatbin containers: headers and entries, nothing of what the entries hold. A
// header that does not fit ends its container and is named; entries before it
// stay good. Nothing here reads past the span or follows a size backwards.
#pragma once

#include <string>
#include <vector>

#include "identify/bytes.h"
#include "identify/image.h"
#include "identify/limits.h"

namespace gpuwatch::identify {

inline constexpr std::uint32_t kContainerMagic = 0xBA55ED50;
inline constexpr std::uint64_t kContainerKey = 0x00100001BA55ED50;  // magic, version 1, header 16
inline constexpr std::size_t kContainerHeader = 16;
inline constexpr std::size_t kEntryHeader = 64;

// Gives bytes of a file: a short answer means its end. Headers are small, so
// the walker reads little of a large file.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  // Fills `out` from `offset` as far as the file goes; gives the count.
  virtual std::size_t read(std::uint64_t offset, std::span<std::uint8_t> out) const = 0;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(Bytes bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  std::size_t read(std::uint64_t offset, std::span<std::uint8_t> out) const override;

 private:
  Bytes bytes_;
};

// One that holds a descriptor, by pread: a file that shrinks meanwhile gives
// short answers instead of a signal.
class FileSource : public ByteSource {
 public:
  FileSource(int fd, std::uint64_t size) : fd_(fd), size_(size) {}
  std::uint64_t size() const override { return size_; }
  std::size_t read(std::uint64_t offset, std::span<std::uint8_t> out) const override;

 private:
  int fd_;
  std::uint64_t size_;
};

// Does a container plausibly start at `offset`? For places that only a scan
// found: the key or the magic is not enough.
bool container_plausible(const ByteSource& source, std::uint64_t offset);

// Walks the container at `offset`, which has the magic. Entries are appended to
// `images`, complaints to the container itself. `end` is where the scan goes on.
Container walk_container(const ByteSource& source, std::uint64_t offset, const Limits& limits,
                         std::vector<Image>& images, std::uint64_t& end);

}  // namespace gpuwatch::identify
