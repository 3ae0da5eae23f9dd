// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <zstd.h>

#include <cstring>

#include "base/crc32c.h"
#include "base/io.h"
#include "source/gwcap.h"
#include "source/kept_images.h"
#include "source/record_delta.h"

namespace gpuwatch::source {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

struct DctxDeleter {
  void operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }
};

template <typename T>
std::span<const std::byte> bytes_of(const T& value, std::size_t n) {
  return std::as_bytes(std::span(&value, 1)).first(n);
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool holds_records(const BlockHeader& head) {
  return head.kind == static_cast<std::uint32_t>(BlockKind::kRecords) ||
         head.kind == static_cast<std::uint32_t>(BlockKind::kDelta);
}

}  // namespace

struct GwcapReader::State {
  std::string path;
  base::Fd fd;
  GwcapHeader header;
  std::optional<GwcapFooter> footer;
  std::unique_ptr<ZSTD_DCtx_s, DctxDeleter> zstd{ZSTD_createDCtx()};
  std::vector<std::byte> stored;
  std::vector<std::byte> packed;
  std::vector<std::byte> buffer;   // `raw` and the slack behind it
  std::span<const std::byte> raw;  // what of the block is restored
  Undelta undelta;                 // the rest of it
  std::uint64_t block_at = 0;      // file offset of the current block
  std::uint64_t at = 0;            // file offset of the next read
  std::size_t raw_at = 0;          // read position in `raw`
  std::uint64_t records = 0;
  std::uint64_t raw_bytes = 0;
  bool ended = false;
  std::optional<Error> broken;
  std::optional<KeptImages> images;  // there when asked for
  int end_fd = -1;

  std::string kept() const {
    return std::to_string(records) + (records == 1 ? " record before it is good" : " records before it are good");
  }

  Error damaged(std::uint64_t offset, const std::string& what) {
    broken = Error(Code::kBadInput, path + ": byte " + std::to_string(offset) + ": " + what + "; " + kept() +
                                        "; copy the file again from where it was recorded");
    return *broken;
  }

  Error cut(const std::string& where) {
    broken = Error(Code::kTruncated, path + ": cut at byte " + std::to_string(at) + where + "; " + kept() +
                                         "; the recorder was killed or the copy is incomplete");
    return *broken;
  }

  // Reads exactly `out`; `at` then counts what was really there.
  Result<bool> take(std::span<std::byte> out) {
    auto got = end_fd < 0 ? base::read_full(fd.get(), out, base::OnSignal::kFail) : read_or_end(out);
    if (!got) {
      broken = std::move(got.error()).with_context(path);
      return *broken;
    }
    at += *got;
    return *got == out.size();
  }

  Result<std::size_t> read_or_end(std::span<std::byte> out) const;
  Status read_header();
  Result<bool> load_block();
  Status check_block(const BlockHeader& head);
  Status read_footer(const BlockHeader& head);
  Status expand(const BlockHeader& head);
  Status restore_piece();
  Result<bool> have_records();
};

