// SPDX-License-Identifier: Apache-2.0
#include "pipeline/code_prints.h"

#include <unistd.h>

#include <cstdlib>

#include "base/io.h"

namespace gpuwatch::pipeline {

using base::Result;

namespace {

constexpr std::size_t kErrorsMax = 1000;

model::CodeKind kind_of(identify::Kind kind) {
  switch (kind) {
    case identify::Kind::kElf:
      return model::CodeKind::kElf;
    case identify::Kind::kPtx:
      return model::CodeKind::kPtx;
    case identify::Kind::kLtoIr:
      return model::CodeKind::kLtoIr;
    default:
      return model::CodeKind::kOther;
  }
}

}  // namespace

model::ModulePrint print_of(const identify::Entry& entry) {
  const identify::Module& module = entry.module;
  model::ModulePrint print;
  print.kind = kind_of(module.kind);
  print.sm = module.sm != 0 ? module.sm : entry.image.sm;
  print.sm_suffix = entry.image.sm_suffix;
  print.bytes = module.bytes;
  print.r = module.r;
  if (module.has_modules) {
    print.m = module.m;
    print.d = module.d;
  }
  print.p = module.p;
  print.kernels.reserve(module.kernels.size());
  for (const identify::Kernel& kernel : module.kernels)
    print.kernels.push_back({kernel.name, kernel.entry, kernel.k, kernel.t, kernel.code_bytes, kernel.shared_bytes,
                             kernel.registers, kernel.barriers});
  return print;
}

void PrintSink::container(const std::string& file, const identify::Container& container) {
  for (const std::string& what : container.errors)
    error(file, "container at " + std::to_string(container.offset) + ": " + what);
}

void PrintSink::error(const std::string& file, const std::string& what) {
  ++error_count_;
  if (errors_.size() < kErrorsMax) errors_.push_back(file + ": " + what);
}

Result<Baselines> Baselines::open(std::vector<std::string> names) {
  if (names.empty()) {
    const char* list = std::getenv("GPUWATCH_BASELINE");
    if (list != nullptr) {
      for (std::string_view rest = list; !rest.empty();) {
        const std::size_t end = std::min(rest.find(':'), rest.size());
        if (end > 0) names.emplace_back(rest.substr(0, end));
        rest = rest.substr(std::min(end + 1, rest.size()));
      }
    } else if (::access(kDefaultBaseline, F_OK) == 0) {
      names.emplace_back(kDefaultBaseline);
    }
  }
  Baselines baselines;
  for (const std::string& name : names) {
    auto opened = judge::Baseline::open(name, judge::Baseline::Access::kRead);
    if (!opened) return std::move(opened.error());
    baselines.owned_.push_back(std::make_unique<judge::Baseline>(std::move(*opened)));
    baselines.lookups_.push_back(baselines.owned_.back().get());
    baselines.all_.push_back(baselines.owned_.back().get());
  }
  return baselines;
}

Result<judge::Policy> read_policy(const std::string& name) {
  if (name.empty()) return judge::Policy();
  auto text = base::read_text_file(name, 16 << 20);
  if (!text) return std::move(text.error());
  return judge::Policy::parse(*text, name);
}

}  // namespace gpuwatch::pipeline
