// SPDX-License-Identifier: Apache-2.0
// Fuzz target: cgroup paths and the text of /proc/PID/cgroup. Whatever comes
// out is a view into the bytes that went in and has its alphabet.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "attribute/proc_cgroup.h"

namespace {

using gpuwatch::attribute::CgroupFacts;

void must(bool holds) {
  if (!holds) std::abort();
}

void inside(std::string_view whole, std::string_view part) {
  must(part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size()));
  must(std::all_of(part.begin(), part.end(), [](char c) { return c > 0x20 && c < 0x7f && c != '/'; }));
}

void check(std::string_view path, const CgroupFacts& facts) {
  must(facts.depth <= gpuwatch::attribute::kMaxChain);
  for (std::size_t i = 0; i < facts.depth; ++i) {
    const auto& container = facts.chain[i];
    must(!container.runtime.empty() && !container.id.empty());
    inside(path, container.id);
    inside(path, container.pod_uid);
    inside(path, container.pod_id);
    must(gpuwatch::attribute::unescaped(container.id).size() <= container.id.size());
  }
  inside(path, facts.pod_uid);
  inside(path, facts.unit);
  inside(path, facts.slurm_step);
  inside(path, facts.slurm_sluid);
  inside(path, facts.nomad_task);
  inside(path, facts.ecs_task);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of the exact size lets the address sanitizer see any overrun.
  const std::vector<char> copy(data, data + size);
  const std::string_view text(copy.data(), copy.size());
  check(text, gpuwatch::attribute::parse_cgroup(text));
  if (const auto chosen = gpuwatch::attribute::parse_proc_cgroup(text)) {
    check(chosen->line.path, chosen->facts);
    must(chosen->line.path.data() + chosen->line.path.size() <= text.data() + text.size());
  }
  return 0;
}
