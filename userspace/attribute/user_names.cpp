// SPDX-License-Identifier: Apache-2.0
#include "attribute/user_names.h"

#include <charconv>

#include "base/clock.h"
#include "base/io.h"

namespace gpuwatch::attribute {

namespace {

constexpr std::uint64_t kAgainAfterNs = 10'000'000'000;
constexpr std::size_t kUsersMax = 65536;

}  // namespace

void UserNames::read() {
  ++reads_;
  auto text = base::read_text_file(passwd_);
  if (!text.ok()) return;
  names_.clear();
  // name:password:uid:...
  for (std::string_view rest = *text; !rest.empty() && names_.size() < kUsersMax;) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    std::uint32_t uid = 0;
    const char* from = line.data() + second + 1;
    const char* end = line.data() + line.size();
    if (const auto [at, error] = std::from_chars(from, end, uid); error != std::errc{} || at == end || *at != ':')
      continue;
    names_.emplace(uid, line.substr(0, first));  // of several the first counts, as with getpwuid(3)
  }
}

std::string_view UserNames::name(std::uint32_t uid) {
  if (const auto at = names_.find(uid); at != names_.end()) return at->second;
  const std::uint64_t now = base::monotonic_ns();
  if (now < next_read_ns_) return {};
  next_read_ns_ = now + kAgainAfterNs;
  read();
  const auto at = names_.find(uid);
  return at != names_.end() ? std::string_view(at->second) : std::string_view{};
}

}  // namespace gpuwatch::attribute
