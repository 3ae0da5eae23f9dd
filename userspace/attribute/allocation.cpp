// SPDX-License-Identifier: Apache-2.0
#include "attribute/allocation.h"

#include <algorithm>
#include <charconv>

namespace gpuwatch::attribute {

namespace {

constexpr std::size_t kWordsMax = 64;
constexpr std::size_t kShownMax = 200;  // bytes of a container's own words in evidence

const model::Gpu* by_index(std::string_view text, const model::GpuList& gpus) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc{} || end != text.data() + text.size()) return nullptr;
  std::vector<const model::Gpu*> order;
  for (const model::Gpu& gpu : gpus)
    if (!gpu.pci.empty()) order.push_back(&gpu);
  if (order.size() != gpus.size() || index >= order.size()) return nullptr;
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->pci < b->pci; });
  return order[index];
}

const model::Gpu* by_uuid(std::string_view uuid, const model::GpuList& gpus) {
  const model::Gpu* found = nullptr;
  for (const model::Gpu& gpu : gpus) {
    const bool part = std::any_of(gpu.mig.begin(), gpu.mig.end(), [&](const auto& mig) { return mig.uuid == uuid; });
    // The beginning of a UUID will do, where it is only one GPU's.
    if (!part && !gpu.uuid.starts_with(uuid)) continue;
    if (found != nullptr) return nullptr;
    found = &gpu;
  }
  return found;
}

const model::Gpu* named(std::string_view word, const model::GpuList& gpus) {
  if (const std::size_t at = word.rfind('='); at != std::string_view::npos) word.remove_prefix(at + 1);  // CDI's form
  if (word.starts_with("GPU-") || word.starts_with("MIG-")) return word.size() < 8 ? nullptr : by_uuid(word, gpus);
  return by_index(word.substr(0, word.find(':')), gpus);  // "1:0" is a MIG instance of GPU 1
}

std::string list_of(const std::vector<std::int32_t>& minors) {
  std::string out;
  for (const std::int32_t minor : minors) out += (out.empty() ? "gpu" : ", gpu") + std::to_string(minor);
  return out.empty() ? "no GPU" : out;
}

bool holds(const std::vector<std::int32_t>& minors, std::int32_t minor) {
  return std::find(minors.begin(), minors.end(), minor) != minors.end();
}

// Did the program make the node itself? nullopt: not known.
std::optional<bool> is_own(const ContainerFacts& container, const GpuUse& use) {
  if (!use.node || !container.nodes || !use.host_node) return std::nullopt;
  if (use.host_node->is(*use.node)) return false;
  for (const NodeFacts& node : *container.nodes)
    if (node.is(*use.node)) {
      // In the runtime's place: the runtime's, when it is as old as the rest of
      // what the runtime put there.
      if (container.dev_ready_ns == 0) return std::nullopt;
      return use.node->ctime_ns > container.dev_ready_ns;
    }
  return true;
}

std::string filter_of(const ContainerFacts& container) {
  std::string out;
  if (container.device_programs && *container.device_programs == 0) out += "; no device filter";
  if (!container.filter_unread.empty()) out += "; its device filter is not readable: " + container.filter_unread;
  if (container.filter_allows) {
    const bool all = container.filter_allows->size() == static_cast<std::size_t>(kGpuMinorsMax);
    out += "; its device filter allows " + (all ? "every GPU" : list_of(*container.filter_allows));
  }
  if (container.device_rules.empty()) return out;
  out += "; device cgroup:";
  for (const std::string& rule : container.device_rules) out += " [" + rule + "]";
  return out;
}

std::string without_separator(std::string text) {
  if (text.starts_with("; ")) text.erase(0, 2);
  return text;
}

// nvidia.com/gpu, also with a word before, as management.nvidia.com/gpu has.
bool is_nvidia_kind(std::string_view kind) {
  const std::size_t slash = kind.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view vendor = kind.substr(0, slash), what = kind.substr(slash + 1);
  return (vendor == "nvidia.com" || vendor.ends_with(".nvidia.com")) && (what == "gpu" || what == "mig");
}

}  // namespace

