// SPDX-License-Identifier: Apache-2.0
#include "probe/plan.h"

#include <algorithm>

namespace gpuwatch::probe {

namespace {

struct HostLoad {
  const std::uint8_t* data;

  std::uint8_t byte(std::uint64_t offset) const { return data[offset]; }
  void block(std::uint64_t offset, std::uint32_t (&w)[16]) const {
    std::memcpy(w, data + offset, sizeof w);
    for (std::uint32_t& word : w) word = kernels::sha_swap(word);
  }
};

std::uint64_t chunk_size(Form form) {
  return form == Form::kTree ? kernels::kChunkBytes : ~std::uint64_t{0};
}

// Of an empty region, too, there is one chunk.
std::uint64_t chunks_of(std::uint64_t bytes, Form form) {
  if (form != Form::kTree || bytes == 0) return 1;
  return bytes / kernels::kChunkBytes + (bytes % kernels::kChunkBytes != 0 ? 1 : 0);
}

}  // namespace

HashPlan plan_hash(const std::vector<Span>& spans, Form form) {
  HashPlan plan;
  plan.roots.assign(spans.size(), 0);
  struct Open {
    std::size_t span;
    std::uint64_t address;
    std::uint64_t bytes;
  };
  std::vector<Open> open;
  for (std::size_t i = 0; i < spans.size(); ++i) open.push_back({i, spans[i].address, spans[i].bytes});
  while (!open.empty()) {
    Level level;
    std::vector<Open> next;
    for (const Open& region : open) {
      const std::uint64_t chunks = chunks_of(region.bytes, form);
      level.regions.push_back({region.address, region.bytes, spans[region.span].bytes, level.chunks, plan.digests});
      if (chunks == 1)
        plan.roots[region.span] = plan.digests;
      else
        next.push_back({region.span, plan.digests * kernels::kDigestBytes, chunks * kernels::kDigestBytes});
      level.chunks += chunks;
      plan.digests += chunks;
    }
    plan.levels.push_back(std::move(level));
    open = std::move(next);
  }
  return plan;
}

kernels::Job job_of(const HashPlan& plan, std::size_t level, Form form, const Nonce& nonce) {
  kernels::Job job{};
  job.state = kernels::sha_start();
  job.chunk_bytes = chunk_size(form);
  job.level = static_cast<std::uint32_t>(level);
  if (level < plan.levels.size()) {
    job.regions = plan.levels[level].regions.size();
    job.chunks = plan.levels[level].chunks;
  }
  if (form == Form::kPlain) return job;
  std::uint8_t block[64];
  std::memcpy(block, form == Form::kTree ? kernels::kTreeDomain : kernels::kFlatDomain, 32);
  std::memcpy(block + 32, nonce.data(), 32);
  std::uint32_t w[16];
  HostLoad{block}.block(0, w);
  kernels::sha_block(job.state, w);
  job.before = 64;
  job.tail = 1;
  return job;
}

namespace {

void host_level(const HashPlan& plan, std::size_t level, Form form, const Nonce& nonce, const std::uint8_t* base,
                std::vector<std::uint8_t>& digests) {
  const kernels::Job job = job_of(plan, level, form, nonce);
  for (const kernels::Region& region : plan.levels[level].regions) {
    const std::uint64_t chunks = chunks_of(region.bytes, form);
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
      const std::uint64_t begin = form == Form::kTree ? chunk * kernels::kChunkBytes : 0;
      const std::uint64_t length = std::min(region.bytes - begin, job.chunk_bytes);
      const kernels::ShaState state = chunk_digest(job, region, chunk, length, HostLoad{base + region.address + begin});
      for (int i = 0; i < 8; ++i) {
        const std::uint32_t word = kernels::sha_swap(state.word[i]);
        std::memcpy(&digests[(region.first_digest + chunk) * kernels::kDigestBytes + 4 * static_cast<std::size_t>(i)],
                    &word, 4);
      }
    }
  }
}

}  // namespace

void host_levels(const HashPlan& plan, Form form, const Nonce& nonce, std::vector<std::uint8_t>& digests) {
  for (std::size_t level = 1; level < plan.levels.size(); ++level)
    host_level(plan, level, form, nonce, digests.data(), digests);
}

identify::Digest host_root(identify::Bytes bytes, Form form, const Nonce& nonce) {
  const HashPlan plan = plan_hash({{0, bytes.size()}}, form);
  std::vector<std::uint8_t> digests(plan.digests * kernels::kDigestBytes);
  host_level(plan, 0, form, nonce, bytes.data(), digests);
  host_levels(plan, form, nonce, digests);
  identify::Digest root;
  std::memcpy(root.data(), &digests[plan.roots.front() * kernels::kDigestBytes], root.size());
  return root;
}

}  // namespace gpuwatch::probe
