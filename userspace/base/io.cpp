// SPDX-License-Identifier: Apache-2.0
#include "base/io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpuwatch::base {

Status write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error::from_errno("write");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Status write_all(int fd, std::string_view text) {
  return write_all(fd, std::as_bytes(std::span(text)));
}

Result<std::size_t> read_full(int fd, std::span<std::byte> out, OnSignal on_signal) {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const ssize_t n = ::read(fd, out.data() + filled, out.size() - filled);
    if (n < 0 && errno == EINTR && on_signal == OnSignal::kRetry) continue;
    if (n < 0) return Error::from_errno("read");
    if (n == 0) break;
    filled += static_cast<std::size_t>(n);
  }
  return filled;
}

Status must_be_plain(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return {};
  return Error(Code::kBadInput, path + ": is no regular file; put one there");
}

Result<Fd> open_plain(const std::string& path, Links links, int folder) {
  // Such a descriptor names a file and does nothing to it.
  const int flags = O_PATH | O_CLOEXEC | (links == Links::kRefuse ? O_NOFOLLOW : 0);
  const Fd place(::openat(folder < 0 ? AT_FDCWD : folder, path.c_str(), flags));
  if (!place.valid()) return Error::from_errno(path);
  struct stat info {};
  if (::fstat(place.get(), &info) != 0) return Error::from_errno(path);
  if (!S_ISREG(info.st_mode)) return Error(Code::kBadInput, path + " is not a regular file");
  const std::string same = "/proc/self/fd/" + std::to_string(place.get());
  Fd fd(::open(same.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return Error::from_errno(path);
  return fd;
}

Result<std::string> read_text_file(const std::string& path, std::size_t max_bytes) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return Error::from_errno(path);
  std::string text;
  char chunk[4096];
  for (;;) {
    auto got = read_full(fd.get(), std::as_writable_bytes(std::span(chunk)));
    if (!got) return std::move(got.error()).with_context(path);
    text.append(chunk, *got);
    if (text.size() > max_bytes)
      return Error(Code::kLimit, path + ": longer than " + std::to_string(max_bytes) + " bytes");
    if (*got < sizeof chunk) break;
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text;
}

}  // namespace gpuwatch::base
