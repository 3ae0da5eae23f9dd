// SPDX-License-Identifier: Apache-2.0
#include "identify/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "base/fd.h"

namespace gpuwatch::identify {

namespace {

using Visit = std::function<bool(const std::string&, int, const base::Status&)>;

constexpr unsigned kDepthMax = 256;
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

class Walker {
 public:
  Walker(const Limits& limits, const Visit& visit) : limits_(limits), visit_(visit) {}

  bool directory(const std::string& path, base::Fd fd, unsigned depth) {
    if (depth > kDepthMax)
      return visit_(path, -1, base::Error(base::Code::kLimit, "directories nested more than 256 deep"));
    DIR* raw = ::fdopendir(fd.get());
    if (raw == nullptr) return visit_(path, -1, base::Error::from_errno(path));
    (void)fd.release();
    const std::unique_ptr<DIR, CloseDirectory> handle(raw);
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(handle.get())) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (entry->d_type != DT_REG && entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) continue;
      if (++seen_ > limits_.files) return visit_(path, -1, base::Error(base::Code::kLimit, "too many files"));
      names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names)
      if (!one(path + (path.ends_with('/') ? "" : "/") + name, ::dirfd(handle.get()), name, depth)) return false;
    return true;
  }

  bool one(const std::string& path, int parent, const std::string& name, unsigned depth) {
    struct stat info {};
    if (::fstatat(parent, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      return visit_(path, -1, base::Error::from_errno(path));
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return true;
    base::Fd fd(::openat(parent, name.c_str(), kOpenFlags));
    if (!fd.valid()) return visit_(path, -1, base::Error::from_errno(path));
    if (::fstat(fd.get(), &info) != 0) return visit_(path, -1, base::Error::from_errno(path));
    if (S_ISDIR(info.st_mode)) return directory(path, std::move(fd), depth + 1);
    if (!S_ISREG(info.st_mode)) return true;
    if (info.st_nlink > 1 && !files_.emplace(info.st_dev, info.st_ino).second) return true;
    return visit_(path, fd.get(), {});
  }

 private:
  const Limits& limits_;
  const Visit& visit_;
  std::uint64_t seen_ = 0;
  std::set<std::pair<dev_t, ino_t>> files_;
};

}  // namespace

base::Status walk(const std::string& path, const Limits& limits, const Visit& visit) {
  // The path that was asked for may be a link; a pipe or a device is refused
  // without waiting for it.
  base::Fd fd(::open(path.c_str(), (kOpenFlags & ~O_NOFOLLOW)));
  if (!fd.valid()) return base::Error::from_errno(path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return base::Error::from_errno(path);
  if (S_ISDIR(info.st_mode)) {
    (void)Walker(limits, visit).directory(path, std::move(fd), 0);
    return {};
  }
  if (!S_ISREG(info.st_mode)) return base::Error(base::Code::kUnsupported, path + ": neither a file nor a directory");
  (void)visit(path, fd.get(), {});
  return {};
}

}  // namespace gpuwatch::identify