std::optional<std::vector<std::int32_t>> visible_minors(std::string_view value, const model::GpuList& gpus) {
  std::vector<std::int32_t> minors;
  std::size_t words = 0;
  while (!value.empty()) {
    const std::string_view word = value.substr(0, value.find(','));
    value.remove_prefix(std::min(word.size() + 1, value.size()));
    if (word.empty()) continue;
    const model::Gpu* gpu = ++words > kWordsMax ? nullptr : named(word, gpus);
    if (gpu == nullptr || gpu->minor < 0) return std::nullopt;
    if (!holds(minors, gpu->minor)) minors.push_back(gpu->minor);
  }
  if (minors.empty()) return std::nullopt;
  return minors;
}

std::optional<std::vector<std::int32_t>> cdi_minors(const std::vector<std::string>& devices,
                                                    const model::GpuList& gpus) {
  std::vector<std::int32_t> minors;
  for (const std::string& device : devices) {
    const std::size_t equals = device.find('=');
    if (equals == std::string::npos || !is_nvidia_kind(std::string_view(device).substr(0, equals))) continue;
    const std::string_view name = std::string_view(device).substr(equals + 1);
    const auto named_here =
        name.empty() || name.find(',') != std::string_view::npos ? std::nullopt : visible_minors(name, gpus);
    if (!named_here) return std::nullopt;  // "all", or one that is not known here
    for (const std::int32_t minor : *named_here)
      if (!holds(minors, minor)) minors.push_back(minor);
  }
  if (minors.empty()) return std::nullopt;
  return minors;
}

std::optional<AllocationFinding> judge(const ContainerFacts& container, const GpuUse& use, const model::GpuList& gpus) {
  if (!container.own_mounts || use.minor < 0) return std::nullopt;
  const std::optional<bool> own = is_own(container, use);
  std::string evidence;
  bool outside = false;
  const auto visible = container.visible_devices ? visible_minors(*container.visible_devices, gpus) : std::nullopt;
  const auto cdi = visible ? std::nullopt : cdi_minors(container.cdi_devices, gpus);
  if (visible) {
    outside = !holds(*visible, use.minor);
    evidence = "NVIDIA_VISIBLE_DEVICES=" + container.visible_devices->substr(0, kShownMax) + " is " + list_of(*visible);
  } else if (cdi) {
    outside = !holds(*cdi, use.minor);
    evidence = "CDI gave";
    for (const std::string& device : container.cdi_devices)
      if (evidence.size() < kShownMax) evidence += " " + device.substr(0, kShownMax);
    evidence += ", which is " + list_of(*cdi);
  } else if (container.nodes && (own || container.dev_ready_ns != 0)) {
    std::vector<std::int32_t> given;
    for (const NodeFacts& node : *container.nodes) {
      // A node that came later than the rest is not what the runtime gave.
      const bool hosts = use.host_node && use.host_node->minor == node.minor && use.host_node->ino == node.ino &&
                         use.host_node->dev == node.dev;
      if (hosts || container.dev_ready_ns == 0 || node.ctime_ns <= container.dev_ready_ns) given.push_back(node.minor);
    }
    outside = !holds(given, use.minor);
    evidence = "its /dev was given " + list_of(given);
  }
  // What the filter does not let through was not given, whoever says so; but a
  // variable or an annotation that names it decides.
  if (!visible && !cdi && container.filter_allows && use.minor < kGpuMinorsMax &&
      !holds(*container.filter_allows, use.minor))
    outside = true;
  if (own == true) {
    evidence += (evidence.empty() ? "" : "; ");
    evidence += "the node is not the host's and not the runtime's: inode " + std::to_string(use.node->ino) +
                " on device " + std::to_string(use.node->dev >> 20) + ":" + std::to_string(use.node->dev & 0xfffff);
  }
  if (!outside && own != true) return std::nullopt;
  return AllocationFinding{outside ? "outside_allocation" : "own_node",
                           without_separator(evidence + filter_of(container))};
}

}  // namespace gpuwatch::attribute