// Never waits in read(): a writer may stop in the middle of a block.
Result<std::size_t> GwcapReader::State::read_or_end(std::span<std::byte> out) const {
  std::size_t got = 0;
  while (got < out.size()) {
    pollfd ready[2] = {{fd.get(), POLLIN, 0}, {end_fd, POLLIN, 0}};
    if (::poll(ready, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return Error::from_errno("waiting for more");
    }
    if (ready[1].revents != 0) return Error(Code::kIo, "ended before its end", ECANCELED);
    const ssize_t n = ::read(fd.get(), out.data() + got, out.size() - got);
    if (n == 0) break;
    if (n > 0)
      got += static_cast<std::size_t>(n);
    else if (errno != EINTR && errno != EAGAIN)
      return Error::from_errno("reading");
  }
  return got;
}

Status GwcapReader::State::read_header() {
  FilePreamble preamble{};
  auto whole = take(std::as_writable_bytes(std::span(&preamble, 1)));
  if (!whole) return std::move(whole.error());
  const std::size_t magic_seen = std::min<std::uint64_t>(at, kGwcapMagic.size());
  if (at == 0 || std::memcmp(preamble.magic.data(), kGwcapMagic.data(), magic_seen) != 0)
    return Error(Code::kBadInput, path + ": byte 0: not a .gwcap file; make one with `gpuwatch record -o FILE`");
  if (!*whole) return cut(" in the preamble");
  if (preamble.version != kGwcapVersion && preamble.version != 0)
    return Error(Code::kUnsupported, path + ": byte 8: file format " + std::to_string(preamble.version) +
                                         ", this program reads " + std::to_string(kGwcapVersion) +
                                         "; use the gpuwatch that recorded it, or a newer one");
  if (preamble.preamble_crc != base::crc32c(bytes_of(preamble, offsetof(FilePreamble, preamble_crc))) ||
      preamble.version == 0 || preamble.pad != 0)
    return damaged(0, "the preamble's checksum does not match");
  if (preamble.header_bytes > kGwcapHeaderMax)
    return damaged(
        12, "header of " + std::to_string(preamble.header_bytes) + " bytes, limit " + std::to_string(kGwcapHeaderMax));
  stored.resize(preamble.header_bytes);
  whole = take(stored);
  if (!whole) return std::move(whole.error());
  if (!*whole) return cut(" in the header");
  if (base::crc32c(stored) != preamble.header_crc)
    return damaged(sizeof preamble, "the header's checksum does not match");
  auto parsed = header_from_json(text_of(stored));
  if (!parsed) return damaged(sizeof preamble, "header: " + parsed.error().message());
  header = std::move(*parsed);
  return {};
}

Status GwcapReader::State::check_block(const BlockHeader& head) {
  if (head.magic != kGwcapBlockMagic) return damaged(block_at, "no block starts here");
  if (head.header_crc != base::crc32c(bytes_of(head, offsetof(BlockHeader, header_crc))))
    return damaged(block_at, "the block header's checksum does not match");
  if (head.stored_bytes > kGwcapStoredMax || head.raw_bytes > kGwcapRawMax ||
      head.packed_bytes > delta_bound(kGwcapRawMax))
    return damaged(block_at + 8, "block of " + std::to_string(head.stored_bytes) + " bytes stored and " +
                                     std::to_string(head.raw_bytes) + " raw, " + std::to_string(head.packed_bytes) +
                                     " packed, limits " + std::to_string(kGwcapStoredMax) + ", " +
                                     std::to_string(kGwcapRawMax) + " and " +
                                     std::to_string(delta_bound(kGwcapRawMax)));
  if (holds_records(head) && head.records > head.raw_bytes / sizeof(gpuwatch_rec))
    return damaged(block_at + 16, std::to_string(head.records) + " records cannot fit in " +
                                      std::to_string(head.raw_bytes) + " bytes");
  return {};
}

Status GwcapReader::State::read_footer(const BlockHeader& head) {
  auto parsed = footer_from_json(text_of(stored));
  if (!parsed) return damaged(block_at + sizeof head, "footer: " + parsed.error().message());
  if (parsed->records != records || parsed->bytes != raw_bytes)
    return damaged(block_at + sizeof head, "the footer counts " + std::to_string(parsed->records) +
                                               " records, the blocks hold " + std::to_string(records));
  std::byte extra;
  auto more = take({&extra, 1});
  if (!more) return std::move(more.error());
  if (*more) return damaged(at - 1, "bytes after the footer");
  footer = std::move(*parsed);
  ended = true;
  return {};
}

// Decompresses `stored` into `raw`. Every buffer has its declared size, which
// is bounded: a frame that would grow beyond it fails, whatever it claims.
Status GwcapReader::State::expand(const BlockHeader& head) {
  const bool delta = head.kind == static_cast<std::uint32_t>(BlockKind::kDelta);
  const std::uint32_t wanted = delta ? head.packed_bytes : head.raw_bytes;
  if (buffer.size() < head.raw_bytes + kDeltaSlack) buffer.resize(head.raw_bytes + kDeltaSlack);
  if (delta && packed.size() < wanted) packed.resize(wanted);
  std::byte* const target = delta ? packed.data() : buffer.data();
  const std::size_t n = ZSTD_decompressDCtx(zstd.get(), target, wanted, stored.data(), stored.size());
  if (ZSTD_isError(n) != 0) return damaged(block_at + sizeof head, std::string("zstd: ") + ZSTD_getErrorName(n));
  if (n != wanted)
    return damaged(block_at + sizeof head,
                   "block of " + std::to_string(n) + " bytes, declared " + std::to_string(wanted));
  undelta = delta ? Undelta(std::span(packed).first(wanted), buffer.data(), head.raw_bytes) : Undelta();
  raw = std::span(buffer).first(delta ? 0 : head.raw_bytes);
  return {};
}

// Restores a piece of the block at hand.
Status GwcapReader::State::restore_piece() {
  constexpr std::size_t kPieceBytes = 24 << 10;
  const bool good = undelta.more(kPieceBytes);
  raw = std::span(buffer).first(undelta.restored());
  if (!good) return damaged(block_at + sizeof(BlockHeader), "the records' deltas do not fit together");
  return {};
}

// Sees to it that records lie in `raw` behind `raw_at`; false at the end.
Result<bool> GwcapReader::State::have_records() {
  while (raw_at == raw.size()) {
    if (broken) return *broken;
    if (!undelta.done()) {
      // Records before the damage are still good: they come first.
      if (Status status = restore_piece(); !status.ok() && raw_at == raw.size()) return std::move(status.error());
      continue;
    }
    auto more = load_block();
    if (!more || !*more) return more;
  }
  return true;
}

// Gets the next block of records into `raw`, as far as it is not to be
// restored piece by piece; false at the end.
Result<bool> GwcapReader::State::load_block() {
  for (;;) {
    if (broken) return *broken;
    if (ended) return false;
    raw = {};
    raw_at = 0;
    block_at = at;
    BlockHeader head{};
    auto whole = take(std::as_writable_bytes(std::span(&head, 1)));
    if (!whole) return std::move(whole.error());
    if (at == block_at) return cut(", before a footer");
    if (!*whole) return cut(" in a block header");
    if (Status status = check_block(head); !status.ok()) return std::move(status.error());
    stored.resize(head.stored_bytes);
    whole = take(stored);
    if (!whole) return std::move(whole.error());
    if (!*whole) return cut(" in the block at byte " + std::to_string(block_at));
    if (base::crc32c(stored) != head.stored_crc)
      return damaged(block_at + sizeof head, "the block's checksum does not match");

    if (head.kind == static_cast<std::uint32_t>(BlockKind::kFooter)) {
      if (Status status = read_footer(head); !status.ok()) return std::move(status.error());
      continue;
    }
    if (head.kind == static_cast<std::uint32_t>(BlockKind::kImage) && images) images->add(stored, head.raw_bytes);
    if (!holds_records(head)) continue;  // an image, or a kind of a later program

    if (Status status = expand(head); !status.ok()) return std::move(status.error());
    return true;
  }
}

GwcapReader::GwcapReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
GwcapReader::GwcapReader(GwcapReader&&) noexcept = default;
GwcapReader& GwcapReader::operator=(GwcapReader&&) noexcept = default;
GwcapReader::~GwcapReader() = default;

Result<GwcapReader> GwcapReader::open(const std::string& path) {
  base::Fd fd(path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return Error::from_errno(path);
  return adopt(std::move(fd), path == "-" ? "standard input" : path);
}

Result<GwcapReader> GwcapReader::adopt(base::Fd fd, const std::string& name) {
  auto state = std::make_unique<State>();
  state->path = name;
  state->fd = std::move(fd);
  if (Status status = state->read_header(); !status.ok()) return std::move(status.error());
  return GwcapReader(std::move(state));
}

const GwcapHeader& GwcapReader::header() const {
  return state_->header;
}
const std::optional<GwcapFooter>& GwcapReader::footer() const {
  return state_->footer;
}
std::uint64_t GwcapReader::records() const {
  return state_->records;
}
std::uint64_t GwcapReader::raw_bytes() const {
  return state_->raw_bytes;
}

void GwcapReader::end_when(int fd) {
  state_->end_fd = fd;
}

void GwcapReader::keep_images() {
  state_->images.emplace();
}

Result<std::vector<std::byte>> GwcapReader::take_image(std::uint64_t id) {
  if (!state_->images) return Error(Code::kNotFound, state_->path + ": images were not asked for");
  auto bytes = state_->images->take(id);
  if (!bytes) return std::move(bytes.error()).with_context(state_->path);
  return bytes;
}

Result<std::optional<model::RawRecord>> GwcapReader::next() {
  State& s = *state_;
  auto more = s.have_records();
  if (!more) return std::move(more.error());
  if (!*more) return std::optional<model::RawRecord>();
  auto record = model::parse_record(model::Bytes(s.raw).subspan(s.raw_at));
  if (!record)
    return s.damaged(s.block_at, "record at byte " + std::to_string(s.raw_at) + " of the block has a bad length");
  s.raw_at += record->head.len;
  ++s.records;
  s.raw_bytes += record->head.len;
  return std::optional(*record);
}

Status GwcapReader::next_batch(std::vector<model::RawRecord>& records) {
  State& s = *state_;
  records.clear();
  auto more = s.have_records();
  if (!more) return std::move(more.error());
  if (!*more) return {};
  const model::Bytes raw = s.raw;
  while (s.raw_at < raw.size()) {
    auto record = model::parse_record(raw.subspan(s.raw_at));
    if (!record) {
      Error error =
          s.damaged(s.block_at, "record at byte " + std::to_string(s.raw_at) + " of the block has a bad length");
      // What was read before the damage is still the caller's.
      if (records.empty()) return error;
      s.raw_at = raw.size();
      break;
    }
    s.raw_at += record->head.len;
    ++s.records;
    s.raw_bytes += record->head.len;
    records.push_back(*record);
  }
  return {};
}

}  // namespace gpuwatch::source
