// SPDX-License-Identifier: Apache-2.0
// The work of the probe's and the agent's hashing kernels on the CPU, for the fakes
// of libcuda: the regions of one launch, in memory of this process.
#pragma once

#include <algorithm>
#include <cstring>

#include "kernels/tree.h"

namespace fake {

struct Load {
  const std::uint8_t* data;
  std::uint8_t byte(std::uint64_t offset) const { return data[offset]; }
  void block(std::uint64_t offset, std::uint32_t (&w)[16]) const {
    std::memcpy(w, data + offset, sizeof w);
    for (std::uint32_t& word : w) word = gpuwatch::kernels::sha_swap(word);
  }
};

// False: `readable(address, bytes)` says no, which is a fault on a GPU.
template <typename Readable>
bool hash(const gpuwatch::kernels::Job& job, const Readable& readable) {
  using namespace gpuwatch::kernels;
  const auto* regions = reinterpret_cast<const Region*>(job.regions_address);
  for (std::uint64_t i = 0; i < job.regions; ++i) {
    const Region& region = regions[i];
    if (!readable(region.address, region.bytes)) return false;
    // An empty region has one chunk, too; a chunk may be as long as numbers go.
    std::uint64_t chunk = 0;
    for (std::uint64_t at = 0;; at += job.chunk_bytes) {
      const std::uint64_t bytes = std::min(region.bytes - at, job.chunk_bytes);
      const ShaState state =
          chunk_digest(job, region, chunk, bytes, Load{reinterpret_cast<const std::uint8_t*>(region.address) + at});
      auto* out = reinterpret_cast<std::uint32_t*>(job.out_address) + 8 * (region.first_digest + chunk++);
      for (int k = 0; k < 8; ++k) out[k] = sha_swap(state.word[k]);
      if (region.bytes - at <= job.chunk_bytes) break;
    }
  }
  return true;
}

}  // namespace fake
