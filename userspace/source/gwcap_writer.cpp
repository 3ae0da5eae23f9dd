// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/io.h"
#include "source/gwcap.h"
#include "source/record_delta.h"

namespace gpuwatch::source {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

struct CctxDeleter {
  void operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }
};

template <typename T>
std::span<const std::byte> bytes_of(const T& value, std::size_t n = sizeof(T)) {
  return std::as_bytes(std::span(&value, 1)).first(n);
}

}  // namespace

struct GwcapWriter::State {
  std::string path;
  GwcapOptions options;
  base::Fd fd;
  std::unique_ptr<ZSTD_CCtx_s, CctxDeleter> zstd{ZSTD_createCCtx()};
  std::vector<std::byte> raw;     // records held back
  std::vector<std::byte> packed;  // the same as deltas
  std::vector<std::byte> stored;  // block header and compressed bytes
  std::uint32_t raw_records = 0;
  std::uint64_t oldest_ns = 0;  // when the first record of `raw` came
  std::uint64_t records = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t file_bytes = 0;   // up to the last whole block
  std::uint64_t image_bytes = 0;  // of them, for images
  bool regular = false;
  bool finished = false;
  std::optional<Error> broken;

  // Writes whole or takes back what went out, so that the file always ends
  // with a whole block.
  Status put(std::span<const std::byte> bytes) {
    if (Status status = base::write_all(fd.get(), bytes); !status.ok()) {
      if (regular && ::ftruncate(fd.get(), static_cast<off_t>(file_bytes)) == 0)
        ::lseek(fd.get(), static_cast<off_t>(file_bytes), SEEK_SET);
      const bool full = status.error().sys_errno() == ENOSPC || status.error().sys_errno() == EDQUOT;
      broken = Error(status.error().code(),
                     path + ": " + status.error().message() + " at byte " + std::to_string(file_bytes) + "; " +
                         std::to_string(records) + " records before it are kept" +
                         (full ? "; free space or record to another file system" : ""),
                     status.error().sys_errno());
      return *broken;
    }
    file_bytes += bytes.size();
    return {};
  }

  Status put_block(BlockKind kind, std::uint32_t raw_size, std::uint32_t count, std::uint32_t packed_size = 0) {
    BlockHeader head{};
    head.magic = kGwcapBlockMagic;
    head.kind = static_cast<std::uint32_t>(kind);
    head.stored_bytes = static_cast<std::uint32_t>(stored.size() - sizeof head);
    head.raw_bytes = raw_size;
    head.records = count;
    head.packed_bytes = packed_size;
    head.stored_crc = base::crc32c(std::span<const std::byte>(stored).subspan(sizeof head));
    head.header_crc = base::crc32c(bytes_of(head, offsetof(BlockHeader, header_crc)));
    std::memcpy(stored.data(), &head, sizeof head);
    return put(stored);
  }

  Status flush() {
    if (broken) return *broken;
    if (raw.empty()) return {};
    to_delta(raw, packed);
    stored.resize(sizeof(BlockHeader) + ZSTD_compressBound(packed.size()));
    const std::size_t n =
        ZSTD_compressCCtx(zstd.get(), stored.data() + sizeof(BlockHeader), stored.size() - sizeof(BlockHeader),
                          packed.data(), packed.size(), options.level);
    if (ZSTD_isError(n) != 0) {
      broken = Error(Code::kIo, path + ": zstd cannot compress: " + ZSTD_getErrorName(n));
      return *broken;
    }
    stored.resize(sizeof(BlockHeader) + n);
    const auto size = static_cast<std::uint32_t>(raw.size());
    if (Status status = put_block(BlockKind::kDelta, size, raw_records, static_cast<std::uint32_t>(packed.size()));
        !status.ok())
      return status;
    records += raw_records;
    raw_bytes += size;
    raw.clear();
    raw_records = 0;
    return {};
  }

  // One piece of an image, compressed, as a block of its own.
  Status put_piece(std::uint64_t id, std::span<const std::byte> image, std::size_t at, std::size_t size) {
    const ImagePieceHead piece{id, image.size(), at};
    constexpr std::size_t kHeads = sizeof(BlockHeader) + sizeof piece;
    stored.resize(kHeads + ZSTD_compressBound(size));
    std::memcpy(stored.data() + sizeof(BlockHeader), &piece, sizeof piece);
    const std::size_t n = ZSTD_compressCCtx(zstd.get(), stored.data() + kHeads, stored.size() - kHeads,
                                            image.data() + at, size, options.level);
    if (ZSTD_isError(n) != 0) {
      broken = Error(Code::kIo, path + ": zstd cannot compress: " + ZSTD_getErrorName(n));
      return *broken;
    }
    stored.resize(kHeads + n);
    image_bytes += stored.size();
    return put_block(BlockKind::kImage, static_cast<std::uint32_t>(size), 0);
  }

  // Makes room for a record of that size in the block.
  Status begin_record(std::size_t size) {
    if (broken) return *broken;
    if (finished) return Error(Code::kBadInput, path + ": append after finish");
    if (!raw.empty() && raw.size() + size > options.block_bytes)
      if (Status status = flush(); !status.ok()) return status;
    if (raw.empty()) oldest_ns = base::monotonic_ns();
    ++raw_records;
    return {};
  }

  Error bad_length(std::size_t size) const {
    return Error(Code::kBadInput, path + ": record " + std::to_string(records + raw_records) + " of " +
                                      std::to_string(size) + " bytes has a bad length field");
  }
};

