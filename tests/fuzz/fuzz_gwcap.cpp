// SPDX-License-Identifier: Apache-2.0
// Fuzz target: the .gwcap reader. The first byte chooses what the rest is: a
// file as it is; a file whose checksums are made right first, so that damage
// gets past them; or raw bytes, put into one good block as records or deltas.
#include <sys/mman.h>
#include <zstd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/crc32c.h"
#include "base/io.h"
#include "source/gwcap.h"

namespace gpuwatch::source {
namespace {

template <typename T>
std::uint32_t crc_of(const T& value, std::size_t bytes) {
  return base::crc32c(std::as_bytes(std::span(&value, 1)).first(bytes));
}

void repair(std::string& file) {
  FilePreamble preamble;
  if (file.size() < sizeof preamble) return;
  std::memcpy(&preamble, file.data(), sizeof preamble);
  preamble.magic = kGwcapMagic;
  preamble.version = kGwcapVersion;
  preamble.pad = 0;
  if (preamble.header_bytes > file.size() - sizeof preamble) return;
  preamble.header_crc = base::crc32c(std::as_bytes(std::span(file)).subspan(sizeof preamble, preamble.header_bytes));
  preamble.preamble_crc = crc_of(preamble, offsetof(FilePreamble, preamble_crc));
  std::memcpy(file.data(), &preamble, sizeof preamble);
  std::size_t at = sizeof preamble + preamble.header_bytes;
  BlockHeader head;
  while (file.size() - at >= sizeof head) {
    std::memcpy(&head, file.data() + at, sizeof head);
    head.magic = kGwcapBlockMagic;
    const std::size_t left = file.size() - at - sizeof head;
    if (head.stored_bytes <= left)
      head.stored_crc = base::crc32c(std::as_bytes(std::span(file)).subspan(at + sizeof head, head.stored_bytes));
    head.header_crc = crc_of(head, offsetof(BlockHeader, header_crc));
    std::memcpy(file.data() + at, &head, sizeof head);
    if (head.stored_bytes > left) return;
    at += sizeof head + head.stored_bytes;
  }
}

std::string wrap(const std::string& raw, BlockKind kind) {
  const std::string json = header_to_json(GwcapHeader{});
  FilePreamble preamble{};
  preamble.header_bytes = static_cast<std::uint32_t>(json.size());
  const std::size_t skip = kind == BlockKind::kDelta ? std::min<std::size_t>(2, raw.size()) : 0;
  std::string frame(ZSTD_compressBound(raw.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), raw.data() + skip, raw.size() - skip, 1));
  BlockHeader head{};
  head.kind = static_cast<std::uint32_t>(kind);
  head.stored_bytes = static_cast<std::uint32_t>(frame.size());
  head.raw_bytes = static_cast<std::uint32_t>(raw.size());
  if (kind == BlockKind::kDelta) {
    // The first two bytes say how much to restore: it must be right for
    // anything to come out.
    std::uint16_t words = 0;
    if (raw.size() >= sizeof words) std::memcpy(&words, raw.data(), sizeof words);
    head.packed_bytes = static_cast<std::uint32_t>(raw.size() - skip);
    head.raw_bytes = words * 8u;
  }
  std::string file(reinterpret_cast<const char*>(&preamble), sizeof preamble);
  file += json;
  file.append(reinterpret_cast<const char*>(&head), sizeof head);
  file += frame;
  repair(file);
  return file;
}

void must(bool good) {
  if (!good) std::abort();
}

void read(const std::string& file, bool by_blocks) {
  base::Fd memory(::memfd_create("fuzz", MFD_CLOEXEC));
  must(base::write_all(memory.get(), file).ok() && ::lseek(memory.get(), 0, SEEK_SET) == 0);
  auto reader = GwcapReader::adopt(std::move(memory), "fuzz");
  if (!reader) {
    must(!reader.error().message().empty());
    return;
  }
  std::uint64_t seen = 0;
  std::vector<model::RawRecord> block;
  for (;;) {
    if (by_blocks) {
      const base::Status status = reader->next_batch(block);
      for (const model::RawRecord& record : block) must(record.head.len == sizeof record.head + record.payload.size());
      seen += block.size();
      if (!status.ok() || block.empty()) break;
    } else {
      auto record = reader->next();
      if (!record || !record->has_value()) break;
      must((*record)->head.len == sizeof(gpuwatch_rec) + (*record)->payload.size());
      ++seen;
    }
  }
  must(seen == reader->records());
  must(!reader->footer() || reader->footer()->records == seen);
}

}  // namespace
}  // namespace gpuwatch::source

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string file(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 == 1) gpuwatch::source::repair(file);
  if (data[0] % 4 == 2) file = gpuwatch::source::wrap(file, gpuwatch::source::BlockKind::kRecords);
  if (data[0] % 4 == 3) file = gpuwatch::source::wrap(file, gpuwatch::source::BlockKind::kDelta);
  gpuwatch::source::read(file, data[0] >= 128);
  return 0;
}
