// SPDX-License-Identifier: Apache-2.0
#include "source/host_info.h"

#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "base/clock.h"
#include "base/io.h"

namespace gpuwatch::source {

namespace {

bool is_version(std::string_view word) {
  return !word.empty() && word.size() <= 32 && word.find('.') != std::string_view::npos && word.front() != '.' &&
         word.find_first_not_of("0123456789.") == std::string_view::npos;
}

// First word of dotted digits: the line of /proc/driver/nvidia/version names
// the module in words that differ between the driver's flavours.
std::string first_version(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \t\n"), text.size());
    if (is_version(text.substr(0, end))) return std::string(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

// Value of a "Key:   value" line.
std::string_view value_of(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  text = text.substr(0, text.find('\n'));
  const std::size_t from = text.find_first_not_of(" \t");
  return from == std::string_view::npos ? std::string_view{} : text.substr(from);
}

}  // namespace

std::string kernel_release() {
  utsname name{};
  return ::uname(&name) == 0 ? name.release : "";
}

std::string driver_version(const std::string& root) {
  if (auto text = base::read_text_file(root + "/proc/driver/nvidia/version"); text.ok())
    if (std::string version = first_version(*text); !version.empty()) return version;
  if (auto text = base::read_text_file(root + "/sys/module/nvidia/version"); text.ok() && is_version(*text))
    return *text;
  return {};
}

std::vector<GwcapGpu> gpus(const std::string& root) {
  std::vector<GwcapGpu> found;
  std::error_code error;
  std::filesystem::directory_iterator entries(root + "/proc/driver/nvidia/gpus", error);
  for (const std::filesystem::directory_iterator end; !error && entries != end; entries.increment(error)) {
    auto text = base::read_text_file(entries->path().string() + "/information");
    if (!text) continue;
    GwcapGpu gpu;
    gpu.pci = entries->path().filename().string();
    gpu.name = value_of(*text, "Model:");
    // Question marks stand for a UUID that the driver has not read yet.
    if (const std::string_view uuid = value_of(*text, "GPU UUID:"); uuid.find('?') == std::string_view::npos)
      gpu.uuid = uuid;
    const std::string_view minor = value_of(*text, "Device Minor:");
    std::from_chars(minor.data(), minor.data() + minor.size(), gpu.minor);
    found.push_back(std::move(gpu));
  }
  std::sort(found.begin(), found.end(), [](const GwcapGpu& a, const GwcapGpu& b) { return a.minor < b.minor; });
  return found;
}

GwcapHeader describe_host(const std::string& source_name) {
  GwcapHeader header;
  header.source = source_name;
  header.kernel_release = kernel_release();
  header.driver_version = driver_version();
  header.gpus = gpus();
  const base::ClockOffsets clocks = base::measure_clock_offsets();
  header.realtime_minus_monotonic_ns = clocks.realtime_minus_monotonic_ns;
  header.boottime_minus_monotonic_ns = clocks.boottime_minus_monotonic_ns;
  header.started_realtime_ns = base::realtime_ns();
  return header;
}

}  // namespace gpuwatch::source
