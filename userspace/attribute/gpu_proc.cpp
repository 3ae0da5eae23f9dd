// SPDX-License-Identifier: Apache-2.0
#include "attribute/gpu_proc.h"

#include <charconv>
#include <filesystem>
#include <functional>
#include <system_error>

#include "base/io.h"

namespace gpuwatch::attribute {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kEntriesMax = 256;  // of one directory
constexpr std::size_t kFileMax = 16 << 10;

// Value of a "Key:  value" line; empty without one.
std::string_view value_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with(key)) continue;
    const std::size_t from = line.find_first_not_of(" \t", key.size());
    if (from == std::string_view::npos) return {};
    return line.substr(from, line.find_last_not_of(" \t\r") + 1 - from);
  }
  return {};
}

std::int32_t number_of(std::string_view text) {
  std::int32_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && number >= 0 ? number : -1;
}

// N of a name like "gi3".
std::int32_t number_after(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) ? number_of(name.substr(prefix.size())) : -1;
}

void each_entry(const fs::path& directory, const std::function<void(const fs::path&)>& action) {
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  std::size_t count = 0;
  for (const fs::directory_iterator end; !error && entries != end && count < kEntriesMax; entries.increment(error)) {
    action(entries->path());
    ++count;
  }
}

std::int32_t cap_minor_of(const fs::path& access) {
  auto text = base::read_text_file(access.string(), kFileMax);
  return text.ok() ? number_of(value_of(*text, "DeviceFileMinor:")) : -1;
}

// .../gpuN/mig/giG/access and .../giG/ciC/access
void read_mig(model::Gpu& gpu, const fs::path& mig) {
  each_entry(mig, [&](const fs::path& gi_path) {
    const std::int32_t gi = number_after(gi_path.filename().string(), "gi");
    if (gi < 0) return;
    if (const std::int32_t cap = cap_minor_of(gi_path / "access"); cap >= 0) gpu.mig.push_back({gi, -1, cap, "", ""});
    each_entry(gi_path, [&](const fs::path& ci_path) {
      const std::int32_t ci = number_after(ci_path.filename().string(), "ci");
      const std::int32_t cap = ci < 0 ? -1 : cap_minor_of(ci_path / "access");
      if (cap >= 0) gpu.mig.push_back({gi, ci, cap, "", ""});
    });
  });
}

}  // namespace

model::Gpu parse_gpu_information(std::string_view text, std::string_view pci) {
  model::Gpu gpu;
  gpu.pci = pci;
  gpu.name = value_of(text, "Model:");
  gpu.minor = number_of(value_of(text, "Device Minor:"));
  // Question marks stand for a UUID that the driver has not read yet.
  const std::string_view uuid = value_of(text, "GPU UUID:");
  if (uuid.starts_with("GPU-") && uuid.find('?') == std::string_view::npos) gpu.uuid = uuid;
  return gpu;
}

base::Result<model::GpuList> read_proc_gpus(const std::string& root) {
  const fs::path top = root + "/proc/driver/nvidia";
  std::error_code error;
  if (!fs::is_directory(top / "gpus", error))
    return base::Error(base::Code::kNotFound, (top / "gpus").string() + ": not there; no NVIDIA driver is loaded",
                       ENOENT);
  model::GpuList gpus;
  each_entry(top / "gpus", [&](const fs::path& path) {
    auto text = base::read_text_file((path / "information").string(), kFileMax);
    if (text.ok()) gpus.push_back(parse_gpu_information(*text, path.filename().string()));
  });
  for (model::Gpu& gpu : gpus)
    if (gpu.minor >= 0) read_mig(gpu, top / "capabilities" / ("gpu" + std::to_string(gpu.minor)) / "mig");
  std::sort(gpus.begin(), gpus.end(), [](const model::Gpu& a, const model::Gpu& b) { return a.minor < b.minor; });
  return gpus;
}

}  // namespace gpuwatch::attribute
