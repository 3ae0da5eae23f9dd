// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes as ar, zip, tar or a compressed file, and what comes
// out of it again as such, as deep as the limits go. No member and no sum of
// members exceeds them.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "base/fd.h"
#include "base/io.h"
#include "identify/archive.h"
#include "identify/container.h"

using namespace gpuwatch;
using namespace gpuwatch::identify;

namespace {

void must(bool good) {
  if (!good) std::abort();
}

Limits small_limits() {
  Limits limits;
  limits.archive_depth = 3;
  limits.archive_members = 100;
  limits.archive_member_bytes = 1 << 20;
  limits.archive_total_bytes = 4 << 20;
  limits.name_bytes = 1024;
  return limits;
}

void walk(int fd, std::uint64_t size, const Limits& limits, unsigned depth, std::uint64_t& members) {
  std::uint8_t head[512];
  const std::size_t got = FileSource(fd, size).read(0, head);
  if (depth >= limits.archive_depth || !looks_like_archive(Bytes(head, got))) return;
  auto reader = ArchiveReader::open(fd, size, limits);
  if (!reader) return must(!reader.error().message().empty());
  const base::Fd spool(::memfd_create("spool", MFD_CLOEXEC));
  must(spool.valid());
  std::uint64_t total = 0;
  for (std::uint64_t count = 0;; ++count) {
    must(count <= limits.archive_members);
    must(::ftruncate(spool.get(), 0) == 0 && ::lseek(spool.get(), 0, SEEK_SET) == 0);
    auto member = reader->next(spool.get());
    if (!member) return must(!member.error().message().empty());
    if (member->last) return;
    must(static_cast<std::uint64_t>(::lseek(spool.get(), 0, SEEK_END)) == member->size);
    must(member->size <= limits.archive_member_bytes && member->name.size() <= limits.name_bytes);
    total += member->size;
    must(total <= limits.archive_total_bytes);
    // A bomb of many small archives must not make this target slow.
    if (++members > 300) return;
    walk(spool.get(), member->size, limits, depth + 1, members);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const base::Fd file(::memfd_create("file", MFD_CLOEXEC));
  must(file.valid() && ::ftruncate(file.get(), 0) == 0 && ::lseek(file.get(), 0, SEEK_SET) == 0);
  must(base::write_all(file.get(), std::as_bytes(std::span(data, size))).ok());
  std::uint64_t members = 0;
  walk(file.get(), size, small_limits(), 0, members);
  return 0;
}
