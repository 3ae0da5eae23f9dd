// SPDX-License-Identifier: Apache-2.0
#include "judge/compare.h"

namespace gpuwatch::judge {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

constexpr std::size_t kBatch = 256;

Status changed_kernels(Baseline& first, const Entry& entry, DiffCounts& counts,
                       const std::function<Status(const DiffLine&)>& visit) {
  for (const model::KernelPrint& kernel : entry.module.kernels) {
    auto has = first.has_k(kernel.k);
    if (!has) return std::move(has.error());
    if (*has) continue;
    auto places = first.by_name(kernel.name, entry.module.sm);
    if (!places) return std::move(places.error());
    if (places->empty()) continue;
    ++counts.changed;
    if (Status status = visit({DiffKind::kChanged, &entry, &kernel, &places->front().kernel}); !status.ok())
      return status;
  }
  return {};
}

}  // namespace

Result<DiffCounts> diff(Baseline& first, Baseline& second, const std::function<Status(const DiffLine&)>& visit) {
  DiffCounts counts;
  Status status = first.for_each([&](const Entry& entry) -> Status {
    auto other = second.by_r(entry.module.r);
    if (!other) return std::move(other.error());
    if (*other) {
      ++counts.common;
      return {};
    }
    ++counts.removed;
    return visit({DiffKind::kRemoved, &entry, nullptr, nullptr});
  });
  if (!status.ok()) return std::move(status.error());
  status = second.for_each([&](const Entry& entry) -> Status {
    auto other = first.by_r(entry.module.r);
    if (!other) return std::move(other.error());
    if (*other) return {};
    ++counts.added;
    if (Status told = visit({DiffKind::kAdded, &entry, nullptr, nullptr}); !told.ok()) return told;
    return changed_kernels(first, entry, counts, visit);
  });
  if (!status.ok()) return std::move(status.error());
  return counts;
}

Result<std::uint64_t> merge(Baseline& into, Baseline& from) {
  if (into.stance() != from.stance())
    return Error(Code::kBadInput, from.path() + ": its modules are " + std::string(stance_name(from.stance())) +
                                      ", those of " + into.path() + " are " + std::string(stance_name(into.stance())) +
                                      "; they do not mix");
  std::uint64_t added = 0;
  std::vector<Entry> batch;
  const auto flush = [&]() -> Status {
    auto fresh = into.add(batch);
    if (!fresh) return std::move(fresh.error());
    added += *fresh;
    batch.clear();
    return {};
  };
  Status status = from.for_each([&](const Entry& entry) -> Status {
    batch.push_back(entry);
    return batch.size() >= kBatch ? flush() : Status();
  });
  if (status.ok()) status = flush();
  if (!status.ok()) return std::move(status.error());
  return added;
}

}  // namespace gpuwatch::judge
