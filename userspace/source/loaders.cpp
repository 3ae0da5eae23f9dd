// SPDX-License-Identifier: Apache-2.0
#include "source/loaders.h"

#include <algorithm>

namespace gpuwatch::source {

namespace {

struct Named {
  std::string_view name;
  Loader loader;
};

// cuda.h of the toolkit: position of the image, the path, the size.
constexpr Named kLoaders[] = {
    {"cuModuleLoad", {GPUWATCH_PROBE_PATH, 1, 0}},
    {"cuModuleLoadData", {GPUWATCH_PROBE_IMAGE, 1, 0}},
    {"cuModuleLoadDataEx", {GPUWATCH_PROBE_IMAGE, 1, 0}},
    {"cuModuleLoadFatBinary", {GPUWATCH_PROBE_IMAGE, 1, 0}},
    {"cuLibraryLoadData", {GPUWATCH_PROBE_IMAGE, 1, 0}},
    {"cuLibraryLoadFromFile", {GPUWATCH_PROBE_PATH, 1, 0}},
    {"cuLinkAddData", {GPUWATCH_PROBE_SIZED, 2, 3}},
    {"cuLinkAddFile", {GPUWATCH_PROBE_PATH, 2, 0}},
    // Its result is loaded by one of the others: the call alone is of interest.
    {"cuLinkComplete", {GPUWATCH_PROBE_CALL, 0, 0}},
};

// Takes one suffix off; false when there is none.
bool strip_suffix(std::string_view& name) {
  if (name.ends_with("_ptsz") || name.ends_with("_ptds")) {
    name.remove_suffix(5);
    return true;
  }
  const std::size_t at = name.rfind("_v");
  if (at == std::string_view::npos || name.size() != at + 3 || name[at + 2] < '2' || name[at + 2] > '9') return false;
  name.remove_suffix(3);
  return true;
}

}  // namespace

std::optional<Loader> loader_of(std::string_view symbol) {
  if (!symbol.starts_with("cu") || symbol.size() >= GPUWATCH_SYMBOL_LEN) return std::nullopt;
  std::string_view base = symbol;
  do {
    const auto* found =
        std::find_if(std::begin(kLoaders), std::end(kLoaders), [&](const Named& named) { return named.name == base; });
    if (found != std::end(kLoaders)) return found->loader;
  } while (strip_suffix(base));
  return std::nullopt;
}

}  // namespace gpuwatch::source
