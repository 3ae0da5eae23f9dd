// SPDX-License-Identifier: Apache-2.0
#include "preload/plan_file.h"

#include <fstream>

#include "preload/shard_format.h"

namespace gpuwatch::preload {

base::Status write_plan_file(const std::string& path, std::span<const gpuwatch_plan_entry> entries,
                             std::span<const gpuwatch_plan_size> sizes, std::uint32_t default_bytes) {
  if (entries.size() > GPUWATCH_PLAN_ENTRIES || sizes.size() > GPUWATCH_PLAN_SIZES)
    return base::Error(base::Code::kLimit, path + ": plan has too many entries or sizes");
  const gw_plan_head head{GW_PLAN_MAGIC, static_cast<__u32>(entries.size()), static_cast<__u32>(sizes.size()),
                          default_bytes, 0};
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(&head), sizeof head);
  out.write(reinterpret_cast<const char*>(entries.data()), static_cast<std::streamsize>(entries.size_bytes()));
  out.write(reinterpret_cast<const char*>(sizes.data()), static_cast<std::streamsize>(sizes.size_bytes()));
  out.flush();
  if (!out) return base::Error::from_errno("cannot write capture plan " + path);
  return {};
}

}  // namespace gpuwatch::preload
