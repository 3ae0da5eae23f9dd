// SPDX-License-Identifier: Apache-2.0
#include "judge/provenance.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/io.h"

extern char** environ;

namespace gpuwatch::judge {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kRecordMax = 64 << 20;

// Value of a "Name: value" line in the head of a text of mail form.
std::string header_value(const std::string& text, const std::string& name) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end == at) break;  // the head is over
    if (text.compare(at, name.size(), name) == 0 && text.compare(at + name.size(), 2, ": ") == 0)
      return text.substr(at + name.size() + 2, end - at - name.size() - 2);
    at = end + 1;
  }
  return {};
}

bool has_line_beginning(const std::string& text, const std::string& prefix) {
  for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at + 1))
    if (at == 0 || text[at - 1] == '\n') return true;
  return false;
}

// Names hold no blanks; a program's answer might.
bool is_plain(const std::string& text) {
  return !text.empty() && text.size() < 256 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

std::string output_of(std::vector<std::string> command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  base::Fd in(ends[0]), out(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, out.get(), 1);
  ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int failed = ::posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  out.reset();
  if (failed != 0) return {};
  std::vector<std::byte> bytes(4096);
  auto got = base::read_full(in.get(), bytes);
  in.reset();
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!got.ok() || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return {};
  return {reinterpret_cast<const char*>(bytes.data()), *got};
}

}  // namespace

struct PackageIndex::State {
  std::string root;
  bool dpkg_read = false;
  std::unordered_map<std::string, std::size_t> dpkg_files;  // path to package
  std::vector<Package> dpkg_packages;

  // Libraries only: other files hold no GPU code that is worth a map entry.
  void read_dpkg() {
    dpkg_read = true;
    std::error_code error;
    std::unordered_map<std::string, std::string> versions = dpkg_versions();
    for (fs::directory_iterator at(root + "/var/lib/dpkg/info", error), end; !error && at != end; at.increment(error)) {
      if (at->path().extension() != ".list") continue;
      std::string name = at->path().stem();
      name.resize(std::min(name.find(':'), name.size()));
      std::ifstream list(at->path());
      std::size_t index = dpkg_packages.size();
      bool used = false;
      for (std::string line; std::getline(list, line);) {
        if (line.find(".so") == std::string::npos && line.find(".a") == std::string::npos &&
            line.find("bin/") == std::string::npos)
          continue;
        used = true;
        dpkg_files.emplace(std::move(line), index);
      }
      if (used) dpkg_packages.push_back({"dpkg", name, versions[name]});
    }
  }

  std::unordered_map<std::string, std::string> dpkg_versions() const {
    std::unordered_map<std::string, std::string> versions;
    std::ifstream status(root + "/var/lib/dpkg/status");
    std::string package;
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("Package: ")) package = line.substr(9);
      if (line.starts_with("Version: ")) versions.emplace(package, line.substr(9));
    }
    return versions;
  }

  // A file below site-packages belongs to the dist-info whose RECORD lists it.
  Package pip_owner(const std::string& path) {
    for (fs::path at = fs::path(path).parent_path(); at.has_relative_path(); at = at.parent_path()) {
      if (at.filename() != "site-packages" && at.filename() != "dist-packages") continue;
      const std::string relative = fs::path(path).lexically_relative(at).string();
      std::error_code error;
      for (fs::directory_iterator entry(root + at.string(), error), end; !error && entry != end;
           entry.increment(error)) {
        if (entry->path().extension() != ".dist-info") continue;
        auto record = base::read_text_file(entry->path() / "RECORD", kRecordMax);
        if (!record || !has_line_beginning(*record, relative + ",")) continue;
        auto metadata = base::read_text_file(entry->path() / "METADATA", 4 << 20);
        if (!metadata) continue;
        return {"pip", header_value(*metadata, "Name"), header_value(*metadata, "Version")};
      }
    }
    return {};
  }

  static Package rpm_owner(const std::string& path) {
    if (::access("/var/lib/rpm", F_OK) != 0 && ::access("/usr/lib/sysimage/rpm", F_OK) != 0) return {};
    const std::string answer = output_of({"rpm", "-qf", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\n", "--", path});
    const std::size_t blank = answer.find(' '), end = answer.find('\n');
    if (blank == std::string::npos || end == std::string::npos || blank > end) return {};
    Package package{"rpm", answer.substr(0, blank), answer.substr(blank + 1, end - blank - 1)};
    return is_plain(package.name) && is_plain(package.version) ? package : Package{};
  }
};

PackageIndex::PackageIndex(std::string root) : state_(std::make_unique<State>()) {
  state_->root = std::move(root);
}
PackageIndex::~PackageIndex() = default;

Package PackageIndex::owner_of(const std::string& path) {
  if (Package package = state_->pip_owner(path); !package.name.empty()) return package;
  if (!state_->dpkg_read) state_->read_dpkg();
  // Merged /usr: lists may still say /lib/... for what is found as /usr/lib/...
  for (const std::string& form : {path, path.starts_with("/usr/") ? path.substr(4) : path}) {
    const auto at = state_->dpkg_files.find(form);
    if (at != state_->dpkg_files.end()) return state_->dpkg_packages[at->second];
  }
  return state_->root.empty() ? State::rpm_owner(path) : Package{};
}

}  // namespace gpuwatch::judge
