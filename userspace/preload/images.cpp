// SPDX-License-Identifier: Apache-2.0
#include "preload/images.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>

#include "base/fd.h"
#include "base/io.h"
#include "preload/shard_format.h"

namespace gpuwatch::preload {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

std::string path_of(const std::string& directory, std::uint64_t id) {
  char name[32];
  std::snprintf(name, sizeof name, "/%016llx", static_cast<unsigned long long>(id));
  return directory + name + GW_BLOB_SUFFIX;
}

}  // namespace

Result<std::vector<std::uint64_t>> image_ids(const std::string& directory) {
  std::error_code error;
  std::vector<std::uint64_t> ids;
  std::filesystem::directory_iterator files(directory, error);
  if (error) return Error(Code::kIo, directory + ": " + error.message());
  for (; files != std::filesystem::directory_iterator(); files.increment(error)) {
    if (error) return Error(Code::kIo, directory + ": " + error.message());
    const std::string stem = files->path().stem();
    std::uint64_t id = 0;
    if (files->path().extension() != GW_BLOB_SUFFIX || stem.size() != 16 ||
        !std::filesystem::is_regular_file(files->symlink_status(error)))
      continue;
    const auto parsed = std::from_chars(stem.data(), stem.data() + stem.size(), id, 16);
    if (parsed.ec == std::errc() && parsed.ptr == stem.data() + stem.size()) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

Result<std::vector<std::byte>> read_image(const std::string& directory, std::uint64_t id, std::uint64_t max_bytes) {
  const std::string path = path_of(directory, id);
  // Not blocking: a fifo put there must not keep us.
  const base::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat st {};
  if (!fd.valid() || ::fstat(fd.get(), &st) != 0) return Error::from_errno(path);
  if (!S_ISREG(st.st_mode)) return Error(Code::kBadInput, path + ": not a plain file");
  if (static_cast<std::uint64_t>(st.st_size) > max_bytes)
    return Error(Code::kLimit, path + ": " + std::to_string(st.st_size) + " bytes, over the limit of " +
                                   std::to_string(max_bytes) + " for one image");
  std::vector<std::byte> bytes(static_cast<std::size_t>(st.st_size));
  auto got = base::read_full(fd.get(), bytes);
  if (!got) return std::move(got.error()).with_context(path);
  bytes.resize(*got);
  return bytes;
}

Status remove_images(const std::string& directory) {
  auto ids = image_ids(directory);
  if (!ids) return std::move(ids.error());
  std::error_code error;
  for (const std::uint64_t id : *ids) {
    std::filesystem::remove(path_of(directory, id), error);
    if (error) return Error(Code::kIo, path_of(directory, id) + ": " + error.message());
  }
  return {};
}

}  // namespace gpuwatch::preload