GwcapWriter::GwcapWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
GwcapWriter::GwcapWriter(GwcapWriter&&) noexcept = default;

GwcapWriter& GwcapWriter::operator=(GwcapWriter&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

GwcapWriter::~GwcapWriter() {
  // Nobody can be told about a failure here; callers who care call finish().
  if (state_ && !state_->finished) (void)state_->flush().ok();
}

Result<GwcapWriter> GwcapWriter::create(const std::string& path, const GwcapHeader& header,
                                        const GwcapOptions& options) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->options = options;
  state->options.block_bytes = std::clamp<std::uint32_t>(options.block_bytes, 4096, kGwcapRawMax);
  state->raw.reserve(state->options.block_bytes);
  const int how = O_WRONLY | O_CREAT | O_CLOEXEC | (options.force ? O_TRUNC : O_EXCL);
  state->fd = base::Fd(::open(path.c_str(), how, 0600));
  if (!state->fd.valid()) {
    if (errno == EEXIST)
      return Error(Code::kIo, path + ": exists; choose another name, or pass --force to replace it", EEXIST);
    return Error::from_errno(path);
  }
  struct stat info {};
  state->regular = ::fstat(state->fd.get(), &info) == 0 && S_ISREG(info.st_mode);

  const std::string json = header_to_json(header);
  if (json.size() > kGwcapHeaderMax)
    return Error(Code::kLimit, path + ": header of " + std::to_string(json.size()) + " bytes is over the limit of " +
                                   std::to_string(kGwcapHeaderMax));
  FilePreamble preamble{};
  preamble.magic = kGwcapMagic;
  preamble.version = kGwcapVersion;
  preamble.header_bytes = static_cast<std::uint32_t>(json.size());
  preamble.header_crc = base::crc32c(std::as_bytes(std::span(json)));
  preamble.preamble_crc = base::crc32c(bytes_of(preamble, offsetof(FilePreamble, preamble_crc)));
  std::vector<std::byte> start(sizeof preamble + json.size());
  std::memcpy(start.data(), &preamble, sizeof preamble);
  std::memcpy(start.data() + sizeof preamble, json.data(), json.size());
  if (Status status = state->put(start); !status.ok()) return std::move(status.error());
  return GwcapWriter(std::move(state));
}

Status GwcapWriter::append(model::Bytes record) {
  State& s = *state_;
  const auto parsed = model::parse_record(record);
  if (!parsed || parsed->head.len != record.size()) return s.bad_length(record.size());
  if (Status status = s.begin_record(record.size()); !status.ok()) return status;
  s.raw.insert(s.raw.end(), record.begin(), record.end());
  return {};
}

Status GwcapWriter::append(const model::RawRecord& record) {
  State& s = *state_;
  const std::size_t size = sizeof record.head + record.payload.size();
  if (record.head.len != size || size % 8 != 0 || size > GPUWATCH_REC_MAX) return s.bad_length(size);
  if (Status status = s.begin_record(size); !status.ok()) return status;
  const auto head = bytes_of(record.head);
  s.raw.insert(s.raw.end(), head.begin(), head.end());
  s.raw.insert(s.raw.end(), record.payload.begin(), record.payload.end());
  return {};
}

Result<bool> GwcapWriter::append_image(std::uint64_t id, std::span<const std::byte> bytes) {
  State& s = *state_;
  if (s.broken) return *s.broken;
  if (s.finished) return Error(Code::kBadInput, s.path + ": append after finish");
  // Compressed they are smaller: what is known beforehand bounds it.
  if (bytes.empty() || bytes.size() > kGwcapImageMax || s.image_bytes + bytes.size() > s.options.image_budget_bytes)
    return false;
  for (std::size_t at = 0; at < bytes.size(); at += kGwcapPieceMax)
    if (Status status = s.put_piece(id, bytes, at, std::min<std::size_t>(bytes.size() - at, kGwcapPieceMax));
        !status.ok())
      return std::move(status.error());
  return true;
}

Status GwcapWriter::flush() {
  return state_->flush();
}

Status GwcapWriter::flush_stale() {
  if (state_->raw.empty() || base::monotonic_ns() - state_->oldest_ns < state_->options.flush_after_ns) return {};
  return state_->flush();
}

Status GwcapWriter::finish(GwcapFooter footer) {
  State& s = *state_;
  if (s.finished) return {};
  if (Status status = s.flush(); !status.ok()) return status;
  footer.records = s.records;
  footer.bytes = s.raw_bytes;
  const std::string json = footer_to_json(footer);
  s.stored.resize(sizeof(BlockHeader) + json.size());
  std::memcpy(s.stored.data() + sizeof(BlockHeader), json.data(), json.size());
  const auto size = static_cast<std::uint32_t>(json.size());
  if (size > kGwcapHeaderMax) return Error(Code::kLimit, s.path + ": footer is over the limit");
  if (Status status = s.put_block(BlockKind::kFooter, size, 0); !status.ok()) return status;
  s.finished = true;
  // Some file systems report a full disk only here.
  if (s.regular && ::fsync(s.fd.get()) != 0) return Error::from_errno(s.path + ": fsync");
  return {};
}

std::uint64_t GwcapWriter::records() const {
  return state_->records + state_->raw_records;
}
std::uint64_t GwcapWriter::file_bytes() const {
  return state_->file_bytes;
}

}  // namespace gpuwatch::source
