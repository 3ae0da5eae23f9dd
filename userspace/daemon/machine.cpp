// SPDX-License-Identifier: Apache-2.0
#include "daemon/machine.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace gpuwatch::daemon {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

void make_directory(const std::string& path, const passwd* owner) {
  if (path.empty() || ::mkdir(path.c_str(), 0750) != 0) return;
  if (owner != nullptr) (void)!::chown(path.c_str(), owner->pw_uid, owner->pw_gid);
}

std::string parent_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
  return text;
}

}  // namespace gpuwatch::daemon
