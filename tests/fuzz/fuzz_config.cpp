// SPDX-License-Identifier: Apache-2.0
// Fuzz target: gpuwatch.yaml with its rules, and values of the command line (lines
// that begin with "=" are such). What is good must be within its bounds; what is
// not must be told, with its place and in plain text; both the same every time.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/io.h"
#include "daemon/matcher.h"
#include "daemon/settings.h"

namespace {

using namespace gpuwatch;
using namespace gpuwatch::daemon;

void must(bool holds) {
  if (!holds) std::abort();
}

// A file that is nowhere: a fuzzer writes hundreds a second.
base::Fd file_of(std::string_view text) {
  base::Fd fd(::memfd_create("gpuwatch.yaml", MFD_CLOEXEC));
  must(fd.valid() && base::write_all(fd.get(), text).ok());
  return fd;
}

void check_errors(const std::vector<std::string>& errors, const std::string& file) {
  for (const std::string& error : errors) {
    must(error.starts_with(file) || error.starts_with("-o "));
    for (const char c : error) must(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  }
}

void check_values(const Settings& settings) {
  for (std::size_t i = 0; i < kKeys; ++i) {
    const auto key = static_cast<Key>(i);
    const KeyInfo& info = key_info(key);
    if (info.type == KeyType::kCount || info.type == KeyType::kBytes || info.type == KeyType::kDuration)
      must(settings.number(key) >= info.least && settings.number(key) <= info.most);
    if (info.type == KeyType::kWord) must(info.meaning.find(settings.text(key)) != std::string_view::npos);
  }
  std::set<std::string> names;
  for (const Rule& rule : settings.rules()) {
    must(!rule.name.empty() && names.insert(rule.name).second && !rule.place.empty());
    must(!rule.when.values[static_cast<std::size_t>(Field::kEvent)].empty());
    must(rule.limit.count > 0 && rule.limit.per_ns > 0);
    // Patterns of any shape end, and in time.
    const Subject subject{nullptr, nullptr, "ring_full", 1};
    (void)fits(rule.when, rule.unless, subject);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text;
  std::vector<std::string> overrides;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    const std::string_view line = all.substr(at, end - at);
    if (line.starts_with('='))
      overrides.emplace_back(line.substr(1));
    else
      text.append(line).append(end < all.size() ? "\n" : "");
    at = end + 1;
  }
  const base::Fd fd = file_of(text);
  const std::string file = "/proc/self/fd/" + std::to_string(fd.get());
  std::vector<std::string> errors, again;
  const Settings settings = Settings::read(file, overrides, errors);
  check_errors(errors, file);
  if (errors.empty()) check_values(settings);
  (void)Settings::read(file, overrides, again);
  must(errors == again);
  return 0;
}
