// SPDX-License-Identifier: Apache-2.0
#include "identify/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/io.h"

namespace gpuwatch::identify {

namespace {

constexpr std::size_t kPiece = 256 << 10;
constexpr std::uint64_t kRatioFrom = 64 << 20;  // below so much output nobody asks for the ratio

std::string text_of(::archive* handle) {
  const char* text = ::archive_error_string(handle);
  return text == nullptr ? "unknown error" : text;
}

}  // namespace

bool looks_like_archive(Bytes head) {
  const auto starts = [&](std::string_view magic) { return as_text(head).starts_with(magic); };
  return starts("!<arch>\n") || starts("PK\003\004") || starts("PK\005\006") || starts("\037\213\010") ||
         starts("\050\265\057\375") ||
         starts(
             "\375"
             "7zXZ") ||
         starts("BZh") || (head.size() >= 262 && as_text(head.subspan(257, 5)) == "ustar");
}

struct ArchiveReader::Input {
  int fd = -1;
  std::uint64_t size = 0;
  std::uint64_t at = 0;
  std::vector<std::uint8_t> piece;

  static la_ssize_t read(::archive*, void* self, const void** out) {
    auto& input = *static_cast<Input*>(self);
    for (;;) {
      const std::size_t want = std::min<std::uint64_t>(input.piece.size(), input.size - std::min(input.at, input.size));
      const ssize_t got = want == 0 ? 0 : ::pread(input.fd, input.piece.data(), want, static_cast<off_t>(input.at));
      if (got < 0 && errno == EINTR) continue;
      if (got > 0) input.at += static_cast<std::uint64_t>(got);
      *out = input.piece.data();
      return got;
    }
  }
  static la_int64_t skip(::archive*, void* self, la_int64_t count) {
    auto& input = *static_cast<Input*>(self);
    const std::uint64_t left = input.size - std::min(input.at, input.size);
    const std::uint64_t n = count < 0 ? 0 : std::min<std::uint64_t>(static_cast<std::uint64_t>(count), left);
    input.at += n;
    return static_cast<la_int64_t>(n);
  }
  static la_int64_t seek(::archive*, void* self, la_int64_t offset, int whence) {
    auto& input = *static_cast<Input*>(self);
    const auto base = whence == SEEK_CUR   ? static_cast<la_int64_t>(input.at)
                      : whence == SEEK_END ? static_cast<la_int64_t>(input.size)
                                           : 0;
    la_int64_t target = 0;
    if (__builtin_add_overflow(base, offset, &target) || target < 0) return ARCHIVE_FATAL;
    input.at = static_cast<std::uint64_t>(target);
    return target;
  }
};

ArchiveReader::ArchiveReader() = default;
ArchiveReader::ArchiveReader(ArchiveReader&&) noexcept = default;
ArchiveReader& ArchiveReader::operator=(ArchiveReader&&) noexcept = default;
ArchiveReader::~ArchiveReader() = default;

void ArchiveReader::Free::operator()(::archive* handle) const {
  ::archive_read_free(handle);
}

base::Result<ArchiveReader> ArchiveReader::open(int fd, std::uint64_t size, const Limits& limits, bool single) {
  ArchiveReader reader;
  reader.limits_ = limits;
  reader.single_ = single;
  reader.input_ = std::make_unique<Input>();
  reader.input_->fd = fd;
  reader.input_->size = size;
  reader.input_->piece.resize(kPiece);
  reader.handle_.reset(::archive_read_new());
  ::archive* handle = reader.handle_.get();
  if (handle == nullptr) return base::Error(base::Code::kLimit, "archive: out of memory");
  // Named one by one: some of the library's formats start other programs.
  ::archive_read_support_filter_gzip(handle);
  ::archive_read_support_filter_zstd(handle);
  ::archive_read_support_filter_xz(handle);
  ::archive_read_support_filter_bzip2(handle);
  if (!single) {
    ::archive_read_support_format_ar(handle);
    ::archive_read_support_format_tar(handle);
    ::archive_read_support_format_zip_seekable(handle);
  }
  ::archive_read_support_format_raw(handle);
  ::archive_read_set_read_callback(handle, &Input::read);
  ::archive_read_set_skip_callback(handle, &Input::skip);
  ::archive_read_set_seek_callback(handle, &Input::seek);
  ::archive_read_set_callback_data(handle, reader.input_.get());
  if (::archive_read_open1(handle) != ARCHIVE_OK)
    return base::Error(base::Code::kBadInput, "archive: " + text_of(handle));
  return reader;
}

base::Result<Member> ArchiveReader::next(int spool) {
  ::archive* handle = handle_.get();
  archive_entry* entry = nullptr;
  for (;;) {
    if (++members_ > limits_.archive_members)
      return base::Error(base::Code::kLimit,
                         "archive: more than " + std::to_string(limits_.archive_members) + " members");
    int result = ARCHIVE_RETRY;
    for (int tries = 0; result == ARCHIVE_RETRY && tries < 16; ++tries)
      result = ::archive_read_next_header(handle, &entry);
    if (result == ARCHIVE_EOF && members_ == 1 && !single_ && ::archive_filter_count(handle) > 1) {
      // A compressed file that begins with zeros passes for an empty tar; what
      // is behind the zeros must not stay unseen.
      auto again = open(input_->fd, input_->size, limits_, true);
      if (!again) return std::move(again.error());
      *this = std::move(*again);
      handle = handle_.get();
      continue;
    }
    if (result == ARCHIVE_EOF) {
      Member member;
      member.last = true;
      return member;
    }
    if (result < ARCHIVE_WARN) return base::Error(base::Code::kBadInput, "archive: " + text_of(handle));
    // Hard links repeat a member that has been seen; the rest has no bytes.
    if (::archive_entry_filetype(entry) == AE_IFREG && ::archive_entry_hardlink(entry) == nullptr) break;
    // ar has no types but its own tables.
    if (::archive_entry_filetype(entry) == 0 && ::archive_entry_size_is_set(entry) != 0) break;
  }
  Member member;
  const char* name = ::archive_entry_pathname(entry);
  member.name = name == nullptr ? "?" : name;
  if (member.name.size() > limits_.name_bytes) member.name.resize(limits_.name_bytes);
  std::vector<std::uint8_t> piece(kPiece);
  for (;;) {
    const la_ssize_t got = ::archive_read_data(handle, piece.data(), piece.size());
    if (got == 0) break;
    if (got == ARCHIVE_RETRY) continue;
    if (got < 0) {
      member.error = "archive member: " + text_of(handle);
      break;
    }
    const auto n = static_cast<std::uint64_t>(got);
    member.size += n;
    total_ += n;
    if (member.size > limits_.archive_member_bytes) return base::Error(base::Code::kLimit, "archive: member too large");
    if (total_ > limits_.archive_total_bytes) return base::Error(base::Code::kLimit, "archive: too large in total");
    if (total_ > kRatioFrom && total_ / limits_.archive_ratio > input_->size)
      return base::Error(base::Code::kLimit,
                         "archive: expands more than " + std::to_string(limits_.archive_ratio) + " times");
    if (base::Status status = base::write_all(spool, std::as_bytes(std::span(piece).first(n))); !status.ok())
      return std::move(status.error()).with_context("archive: spool");
  }
  return member;
}

}  // namespace gpuwatch::identify
