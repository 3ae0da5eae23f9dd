// SPDX-License-Identifier: Apache-2.0
// Members of an archive, one after the other: ar, zip (wheels), tar (OCI image
// tarballs and their layers), and single files compressed by gzip, zstd, xz or
// bzip2. Bounded against bombs. Runs in the worker; it opens nothing by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "identify/bytes.h"
#include "identify/limits.h"

struct archive;

namespace gpuwatch::identify {

// By the first bytes and, for tar, the magic of its first header: is it worth
// opening as an archive? `head` should have 512 bytes.
bool looks_like_archive(Bytes head);

struct Member {
  std::string name;
  std::uint64_t size = 0;
  bool last = false;  // there is no further member; the rest is empty
  std::string error;  // this member could not be read; what came is in the spool
};

class ArchiveReader {
 public:
  static base::Result<ArchiveReader> open(int fd, std::uint64_t size, const Limits& limits) {
    return open(fd, size, limits, false);
  }

  // The next regular file into `spool`, from its current position.
  base::Result<Member> next(int spool);

 private:
  // `single`: whatever the bytes look like inflated, they are one file.
  static base::Result<ArchiveReader> open(int fd, std::uint64_t size, const Limits& limits, bool single);

  struct Input;
  struct Free {
    void operator()(::archive* handle) const;
  };
  std::unique_ptr<Input> input_;  // before the handle: it must outlive it
  std::unique_ptr<::archive, Free> handle_;
  Limits limits_;
  bool single_ = false;
  std::uint64_t members_ = 0;
  std::uint64_t total_ = 0;

 public:
  ArchiveReader();
  ArchiveReader(ArchiveReader&&) noexcept;
  ArchiveReader& operator=(ArchiveReader&&) noexcept;
  ~ArchiveReader();
};

}  // namespace gpuwatch::identify
