// SPDX-License-Identifier: Apache-2.0
// See file_sink.h.
#include "sink/file_sink.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <utility>

namespace gpuwatch::sink {

namespace {

using base::Error;
using base::Status;

// How far back the begin of a line is looked for.
constexpr std::uint64_t kTailMax = 4U << 20;
constexpr std::string_view kOurs = "{\"schema\":";

Error failure(const std::string& path, int number) {
  if (number == ENOSPC || number == EDQUOT)
    return Error(base::Code::kIo, path + ": no space left; what does not fit is dropped and counted", number);
  if (number == ELOOP)
    return Error(base::Code::kPermission, path + ": is a symbolic link, which is not followed; name the file itself",
                 number);
  return Error::from_errno(path, number);
}

// A writer that was killed may have left half a line. Ours is cut off, whatever
// else it is gets the newline that it lacks.
Status mend_tail(int fd, const std::string& path, std::uint64_t& size) {
  if (size == 0) return {};
  const std::uint64_t length = std::min(size, kTailMax);
  std::string tail(length, '\0');
  const ssize_t got = ::pread(fd, tail.data(), length, static_cast<off_t>(size - length));
  if (got < 0) return failure(path, errno);
  tail.resize(static_cast<std::size_t>(got));
  if (tail.empty() || tail.back() == '\n') return {};
  const std::size_t newline = tail.rfind('\n');
  const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
  const bool whole_tail = newline != std::string::npos || length == size;
  const std::string_view torn = std::string_view(tail).substr(begin);
  if (whole_tail && (torn.starts_with(kOurs) || kOurs.starts_with(torn))) {
    size = size - length + begin;
    return ::ftruncate(fd, static_cast<off_t>(size)) == 0 ? Status() : Status(failure(path, errno));
  }
  if (::write(fd, "\n", 1) != 1) return failure(path, errno);
  ++size;
  return {};
}

// Who has a file open in this process. A sink that a reload replaced still writes
// while the new one opens: what looks like half a line is one that grows.
std::mutex claims_lock;
std::map<std::pair<dev_t, ino_t>, std::weak_ptr<const void>> claims;

}  // namespace

// The end of the file is mended by its first user.
Status FileSink::claim(int fd, const struct stat& info, std::uint64_t& size) {
  const std::lock_guard hold(claims_lock);
  std::erase_if(claims, [](const auto& each) { return each.second.expired(); });
  auto& known = claims[{info.st_dev, info.st_ino}];
  std::shared_ptr<const void> claim = known.lock();
  if (!claim) {
    if (Status status = mend_tail(fd, options_.path, size); !status) return status;
    claim = std::make_shared<const int>(fd);
    known = claim;
  }
  claim_ = std::move(claim);
  return {};
}

base::Result<std::unique_ptr<Sink>> FileSink::open(const FileOptions& options) {
  if (options.path.empty()) return Error(base::Code::kBadInput, "file sink: no path");
  std::unique_ptr<FileSink> sink(new FileSink(options));
  if (Status status = sink->reopen(); !status) return std::move(status.error());
  return std::unique_ptr<Sink>(std::move(sink));
}

std::unique_ptr<Sink> FileSink::on_descriptor(int fd, LineForm form, bool events) {
  FileOptions options;
  options.form = form;
  options.events = events;
  std::unique_ptr<FileSink> sink(new FileSink(std::move(options)));
  sink->stream_ = fd;
  return sink;
}

Status FileSink::reopen() {
  if (!path_is_set()) return {};
  // O_NONBLOCK: a FIFO without reader must not hold us in open().
  base::Fd fd(::open(options_.path.c_str(),
                     O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, options_.mode));
  if (!fd.valid()) return failure(options_.path, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return failure(options_.path, errno);
  if (!S_ISREG(info.st_mode))
    return Error(base::Code::kBadInput, options_.path + ": is no regular file; use standard output for pipes");
  auto size = static_cast<std::uint64_t>(info.st_size);
  const std::shared_ptr<const void> before = claim_;  // until the file before is closed
  if (Status status = claim(fd.get(), info, size); !status) return status;
  file_ = std::move(fd);
  size_ = size;
  return {};
}

Status FileSink::rotate() {
  const auto numbered = [&](unsigned n) { return n == 0 ? options_.path : options_.path + "." + std::to_string(n); };
  if (options_.keep == 0 && ::unlink(options_.path.c_str()) != 0 && errno != ENOENT)
    return failure(options_.path, errno);
  for (unsigned n = options_.keep; n > 0; --n)
    if (::rename(numbered(n - 1).c_str(), numbered(n).c_str()) != 0 && errno != ENOENT)
      return failure(numbered(n), errno);
  return reopen();
}

Outcome FileSink::write_file(std::span<const ItemPtr> items) {
  if (!file_.valid())
    if (Status status = reopen(); !status) return Outcome::again(std::move(status.error()));
  if (options_.rotate_bytes != 0 && size_ >= options_.rotate_bytes)
    if (Status status = rotate(); !status) return Outcome::again(std::move(status.error()));
  // Up to the size at which the file is full, and one line more.
  std::size_t take = 0;
  buffer_.clear();
  for (; take < items.size(); ++take) {
    if (options_.rotate_bytes != 0 && take > 0 && size_ + buffer_.size() >= options_.rotate_bytes) break;
    buffer_ += line_of(*items[take]);
    buffer_ += '\n';
  }
  std::size_t done = 0;
  int number = 0;
  while (done < buffer_.size()) {
    const ssize_t n = ::write(file_.get(), buffer_.data() + done, buffer_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      number = n < 0 ? errno : ENOSPC;
      break;
    }
    done += static_cast<std::size_t>(n);
  }
  if (number == 0) {
    size_ += done;
    if (take == items.size()) return Outcome::all();
    Outcome outcome = write_file(items.subspan(take));
    outcome.sent = outcome.sent == Outcome::kAll ? Outcome::kAll : outcome.sent + take;
    return outcome;
  }
  // Back to the end of the last whole line.
  std::size_t whole = 0;
  std::size_t bytes = 0;
  while (whole < take && bytes + line_of(*items[whole]).size() + 1 <= done)
    bytes += line_of(*items[whole++]).size() + 1;
  struct stat info {};
  if (done > bytes && ::fstat(file_.get(), &info) == 0 &&
      ::ftruncate(file_.get(), info.st_size - static_cast<off_t>(done - bytes)) != 0) {
    file_.reset();  // opened again it is mended
    claim_.reset();
  }
  size_ += bytes;
  return Outcome::again(failure(options_.path, number), whole);
}

// A line that the stream took in part counts as sent: its rest goes out before
// anything else does.
Outcome FileSink::write_stream(std::span<const ItemPtr> items) {
  const std::size_t before = unfinished_.size();
  buffer_.swap(unfinished_);
  unfinished_.clear();
  for (const ItemPtr& item : items) {
    buffer_ += line_of(*item);
    buffer_ += '\n';
  }
  std::size_t done = 0;
  int number = 0;
  while (done < buffer_.size()) {
    const ssize_t n = ::write(stream_, buffer_.data() + done, buffer_.size() - done);
    if (n >= 0) {
      done += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      pollfd ready{stream_, POLLOUT, 0};
      ::poll(&ready, 1, 1000);
    } else if (errno != EINTR) {
      number = errno;
      break;
    }
  }
  if (number == 0) return Outcome::all();
  std::size_t begun = 0;
  std::size_t end = before;  // of what has begun
  while (end < done) end += line_of(*items[begun++]).size() + 1;
  unfinished_ = buffer_.substr(done, end - done);
  Outcome outcome = Outcome::again(Error::from_errno("standard output", number), begun);
  outcome.retry = number != EPIPE && number != EBADF;  // then nobody will ever read again
  return outcome;
}

Outcome FileSink::write(std::span<const ItemPtr> items) {
  return path_is_set() ? write_file(items) : write_stream(items);
}

Status FileSink::flush() {
  if (file_.valid() && ::fdatasync(file_.get()) != 0 && errno != EINVAL && errno != EROFS)
    return failure(options_.path, errno);
  return {};
}

}  // namespace gpuwatch::sink
